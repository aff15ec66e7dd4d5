"""Submissions that were tampered with, and some that somebody made to do harm."""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.packs.helpers import changed
from tests.qualification.conftest import DEVICE
from tests.qualification.tamper import Lines, cases, lines, reseal, runs, shard_with, statement, write
from vgf_conformance.cli import main
from vgf_conformance.packs.pack import Pack, open_pack
from vgf_conformance.qualification.verification import Verification
from vgf_conformance.qualification.verify import verify
from vgf_conformance.vocabulary import UserError

TODAY = datetime.date(2026, 11, 30)
PAIR = "suites/operators/test_small.py::pair[rank2-FP-none]"
NARROW = "suites/operators/test_small.py::narrow[row-FP+bf16-none]"
WAIVER = f"""
[[waiver]]
case = "suites/operators/test_small.py::pair[[]*"
cases = 1
device = "{DEVICE}"
reason = "known"
link = "https://example.org/1"
expires = 2026-11-30
""".replace("[[]", "[")


def verified(folder: Path, pack: Pack, *mandatory: str) -> Verification:
    return verify(folder, pack, mandatory, TODAY)


def refused(folder: Path, pack: Pack, *words: str) -> None:
    """Refused, and each of ``words`` is in some reason; every reason is one printable line."""
    reasons = verified(folder, pack).reasons
    assert reasons
    assert all(reason.isprintable() for reason in reasons)
    for word in words:
        assert any(word in reason for reason in reasons), reasons


def test_a_sound_submission_is_accepted(sound: Path, pack: Pack) -> None:
    found = verified(sound, pack, PAIR)
    assert found.reasons == []
    assert found.summary() == (
        "accepted: target emulation (emulation layers: graph and tensor), 0 waived, 0 unsupported by the "
        f"device, 3 cases: a fake driver on {DEVICE}, fakes 1.0"
    )


# The ten ways of the acceptance; the first needs a failure, and so do waivers.


def test_a_changed_verdict(failing: Path, pack: Pack) -> None:
    def passing(documents: Lines) -> None:
        for document in cases(documents):
            document.update(verdict="pass", stage=None, finding=None, message="", unexpected=False)

    runs(failing / "shard-1-of-1", passing)
    refused(
        failing, pack, "pair[rank2-FP-none-emulation]: pass in the results, but by its outputs fail at run"
    )


def test_a_changed_output(sound: Path, pack: Pack) -> None:
    shard = shard_with(sound, "pair")
    (record,) = (item for item in cases(lines(shard / "run1.jsonl")) if item["case"] == "pair")
    old = record["outputs"][0][1]["sha256"]
    array = np.load(shard / f"outputs/{old}.npy")
    array[1, 2] += 1
    new = put(shard, array)
    (shard / f"outputs/{old}.npy").unlink()
    for name in ("run1.jsonl", "run2.jsonl"):
        (shard / name).write_text((shard / name).read_text().replace(old, new))
    reseal(shard)
    refused(sound, pack, "pass in the results, but by its outputs fail at run (wrong): output 1, 1 of 15")


def put(shard: Path, array: np.ndarray) -> str:  # type: ignore[type-arg]
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    digest = hashlib.sha256(file.getvalue()).hexdigest()
    (shard / f"outputs/{digest}.npy").write_bytes(file.getvalue())
    return digest


def test_a_dropped_case(sound: Path, pack: Pack) -> None:
    runs(shard_with(sound, "pair"), lambda all_: [item for item in all_ if item.get("case") != "pair"])
    refused(sound, pack, "run1.jsonl: suites/operators/test_small.py::pair[rank2-FP-none-emulation]: missing")


def test_a_doubled_case(sound: Path, pack: Pack) -> None:
    runs(shard_with(sound, "pair"), lambda all_: [*all_, *(i for i in all_ if i.get("case") == "pair")])
    refused(sound, pack, "pair[rank2-FP-none-emulation]: there 2 times")


