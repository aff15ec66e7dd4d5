"""Packs that were damaged, and packs that somebody made to do harm."""

from __future__ import annotations

import io
import json
import pickle
import random
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.packs.helpers import call, changed, members, refused, replaced, written
from vgf_conformance.formats.arrays import read_npy
from vgf_conformance.packs.archive import MANIFEST
from vgf_conformance.packs.manifest import SCHEMA_VERSION, Manifest
from vgf_conformance.packs.pack import Pack, open_pack
from vgf_conformance.vocabulary import UserError

Capture = pytest.CaptureFixture[str]


def test_a_sound_pack(small: Path, capfd: Capture) -> None:
    answer = call(capfd, "verify", small)
    assert answer.code == 0
    assert answer.out.startswith(f"{small}: 3 cases with 3 delegate calls, 2 left out; TOSA 1.0.0; built by")
    assert "\nSHA-256 " in answer.out


def test_every_single_byte_change_is_found(small: Path, tmp_path: Path) -> None:
    sound, path = small.read_bytes(), tmp_path / "damaged.zip"
    chance = random.Random(6)  # noqa: S311 - damage, not a secret
    for _ in range(200):
        damaged = bytearray(sound)
        damaged[chance.randrange(len(sound))] ^= chance.randrange(1, 256)
        path.write_bytes(damaged)
        with pytest.raises(UserError) as caught, open_pack(path) as pack:
            pack.verify()
        assert str(caught.value).startswith(f"{path}: ")
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_pack(small: Path, tmp_path: Path, capfd: Capture, share: float) -> None:
    path = tmp_path / "cut.zip"
    path.write_bytes(small.read_bytes()[: int(share * small.stat().st_size)])
    refused(call(capfd, "verify", path), "not a pack: no zip archive, or cut short")


