"""Making submissions: on the emulation layers, cut short and gone on with, and on drivers that misbehave."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.qualification.conftest import machine
from vgf_conformance.cli import main
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.packs.pack import Pack
from vgf_conformance.qualification.mandatory import mandatory_cases
from vgf_conformance.qualification.qualify import qualify
from vgf_conformance.qualification.statement import this_tool
from vgf_conformance.qualification.verify import verify
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.targets.base import Array, Outputs
from vgf_conformance.targets.vulkan import Driver
from vgf_conformance.vocabulary import VGF_TARGETS, UserError

WHOLE = Shard(number=1, of=1)
TODAY = datetime.date(2026, 11, 30)


@pytest.mark.parametrize("target", VGF_TARGETS)
def test_lavapipe_qualifies_without_a_word_of_pytorch(
    target: str, small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, mandatory = tmp_path / "submission", tmp_path / "mandatory.txt"
    mandatory.write_text("suites/operators/test_small.py::absolute[rank1-INT-a8w8-pc]\n")
    command = ["qualify", str(small), "--product", "lavapipe", "--target", target, "-o", str(folder)]
    assert main(command) == 0
    verify = ["submission", "verify", str(folder), "--pack", str(small), "--mandatory", str(mandatory)]
    assert main(verify) == 0
    out = capfd.readouterr().out
    assert f"accepted: target {target} (emulation layers: graph and tensor), 0 waived" in out
    assert ": lavapipe on llvmpipe" in out
    shard = folder / "shard-1-of-1"
    names = {path.name for path in shard.iterdir()}
    assert names == {
        *("statement.json", "capabilities.json", "outputs"),
        *("run1.jsonl", "run2.jsonl", "run1.log", "run2.log"),
    }
    said = json.loads((shard / "statement.json").read_text())
    assert said["product"] == "lavapipe"
    assert said["tool"]["sha256"] == this_tool().sha256
    assert f"absolute[rank1-INT-a8w8-pc-{target}]: pass" in (shard / "run1.log").read_text()


def test_a_driver_that_differs_from_run_to_run(pack: Pack, tmp_path: Path) -> None:
    made = machine("DiffersBetweenRuns")
    try:
        assert not qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()


def test_a_run_that_was_killed_goes_on(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "shard-1-of-1"
    written: list[str] = []
    append = ResultsWriter.append

    def killed(self: ResultsWriter, record: Record) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(record.id)
        append(self, record)

    made = machine("Faithful")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(ResultsWriter, "append", killed)
            with pytest.raises(KeyboardInterrupt):
                qualify(pack, made, "a driver", tmp_path, WHOLE)
        assert not (place / "statement.json").exists()
        (place / "outputs" / f"{'0' * 64}.npy").write_text("of a record that was never written")
        with pytest.raises(UserError, match="was begun with another product"):
            qualify(pack, made, "another driver", tmp_path, WHOLE)
        assert qualify(pack, made, "a driver", tmp_path, WHOLE)
        with pytest.raises(UserError, match="is finished"):
            qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()
    assert not (place / "outputs" / f"{'0' * 64}.npy").exists()
    first, second = (read_results([place / name]) for name in ("run1.jsonl", "run2.jsonl"))
    assert [record.id for record in first.records][:2] == written
    assert [record.outputs for record in first.records] == [record.outputs for record in second.records]
    assert (len(first.runs), len(second.runs)) == (2, 1)


def test_another_device_does_not_go_on(pack: Pack, tmp_path: Path) -> None:
    made = machine("Faithful")
    try:
        qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()
    (tmp_path / "shard-1-of-1" / "statement.json").unlink()
    with pytest.raises(UserError, match="was begun with another device"):
        qualify(pack, machine("Faithful", "another"), "a driver", tmp_path, WHOLE)


def never_run(pack: Pack, folder: Path, words: str, product: str = "a driver", **changes: Any) -> None:
    """Refused before anything runs, or is written into the folder."""
    before = {*folder.rglob("*")}
    made = replace(machine("Faithful", **changes), target=_Unused(changes.get("target", "emulation")))
    with pytest.raises(UserError, match=words) as refused:
        qualify(pack, made, product, folder, WHOLE)
    assert "\n" not in str(refused.value)
    assert {*folder.rglob("*")} - before <= {folder / "shard-1-of-1"}


class _Unused:
    """A target that must not be asked for anything but its name."""

    driver = "fake"

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self, delegates: Sequence[Delegate]) -> None:
        raise AssertionError("loaded")

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        raise AssertionError("run")

    def close(self) -> None:
        raise AssertionError("closed")


@pytest.mark.parametrize("product", ["", "  ", "two\nlines", "\x1b[31m", "\u202ename", "\ud800"])
def test_a_product_is_a_line_of_text(product: str, pack: Pack, tmp_path: Path) -> None:
    never_run(pack, tmp_path, "name the product in one line", product)


def test_what_a_statement_cannot_hold_is_not_run(pack: Pack, tmp_path: Path) -> None:
    never_run(pack, tmp_path, "--product: 100000 characters, where 2000 are the most", "x" * 100_000)
    never_run(pack, tmp_path, r"cannot be described in a statement: \$.device", device="x" * 3000)
    never_run(pack, tmp_path, r"cannot be described in a statement: \$.device", device="a\x1b[31mb")


def test_the_longest_product_is_accepted(pack: Pack, tmp_path: Path) -> None:
    made = machine("Faithful")
    try:
        assert qualify(pack, made, "x" * 2000, tmp_path, WHOLE)
    finally:
        made.target.close()
    assert verify(tmp_path, pack, [], TODAY).reasons == []


def test_no_layers_where_the_device_needs_them(
    pack: Pack, small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = "lacks VK_ARM_data_graph and VK_ARM_tensors"
    never_run(pack, tmp_path, words, target="vulkan", layers=(), extensions=())
    command = ["qualify", str(small), "--product", "x", "--target", "vulkan", "--layers", "none"]
    assert main([*command, "-o", str(tmp_path / "submission")]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert words in line
    assert not (tmp_path / "submission").exists()


def link(path: Path) -> None:
    elsewhere = next(parent for parent in path.parents if parent.name == "submission").parent / "elsewhere"
    elsewhere.write_text("")
    path.symlink_to(elsewhere)


def text(path: Path) -> None:
    path.write_text("notes")


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("notes.txt", text, "notes.txt is no part of a submission"),
        ("shard-1-of-2", Path.mkdir, "shard-1-of-2 is of 2 shards, and this is 1/1"),
        ("shard-1-of-1", text, "shard-1-of-1 is a file, not a folder"),
        ("shard-1-of-1", link, "shard-1-of-1 is a link, not a folder"),
        ("waivers.toml", os.mkfifo, "waivers.toml is no part of a submission"),
        ("shard-1-of-1/notes.txt", text, "notes.txt: is no file of a submission"),
        ("shard-1-of-1/outputs/x.py", text, "x.py: is no file of a submission"),
        ("shard-1-of-1/outputs", link, "outputs: is a link"),
        ("shard-1-of-1/outputs", text, "outputs: is a file"),
        ("shard-1-of-1/run1.jsonl", os.mkfifo, "run1.jsonl: is no plain file"),
        ("shard-1-of-1/run2.log", link, "run2.log: is a link"),
        ("shard-1-of-1/statement.json", os.mkfifo, "is finished"),
    ],
)
def test_what_is_no_part_of_a_submission_is_told_before_the_run(
    name: str, make: Callable[[Path], None], words: str, pack: Pack, tmp_path: Path
) -> None:
    folder = tmp_path / "submission"
    (folder / name).parent.mkdir(parents=True)
    make(folder / name)
    never_run(pack, folder, words)


def test_a_file_is_no_folder(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file", "file/below", "loop", "x" * 5000):
        with pytest.raises(UserError) as refused:
            qualify(pack, machine("Faithful"), "a driver", tmp_path / name, WHOLE)
        assert name in str(refused.value)


def test_what_comes_while_it_runs_is_told_before_it_is_sealed(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = tmp_path / "shard-1-of-1" / "notes.txt"
    append = ResultsWriter.append

    def noting(self: ResultsWriter, record: Record) -> None:
        stray.write_text("so far so good")
        append(self, record)

    made = machine("Faithful")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(ResultsWriter, "append", noting)
            with pytest.raises(UserError, match=r"notes\.txt: is no file of a submission: move it"):
                qualify(pack, made, "a driver", tmp_path, WHOLE)
        assert not (tmp_path / "shard-1-of-1" / "statement.json").exists()
        stray.unlink()
        assert qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()
    assert verify(tmp_path, pack, [], TODAY).reasons == []


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("target", {"target": "vulkan"}),
        ("layers", {"target": "vulkan", "layers": ("Graph",)}),
        ("driver", {"driver": Driver("another", Path("another.json"))}),
    ],
)
def test_another_way_to_run_does_not_go_on(
    what: str, changes: dict[str, Any], pack: Pack, tmp_path: Path
) -> None:
    first = machine("Faithful", target="vulkan" if what == "layers" else "emulation")
    try:
        qualify(pack, first, "a driver", tmp_path, WHOLE)
    finally:
        first.target.close()
    (tmp_path / "shard-1-of-1" / "statement.json").unlink()
    never_run(pack, tmp_path, f"run1.jsonl was begun with another {what}: name another folder", **changes)


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("validation", True),
        ("cpu", "another"),
        ("python", "3.10"),
        ("versions", {"numpy": "0"}),
        ("unused devices", ["a"]),
    ],
)
def test_another_environment_does_not_go_on(what: str, value: Any, pack: Pack, tmp_path: Path) -> None:
    made = machine("Faithful")
    try:
        qualify(pack, made, "a driver", tmp_path, WHOLE)
        (tmp_path / "shard-1-of-1" / "statement.json").unlink()
        with pytest.raises(UserError, match=f"was begun with another {what}"):
            qualify(
                pack, replace(made, described={**made.described, what: value}), "a driver", tmp_path, WHOLE
            )
    finally:
        made.target.close()


def test_the_command_does_not_go_on_with_another_target(
    small: Path, pack: Pack, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shard = Shard.with_artifact(pack.manifest.cases[0].id, 9)
    command = ["qualify", str(small), "--product", "x", "--shard", str(shard), "-o", str(tmp_path)]
    assert main(command) == 0
    (tmp_path / f"shard-{shard.number}-of-9" / "statement.json").unlink()
    capfd.readouterr()
    assert main([*command, "--target", "vulkan"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith("run1.jsonl was begun with another target: name another folder")


def test_a_shard_without_cases_is_whole(pack: Pack, tmp_path: Path) -> None:
    made = machine("Faithful")
    try:
        for number in range(1, 8):
            qualify(pack, made, "a driver", tmp_path, Shard(number=number, of=7))
    finally:
        made.target.close()
    assert any(not (path / "run1.log").read_text() for path in tmp_path.iterdir())
    assert verify(tmp_path, pack, [], TODAY).reasons == []


def test_half_files_of_a_run_that_was_killed_are_removed(pack: Pack, tmp_path: Path) -> None:
    outputs = tmp_path / "shard-1-of-1" / "outputs"
    outputs.mkdir(parents=True)
    for half in (outputs / ".partial-abc_1", outputs.parent / ".partial-statement.json"):
        half.write_text("ha")
    made = machine("Faithful")
    try:
        assert qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()
    assert verify(tmp_path, pack, [], TODAY).reasons == []


def test_an_output_that_was_altered_between_two_starts(pack: Pack, tmp_path: Path) -> None:
    made = machine("Faithful")
    place = tmp_path / "shard-1-of-1"
    try:
        qualify(pack, made, "a driver", tmp_path, WHOLE)
        (place / "statement.json").unlink()
        next(iter((place / "outputs").iterdir())).write_bytes(b"altered")
        with pytest.raises(UserError, match="was altered since it was written"):
            qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff", "not UTF-8"), (b"\n \n", "names no case"), (None, "no such file")],
)
def test_a_list_of_mandatory_cases_that_is_none(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mandatory.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=words):
        mandatory_cases(path)


def test_a_pipe_of_mandatory_cases_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is a pipe, not a regular file"):
        mandatory_cases(tmp_path / "pipe")
