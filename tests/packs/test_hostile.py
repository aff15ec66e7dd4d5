"""Packs whose makers mean harm: every hash in them is right."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import pytest

from tests.packs.helpers import call, changed, members, refused, replaced, written
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.formats.arrays import npy, read_npy
from vgf_conformance.packs import directory, run
from vgf_conformance.packs.archive import MANIFEST, Archive
from vgf_conformance.packs.folder import judge_outputs, unpack
from vgf_conformance.packs.pack import open_pack
from vgf_conformance.untrusted import Malformed
from vgf_conformance.vocabulary import Finding, UserError, Verdict

Capture = pytest.CaptureFixture[str]
Change = Callable[[dict[str, Any], dict[str, bytes]], None]

SMOKE = Path(__file__).parents[2] / "golden" / "packs" / "smoke.zip"


def scenario_with(change: Callable[[dict[str, Any]], None]) -> Change:
    """Changes the first call's scenario."""

    def apply(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
        name = manifest["cases"][0]["calls"][0]["scenario"]
        document = json.loads(contents[name])
        change(document)
        replaced(manifest, contents, name, json.dumps(document, indent=2).encode())

    return apply


def tensor_with(**fields: Any) -> Change:
    return scenario_with(lambda document: document["resources"][-1]["tensor"].update(fields))


def _another_command(document: dict[str, Any]) -> None:
    document["commands"].append({"dispatch_graph": {"graph_ref": "graph", "bindings": []}})


def _another_graph(document: dict[str, Any]) -> None:
    document["resources"][0]["graph"]["src"] = "/etc/passwd"


@pytest.mark.parametrize(
    "change",
    [
        tensor_with(dst="/tmp/anywhere.npy"),  # noqa: S108 - nothing is written
        tensor_with(dst="../../x.npy"),
        tensor_with(dst="C:\\x.npy"),
        tensor_with(src="/etc/hostname"),
        tensor_with(dims=[1 << 40]),
        scenario_with(_another_command),
        scenario_with(_another_graph),
    ],
)
def test_a_scenario_that_does_not_follow_from_its_vgf(tmp_path: Path, capfd: Capture, change: Change) -> None:
    path = changed(SMOKE, tmp_path, change)
    for answer in (call(capfd, "verify", path), call(capfd, "unpack", path, "-o", tmp_path / "device")):
        refused(answer, "member objects/", ".json: is not the scenario of its VGF")
    assert not (tmp_path / "device").exists()


def test_what_is_unpacked_is_derived(tmp_path: Path) -> None:
    # Without verify: not even then does a stranger's scenario get out.
    path = changed(SMOKE, tmp_path, tensor_with(dst="../../x.npy"))
    with open_pack(path) as pack:
        unpack(pack, tmp_path / "device")
        case = pack.manifest.cases[0]
    document = json.loads((tmp_path / "device" / case.folder / "call0" / "scenario.json").read_text())
    named = [resource["tensor"] for resource in document["resources"][1:]]
    assert [tensor.get("src", tensor.get("dst")) for tensor in named] == ["input0.npy", "output0.npy"]


def case_with(**fields: str) -> Change:
    """Changes parts of the first case's name, and its id with them."""

    def apply(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
        case = manifest["cases"][0]
        case.update(fields)
        parts = "-".join(case[part] for part in ("sample", "profile", "scheme"))
        case["id"] = f"suites/{case['file']}::{case['case']}[{parts}]"

    return apply


def _upper(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    first, second = manifest["cases"][:2]
    second.update({part: first[part] for part in ("file", "sample", "profile", "scheme")})
    case_with(case="same")(manifest, contents)
    second["case"] = "SAME"
    parts = "-".join(second[part] for part in ("sample", "profile", "scheme"))
    second["id"] = f"suites/{second['file']}::SAME[{parts}]"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (case_with(file="/etc/test_x.py"), "$.cases[0].file"),
        (case_with(file="../test_x.py"), "$.cases[0].file"),
        (case_with(file="a/../../test_x.py"), "$.cases[0].file"),
        (case_with(file="."), "$.cases[0].file"),
        (case_with(file="a" * 150), "$.cases[0].file"),
        (case_with(case="c" * 99, sample="s" * 99), "would have a folder of"),
        (_upper, "two cases have the folder"),
    ],
)
def test_folders_of_cases(tmp_path: Path, capfd: Capture, change: Change, message: str) -> None:
    refused(call(capfd, "unpack", changed(SMOKE, tmp_path, change), "-o", tmp_path / "device"), message)
    assert not (tmp_path / "device").exists()


def test_a_pack_whose_file_has_an_evil_name(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"$(id)\n\x1b]0;x \xff.zip")
    shutil.copy(SMOKE, path)
    with open_pack(path) as pack:
        unpack(pack, tmp_path / "a b;id")
    text = (tmp_path / "a b;id" / "README.txt").read_text()
    assert "\x1b" not in text
    assert "vgf-conformance pack verify '$(id) \\x1b]0;x \\udcff.zip' --outputs 'a b;id'\n" in text


def graph_with(change: Callable[[bytearray], None], of: str = "conv2d[3x3-FP-none]") -> Change:
    """Changes bytes of the TOSA graph of a case."""

    def apply(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
        case = next(case for case in manifest["cases"] if of in case["id"])
        name = case["calls"][0]["tosa"]
        content = bytearray(contents[name])
        change(content)
        replaced(manifest, contents, name, bytes(content))

    return apply


def _no_number_of_inputs(content: bytearray) -> None:
    content[1361] = 0


def _another_name(content: bytearray) -> None:
    content[content.index(b"p_bias")] = ord("q")


def _cut(content: bytearray) -> None:
    del content[len(content) // 2 :]


def _vgf_of_another(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    calls = [case["calls"][0] for case in manifest["cases"]]
    other = next(call for call in calls if call["outputs"][0]["array"] != calls[0]["outputs"][0]["array"])
    replaced(manifest, contents, calls[0]["vgf"], contents[other["vgf"]])


def _vgf_cut(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    name = manifest["cases"][0]["calls"][0]["vgf"]
    replaced(manifest, contents, name, contents[name][:200])


@pytest.mark.parametrize(
    ("change", "member"),
    [
        (graph_with(_no_number_of_inputs), ".tosa: not a sound TOSA graph: CONV2D reads 'p_bias' before"),
        (graph_with(_another_name), ".tosa: not a TOSA flatbuffer: tensors used but not declared"),
        (graph_with(_cut), ".tosa: not a TOSA flatbuffer: "),
        (_vgf_of_another, ".vgf: "),
        (_vgf_cut, ".vgf: not a valid VGF file: "),
    ],
)
def test_members_that_cannot_be_judged_by(
    tmp_path: Path, capfd: Capture, change: Change, member: str
) -> None:
    path = changed(SMOKE, tmp_path, change)
    for answer in (call(capfd, "verify", path), call(capfd, "run", path, "-o", tmp_path / "results")):
        refused(answer, "member objects/", member)
    assert not (tmp_path / "results").exists()


def test_whatever_judging_raises_is_the_record_of_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, seen = judge_device, []

    def raising(*arguments: Any, **options: Any) -> Any:
        seen.append(1)
        if len(seen) == 2:
            raise IndexError("list index out of range")
        return judge(*arguments, **options)

    with open_pack(SMOKE) as pack:
        unpack(pack, tmp_path / "device")
        for expected in (tmp_path / "device").glob("*/*/expected*.npy"):
            expected.rename(expected.with_name(expected.name.replace("expected", "output")))
        monkeypatch.setattr(run, "judge_device", raising)
        records = judge_outputs(pack, tmp_path / "device")
    assert [record.verdict for record in records[:3]] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS]
    assert records[1].finding is Finding.RAISED
    assert "IndexError" in records[1].message
    assert len(records) == len(pack.manifest.cases)


def text_with(text: str) -> Change:
    def apply(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
        manifest["cases"][0]["known_failure"] = text

    return apply


@pytest.mark.parametrize(
    "text", ["\ud800", "a\u202eb", "a\u2066b", "\u200b", "\x9b2J", "\U000e0041", "\u0378"]
)
def test_texts_that_cannot_be_shown(tmp_path: Path, capfd: Capture, text: str) -> None:
    answer = call(capfd, "verify", changed(SMOKE, tmp_path, text_with(text)))
    refused(answer, "member manifest.json: ")
    assert text not in answer.err


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"schema": ' + b"9" * 5000 + b"}",
        b'{"schema": 1, "schema": 1}',
        b'{"schema": NaN}',
        b'{"schema": 1e999}',
    ],
)
def test_manifests_that_are_no_plain_json(tmp_path: Path, capfd: Capture, content: bytes) -> None:
    refused(call(capfd, "verify", written(tmp_path, content, {})), "member manifest.json: ")


def test_cases_that_read_the_same_bytes_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vgf_conformance.packs.pack.TOTAL_LIMIT", 100_000)
    with pytest.raises(UserError, match=r"its cases would read \d+ bytes"), open_pack(SMOKE):
        pass


def zipped(path: Path, *names: str, content: bytes = b"x") -> Path:
    with ZipFile(path, "w") as archive:
        archive.writestr(MANIFEST, members(SMOKE)[MANIFEST])
        for name in names:
            archive.writestr(ZipInfo(name), content)
    return path


@pytest.mark.parametrize("name", ["", "\0", "x" * 60_000, "a\x1b[2Jb/", "..", "objects/\u202e.npy"])
def test_names_of_members(tmp_path: Path, capfd: Capture, name: str) -> None:
    answer = call(capfd, "verify", zipped(tmp_path / "odd.zip", name))
    refused(answer, "odd.zip")
    assert len(answer.err) < 1000


def archive_of(entries: bytes, count: int, comment: bytes = b"") -> bytes:
    """A zip archive that is nothing but a list of members."""
    end = (b"PK\5\6", 0, 0, count & 0xFFFF, count & 0xFFFF, len(entries), 0, len(comment))
    return entries + struct.pack("<4s4H2LH", *end) + comment


def entry(name: bytes = b"a", extra: bytes = b"", comment: bytes = b"") -> bytes:
    fields = (b"PK\1\2", 20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), len(extra), len(comment), 0, 0, 0, 0)
    return struct.pack("<4s6H3L5H2L", *fields) + name + extra + comment


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive_of(entry() * (directory.COUNT_LIMIT + 1), 65535), "100001 members, more than any pack has"),
        (archive_of(entry(extra=bytes(65_532)) * 20, 20), "a member has a comment, or fields"),
        (archive_of(entry(comment=bytes(60_000)) * 20, 20), "a member has a comment, or fields"),
        (archive_of(entry(), 1, archive_of(entry(), 1)), "two ends of a zip archive"),
        (archive_of(entry()[:-5], 1), "the list of its members is damaged"),
        (b"PK\5\6", "no end of a zip archive"),
    ],
)
def test_lists_of_members_that_would_take_for_ever(
    tmp_path: Path, capfd: Capture, content: bytes, message: str
) -> None:
    path = tmp_path / "list.zip"
    path.write_bytes(content)
    refused(call(capfd, "verify", path), "not a pack: no zip archive, or cut short", message)