def test_an_altered_member_is_named_with_its_hash(small: Path, tmp_path: Path, capfd: Capture) -> None:
    def change(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
        member = manifest["cases"][0]["calls"][0]["vgf"]
        contents[member] = contents[member][:-1] + b"?"

    path = changed(small, tmp_path, change)
    with open_pack(small) as pack:
        name = pack.manifest.cases[0].calls[0].vgf
        wanted = pack.manifest.members[name].sha256
    refused(call(capfd, "verify", path), f"member {name}: altered: its SHA-256 is", f"manifest says {wanted}")


def test_a_member_with_a_damaged_stream_is_named_with_its_hash(
    small: Path, tmp_path: Path, capfd: Capture
) -> None:
    with zipfile.ZipFile(small) as archive:
        info = archive.infolist()[1]
    damaged = bytearray(small.read_bytes())
    damaged[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 255
    path = tmp_path / "damaged.zip"
    path.write_bytes(damaged)
    digest = json.loads(members(small)[MANIFEST])["members"][info.filename]["sha256"]
    refused(call(capfd, "verify", path), f"member {info.filename}: damaged", f"should be {digest}")


def test_bytes_outside_the_members_count_too(small: Path, tmp_path: Path, capfd: Capture) -> None:
    damaged = bytearray(small.read_bytes())
    damaged[10] ^= 1  # the time of the first member
    path = tmp_path / "damaged.zip"
    path.write_bytes(damaged)
    refused(call(capfd, "verify", path), "altered: its SHA-256 is")


def _newer(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["schema"] = SCHEMA_VERSION + 1


def _wrong_shape(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["cases"][0]["calls"] = {}


def _unknown_field(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["run"] = "rm"


def _control_characters(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["tool"] = "\x1b[2J"


def _missing(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    del contents[sorted(contents)[0]]


def _extra(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    contents["objects/extra.npy"] = b""


def _unused(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    replaced(manifest, contents, "objects/0123456789abcdef.npy", b"")


def _undeclared(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    del manifest["members"][manifest["cases"][0]["calls"][0]["vgf"]]


def _other_size(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    next(iter(manifest["members"].values()))["size"] += 1


def _doubled_case(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["cases"].append(manifest["cases"][0])


def _other_name(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["cases"][0]["case"] = "other"


def _climbing_case(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["cases"][0]["case"] = "../../climbing\n"


def _climbing_member(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    contents["../climbing"] = b""


def _absolute_member(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    contents["/climbing"] = b""


def _windows_member(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    contents["..\\climbing"] = b""


def _other_dtype(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["cases"][1]["calls"][0]["inputs"][0]["dtype"] = "float16"


def _other_array_shape(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    manifest["cases"][1]["calls"][0]["inputs"][0]["shape"] = [5, 3]


def _fewer_inputs(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    call = manifest["cases"][2]["calls"][0]
    dropped = call["inputs"].pop()["member"]
    del manifest["members"][dropped], contents[dropped]


def _graph_of_nothing(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    replaced(manifest, contents, manifest["cases"][0]["calls"][0]["tosa"], b"    TOSA" + bytes(40))


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("executed",)


def _pickled(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    file = io.BytesIO()
    np.save(file, np.array([_Evil()], dtype=object), allow_pickle=True)
    replaced(manifest, contents, manifest["cases"][0]["calls"][0]["inputs"][0]["member"], file.getvalue())


def _bare_pickle(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    content = pickle.dumps(_Evil())
    replaced(manifest, contents, manifest["cases"][0]["calls"][0]["inputs"][0]["member"], content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_newer, f"schema {SCHEMA_VERSION + 1}, but this version reads up to {SCHEMA_VERSION}"),
        (_wrong_shape, "member manifest.json: $.cases[0].calls: {} is not of type 'array'"),
        (_unknown_field, "'run' was unexpected"),
        (_control_characters, "$.tool"),
        (_missing, "missing"),
        (_extra, "member objects/extra.npy: the manifest does not list it"),
        (_unused, "declared, but used by no case"),
        (_undeclared, "used by a case, but not declared"),
        (_other_size, "bytes, the manifest says"),
        (_doubled_case, "two cases have the id"),
        (_other_name, "by its parts"),
        (_climbing_case, "$.cases[0].case"),
        (_climbing_member, "member '../climbing' leaves the pack's folder"),
        (_absolute_member, "member '/climbing' leaves the pack's folder"),
        (_windows_member, "leaves the pack's folder"),
        (_other_dtype, "holds float32, should be float16"),
        (_other_array_shape, "has shape [3, 5], the manifest says [5, 3]"),
        (_fewer_inputs, "the graph has 2 inputs, the call 1"),
        (_graph_of_nothing, "not a TOSA flatbuffer"),
        (_pickled, "holds pickled Python objects, which are never read"),
        (_bare_pickle, "is no .npy file"),
    ],
)
def test_a_pack_made_to_harm_is_refused(
    small: Path,
    tmp_path: Path,
    capfd: Capture,
    change: Callable[[dict[str, Any], dict[str, bytes]], None],
    message: str,
) -> None:
    path = changed(small, tmp_path, change)
    results = tmp_path / "results"
    for answer in (
        call(capfd, "verify", path),
        call(capfd, "run", path, "-o", results),
        call(capfd, "unpack", path, "-o", results),
    ):
        refused(answer, str(path), message)
        assert "executed" not in answer.out + answer.err
    assert not results.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"[" * 100_000, b"\xff\xfe", b"{}"])
def test_a_manifest_that_is_none(tmp_path: Path, capfd: Capture, content: bytes) -> None:
    refused(call(capfd, "verify", written(tmp_path, content, {})), "member manifest.json: ")


def test_what_is_no_pack_at_all(tmp_path: Path, capfd: Capture) -> None:
    refused(call(capfd, "verify", tmp_path / "none.zip"), "none.zip: no such file")
    refused(call(capfd, "verify", tmp_path), "is a folder, not a regular file")
    text = tmp_path / "text.zip"
    text.write_text("not a zip")
    refused(call(capfd, "verify", text), "not a pack: no zip archive")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "another archive")
    refused(call(capfd, "verify", tmp_path / "other.zip"), "it has no manifest.json")


def _plain(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)


def _link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def _packed_otherwise(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_LZMA
    return info


@pytest.mark.parametrize(
    ("infos", "message"),
    [
        ([_link("objects/0123456789abcdef.npy")], "is no plain file"),
        ([_plain("objects/")], "is no plain file"),
        ([_packed_otherwise("objects/0123456789abcdef.npy")], "packed in a way that no pack is"),
        ([_plain("\x1b[31m.npy"), _plain("\x1b[31m.npy")], "member '\\x1b[31m.npy' is there twice"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_no_pack_has(
    small: Path, tmp_path: Path, capfd: Capture, infos: list[zipfile.ZipInfo], message: str
) -> None:
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MANIFEST, members(small)[MANIFEST])
        for info in infos:
            archive.writestr(info, b"/etc/passwd", compress_type=info.compress_type)
    refused(call(capfd, "verify", path), message)


def test_a_decompression_bomb_is_not_unpacked(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(MANIFEST, "w", force_zip64=True) as file,
    ):
        for _ in range(64):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 100_000
    refused(call(capfd, "verify", path), "a decompression bomb")


def test_an_array_takes_no_more_memory_than_its_bytes() -> None:
    file = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 50,)}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
    with pytest.raises(ValueError, match="its header says"):
        read_npy(file.getvalue())


@pytest.mark.parametrize(
    "array", [np.zeros((2, 0), np.int8), np.asfortranarray(np.arange(6.0).reshape(2, 3))]
)
def test_arrays_as_numpy_writes_them_are_read(array: np.ndarray[Any, Any]) -> None:
    file = io.BytesIO()
    np.save(file, array)
    np.testing.assert_array_equal(read_npy(file.getvalue()), array)


def test_a_manifest_survives_writing_and_reading(pack: Pack) -> None:
    assert Manifest.decode(pack.manifest.encode()) == pack.manifest