def test_another_device_in_a_shard(sound: Path, pack: Pack) -> None:
    shard = sound / "shard-2-of-2"

    def other(documents: Lines) -> None:
        for document in documents:
            if document["type"] == "run":
                document["device"]["name"] = "Fake 9001"

    runs(shard, other)
    refused(sound, pack, "shard 2/2: run1.jsonl: run with another device than the statement's")
    device = json.loads((shard / "statement.json").read_text())["device"]
    statement(shard, device={**device, "name": "Fake 9001"})
    refused(sound, pack, "shard 2/2: another device than shard 1/2: ")
    refused(sound, pack, "shard 2/2: the capability report is of another device: ")


def lacks(shard: Path, formats: list[str]) -> None:
    """Make ``narrow``, which is in bfloat16, unsupported, on a device that has these formats."""

    def unsupported(documents: Lines) -> None:
        for document in cases(documents):
            if document["case"] == "narrow":
                document.update(verdict="unsupported", stage="run", finding="capability", outputs=[])
                document["message"] = f"{DEVICE} lacks tensors of bfloat16 in data graphs"

    report = json.loads((shard / "capabilities.json").read_text())
    report["device"]["formats"] = formats
    (shard / "capabilities.json").write_text(json.dumps(report))
    named = {
        item["sha256"] for doc in cases(lines(shard / "run1.jsonl")) for c in doc["outputs"] for item in c
    }
    runs(shard, unsupported)
    still = {
        item["sha256"] for doc in cases(lines(shard / "run1.jsonl")) for c in doc["outputs"] for item in c
    }
    for gone in named - still:
        (shard / f"outputs/{gone}.npy").unlink()
    reseal(shard)


def test_what_a_device_cannot_do_needs_no_waiver_unless_it_is_mandatory(sound: Path, pack: Pack) -> None:
    lacks(shard_with(sound, "narrow"), ["int8", "float32"])
    found = verified(sound, pack)
    assert (found.reasons, found.lacking) == ([], [NARROW])
    assert verified(sound, pack, NARROW).reasons == [f"{NARROW}: unsupported, and no waiver says why"]


def test_what_a_device_can_do_is_not_unsupported(sound: Path, pack: Pack) -> None:
    lacks(shard_with(sound, "narrow"), ["int8", "float32", "bfloat16"])
    refused(sound, pack, f"{NARROW}: unsupported in the results, but the device can by its capability report")


def test_a_waiver_holds_to_its_day(failing: Path, pack: Pack) -> None:
    refused(failing, pack, f"{PAIR}: fail, and no waiver says why")
    (failing / "waivers.toml").write_text(WAIVER)
    found = verified(failing, pack)
    assert (found.reasons, found.waived) == ([], [PAIR])


def test_an_expired_waiver(failing: Path, pack: Pack) -> None:
    (failing / "waivers.toml").write_text(WAIVER.replace("11-30", "11-29"))
    refused(failing, pack, "pair[*): expired on 2026-11-29")


def test_a_stale_waiver(sound: Path, pack: Pack) -> None:
    (sound / "waivers.toml").write_text(WAIVER)
    refused(sound, pack, f"pair[*): stale: {PAIR} passes")


def test_another_pack(sound: Path, small: Path, tmp_path: Path) -> None:
    with open_pack(changed(small, tmp_path, lambda manifest, contents: manifest.update(tool="9"))) as other:
        refused(sound, other, "of another pack: its SHA-256 is ")


@pytest.mark.parametrize("name", ["notes.txt", "shard-1-of-2/report.html", "shard-1-of-2/outputs/x.py"])
def test_an_extra_file(name: str, sound: Path, pack: Pack) -> None:
    (sound / name).write_text("hello")
    reseal(sound / "shard-1-of-2")
    refused(sound, pack, f"{name.removeprefix('shard-1-of-2/')}: no ")