def test_members_that_lie_over_each_other(tmp_path: Path, capfd: Capture) -> None:
    path = zipped(tmp_path / "odd.zip", "objects/0123456789abcdef.npy", "objects/1123456789abcdef.npy")
    content = bytearray(path.read_bytes())
    last = content.rindex(b"PK\1\2")
    before = content.rindex(b"PK\1\2", 0, last)
    content[last + 42 : last + 46] = content[before + 42 : before + 46]
    path.write_bytes(content)
    refused(call(capfd, "verify", path), "lies over another")


def test_a_member_gives_no_more_than_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("member", bytes(64 << 20))
    content = bytearray(path.read_bytes())
    for mark, crc, size in ((b"PK\3\4", 14, 22), (b"PK\1\2", 16, 24)):
        at = content.index(mark)
        content[at + size : at + size + 4] = struct.pack("<L", 10)
        content[at + crc : at + crc + 4] = struct.pack("<L", zlib.crc32(bytes(10)))
    path.write_bytes(content)
    with Archive(path) as archive_read:
        assert archive_read.read("member") == bytes(10)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to(SMOKE)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_pipe, _link, _loop, _device, Path.mkdir])
@pytest.mark.parametrize("action", ["verify", "list"])
def test_what_is_no_regular_file(
    tmp_path: Path, capfd: Capture, make: Callable[[Path], None], action: str
) -> None:
    make(tmp_path / "pack.zip")
    refused(call(capfd, action, tmp_path / "pack.zip"), "pack.zip: is a ")