def test_an_output_that_no_record_names(sound: Path, pack: Pack) -> None:
    digest = put(sound / "shard-1-of-2", np.zeros(3))
    reseal(sound / "shard-1-of-2")
    refused(sound, pack, f"outputs/{digest}.npy: no record names it")


def test_another_order(failing: Path, pack: Pack) -> None:
    runs(failing / "shard-1-of-1", lambda all_: [*all_[:2], *reversed(all_[2:])])
    refused(failing, pack, "run1.jsonl: out of order: ")


# Further ones.


def test_a_change_that_leaves_hashes_alone(sound: Path, pack: Pack) -> None:
    path = sound / "shard-1-of-2" / "run2.log"
    path.write_text(path.read_text() + "all is well\n")
    refused(sound, pack, "shard 1/2: run2.log: altered: its SHA-256 is not the statement's")


def test_runs_that_differ(sound: Path, pack: Pack) -> None:
    shard = shard_with(sound, "pair")
    documents = lines(shard / "run2.jsonl")
    for document in cases(documents):
        document["outputs"][0].reverse()
    write(shard / "run2.jsonl", documents)
    reseal(shard)
    refused(sound, pack, "pair[rank2-FP-none-emulation]: the two runs gave other outputs")


def test_a_failure_that_is_none(failing: Path, sound: Path, pack: Pack) -> None:
    def failed(documents: Lines) -> None:
        for document in cases(documents):
            document.update(verdict="fail", stage="run", finding="wrong", message="off", unexpected=True)

    runs(shard_with(sound, "pair"), failed)
    refused(sound, pack, "pair[rank2-FP-none-emulation]: fail in the results, but by its outputs pass")


def test_a_case_told_as_another(sound: Path, pack: Pack) -> None:
    def other(documents: Lines) -> None:
        cases(documents)[0]["operator"] = "aten.nothing.default"

    runs(shard_with(sound, "pair"), other)
    refused(sound, pack, "its operator is 'aten.nothing.default', in the pack ")


def test_a_lost_shard(sound: Path, pack: Pack) -> None:
    gone = shard_with(sound, "pair")
    count = len(cases(lines(gone / "run1.jsonl")))
    shutil.rmtree(gone)
    refused(sound, pack, f"is missing: {count} cases")


def test_a_mandatory_case_that_is_not_in_the_pack(sound: Path, pack: Pack) -> None:
    case = "suites/operators/test_small.py::pair[rank9-FP-none]"
    assert verified(sound, pack, case).reasons == [f"{case}: mandatory, but not in the pack"]


def test_another_tool(sound: Path, pack: Pack) -> None:
    statement(sound / "shard-1-of-2", tool={"version": "0.0.1", "sha256": "0" * 64})
    refused(sound, pack, "shard 1/2: made by vgf-conformance 0.0.1 (0000000000000000), but this is ")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (f'"{DEVICE}"', '"another"', f"for the device another, but this is {DEVICE}"),
        ("pair", "nothing", "matches no case of the pack"),
        (
            'reason = "known"',
            "",
            "waiver 1: it has case, device, reason, link, expires, and for a pattern cases, and nothing else",
        ),
        ('"known"', '""', "waiver 1: reason is no text"),
        ("2026-11-30", '"2026-11-30"', "waiver 1: expires is no date"),
        ("2026-11-30", "2026-11-30T10:00:00", "waiver 1: expires is no date"),
        ("[[waiver]]", "[waiver]", "[[waiver]] tables and nothing else"),
        ("[[waiver]]", "[[waiver", "waivers.toml: not TOML"),
    ],
)
def test_waivers_that_do_not_hold(old: str, new: str, words: str, failing: Path, pack: Pack) -> None:
    (failing / "waivers.toml").write_text(WAIVER.replace(old, new))
    refused(failing, pack, words)


def _link(shard: Path) -> None:
    (shard / "run1.log").unlink()
    (shard / "run1.log").symlink_to("/etc/passwd")


def _pipe(shard: Path) -> None:
    (shard / "run1.jsonl").unlink()
    os.mkfifo(shard / "run1.jsonl")


def _linked_outputs(shard: Path) -> None:
    shutil.move(shard / "outputs", shard.parent.parent / "elsewhere")
    (shard / "outputs").symlink_to(shard.parent.parent / "elsewhere")


def _outside(shard: Path) -> None:
    files = json.loads((shard / "statement.json").read_text())["files"]
    statement(shard, files={**files, "../../../etc/passwd": "0" * 64})


def _bomb(shard: Path) -> None:
    with (shard / "run1.jsonl").open("r+b") as file:
        file.truncate(5 << 30)


def _large_statement(shard: Path) -> None:
    with (shard / "statement.json").open("r+b") as file:
        file.truncate(100 << 20)


def _deep(shard: Path) -> None:
    (shard / "run1.jsonl").write_text("[" * 100_000 + "\n")


def _not_utf8(shard: Path) -> None:
    (shard / "run1.jsonl").write_bytes(b'{"type": "run", "schema": 4, "x": "\xff"}\n')


def _half(shard: Path) -> None:
    content = (shard / "run1.jsonl").read_bytes()
    (shard / "run1.jsonl").write_bytes(content[:-20])


def _control(shard: Path) -> None:
    (shard / "a\x1b[31mb").write_text("")


def _newer(shard: Path) -> None:
    statement(shard, schema=99)


def _no_json(shard: Path) -> None:
    (shard / "capabilities.json").write_text("{")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (_link, "run1.log: is a link"),
        (_pipe, "run1.jsonl: is no plain file"),
        (_linked_outputs, "outputs: no file of a submission"),
        (_outside, "../../../etc/passwd: the statement lists it, but it is not there"),
        (_bomb, "more than any file of a submission"),
        (_large_statement, "statement.json: is too large: 104857600 bytes"),
        (_deep, "run1.jsonl:1: not JSON: nested deeper than 64 levels"),
        (_not_utf8, "run1.jsonl:1: not UTF-8"),
        (_half, "its last line is torn"),
        (_control, "a\\x1b[31mb: no file of a submission"),
        (_newer, "statement.json: schema 99, but this version reads up to 1"),
        (_no_json, "capabilities.json: not JSON"),
    ],
)
def test_harm_is_refused(fault: Callable[[Path], None], words: str, sound: Path, pack: Pack) -> None:
    fault(shard_with(sound, "pair"))
    refused(sound, pack, words)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([{}], dtype=object), "holds pickled Python objects"),
        (np.zeros(100_000), "is too large: 800128 bytes"),
        (np.zeros((3, 6), np.float32), "fail at run (wrong)"),
    ],
)
def test_outputs_that_are_none(
    array: np.ndarray,  # type: ignore[type-arg]
    words: str,
    sound: Path,
    pack: Pack,
) -> None:
    shard = shard_with(sound, "pair")
    digest = put(shard, array)

    def named(documents: Lines) -> None:
        for document in cases(documents):
            if document["case"] == "pair":
                document["outputs"][0][0]["sha256"] = digest

    runs(shard, named)
    refused(sound, pack, words)


def test_a_folder_of_something_else(tmp_path: Path, pack: Pack) -> None:
    for folder, words in ((tmp_path, "no submission"), (tmp_path / "absent", "no such folder")):
        with pytest.raises(UserError, match=words):
            verified(folder, pack)


def test_the_command(sound: Path, small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mandatory = tmp_path / "mandatory.txt"
    mandatory.write_text(f"{PAIR}\n")
    command = ["submission", "verify", str(sound), "--pack", str(small), "--mandatory", str(mandatory)]
    assert main(command) == 0
    assert capfd.readouterr().out.startswith("accepted: target emulation")
    (sound / "notes.txt").write_text("")
    assert main(command) == 1
    assert capfd.readouterr().out.splitlines() == ["notes.txt: no part of a submission (file)", "refused"]
    mandatory.unlink()
    assert main(command) == 2
    assert "no such file" in capfd.readouterr().err