@pytest.mark.parametrize("name", ["x" * 5000, "/".join(["y" * 200] * 30)])
def test_names_that_the_system_refuses(tmp_path: Path, capfd: Capture, name: str) -> None:
    refused(call(capfd, "verify", tmp_path / name), "File name too long")
    refused(call(capfd, "unpack", SMOKE, "-o", tmp_path / name), "File name too long")
    refused(call(capfd, "verify", SMOKE, "--outputs", tmp_path / name), "File name too long")


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A folder with outputs of the smoke pack's first case."""
    with open_pack(SMOKE) as pack:
        unpack(pack, tmp_path / "device")
        return tmp_path / "device" / pack.manifest.cases[0].folder / "call0"


def _linked_output(folder: Path) -> None:
    (folder / "output0.npy").symlink_to(folder / "expected0.npy")


def _linked_call(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def _piped(folder: Path) -> None:
    os.mkfifo(folder / "output0.npy")


def _sparse(folder: Path) -> None:
    with (folder / "output0.npy").open("wb") as file:
        file.truncate(5 << 30)


def _folder(folder: Path) -> None:
    (folder / "output0.npy").mkdir()


def _file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def _greedy(folder: Path) -> None:
    (folder / "output0.npy").write_bytes(
        headed("{'descr': '|S0', 'fortran_order': False, 'shape': (10**13,), }")
    )


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (_linked_output, "output0.npy: is a link"),
        (_linked_call, "call0: is a link, not a folder"),
        (_piped, "output0.npy: is a pipe"),
        (_sparse, "output0.npy: is too large: 5368709120 bytes"),
        (_folder, "output0.npy: is a folder"),
        (_file_for_folder, "call0: is a file, not a folder"),
        (_greedy, "output0.npy: is no .npy file"),
    ],
)
def test_outputs_of_a_stranger(
    device: Path, capfd: Capture, fault: Callable[[Path], None], message: str
) -> None:
    fault(device)
    refused(call(capfd, "verify", SMOKE, "--outputs", device.parents[1]), message)


def headed(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    """A ``.npy`` file with that header."""
    length = len(header).to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + length + header.encode("latin-1") + data


def described(descr: str = "'<f4'", shape: str = "(1,)", more: str = "") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, {more}}}"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (described("'|S0'", "(10000000000000,)"), "holds no plain numbers"),
        (described("'<f4'", "(10000000000000,)"), "holds 4 bytes of data, its header says 40000000000000"),
        (described("'<f4'", f"({'9' * 5000},)"), "its shape is none"),
        (described("'<f4'", f"({'1, ' * 40})"), "has 40 axes, where 32 are the most"),
        (described("'<f4'", "(0, 9223372036854775807)"), "is empty, with axes that no array has"),
        (described("'<f4'", "(-1,)"), "its shape is none"),
        (described("__import__('os').system('id')"), "none that numpy writes"),
        (described(shape="(1 if 1 else 1,)"), "its shape is none"),
        (described("'|O'"), "holds pickled Python objects"),
        (described("[('a', '<f4')]"), "holds no plain numbers"),
        (described("'<c8'"), "holds no plain numbers"),
        (described("'<f16'"), "holds no plain numbers"),
        (described("'<M8[ns]'"), "holds no plain numbers"),
        (described(more="'extra': True"), "none that numpy writes"),
        (described(more="'shape': (2,)"), "none that numpy writes"),
        ("{", "none that numpy writes"),
        ("(" * 9000, "none that numpy writes"),
        ("{" + " " * 9000, "none that numpy writes"),
        (" " * 20_000, "a header of 20000 bytes"),
        ("\0" * 100, "none that numpy writes"),
    ],
)
@pytest.mark.parametrize("version", [b"\1\0", b"\2\0"])
def test_headers_of_arrays_are_not_evaluated(header: str, message: str, version: bytes) -> None:
    with pytest.raises(Malformed, match=message):
        read_npy(headed(header, b"\0" * 4, version))


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"\x93NUMPY\3\0" + bytes(9), b"\x93NUMPY\1\0\xff\xff{"]
)
def test_arrays_cut_short(content: bytes) -> None:
    with pytest.raises(Malformed, match=r"is no \.npy file"):
        read_npy(content)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "<i2", "<u4", "<i8", "<f2", "<f4", "<f8", ">f4"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numbers_are_read(dtype: str, shape: tuple[int, ...], order: str) -> None:
    array = np.ones(shape, dtype, order=order)  # type: ignore[call-overload]
    read = read_npy(npy(array))
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
