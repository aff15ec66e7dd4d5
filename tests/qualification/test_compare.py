"""Two drivers on the same pack."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.qualification.conftest import submission
from tests.qualification.tamper import Lines, cases, runs, shard_with
from vgf_conformance.cli import main

Capture = pytest.CaptureFixture[str]

PAIR = "suites/operators/test_small.py::pair[rank2-FP-none]"


@pytest.fixture(scope="session")
def last_bit(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver of another device whose exp differs in one bit, within the bound."""
    return submission(small, tmp_path_factory.mktemp("bit") / "submission", "LastBit", 1, "Fake 9001")


@pytest.fixture(scope="session")
def wrong(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver of a third device whose exp is NaN."""
    return submission(small, tmp_path_factory.mktemp("wrong") / "submission", "ReturnsNan", 1, "Fake 9002")


def compared(capfd: Capture, *arguments: object) -> tuple[int, list[str]]:
    capfd.readouterr()
    code = main(["compare", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, (out + err).splitlines()


def row(lines: list[str], operator: str) -> list[str]:
    (found,) = (line.split() for line in lines if line.startswith(operator))
    return found


def test_two_submissions_by_bits_and_ulp(
    sound_once: Path, last_bit: Path, tmp_path: Path, capfd: Capture
) -> None:
    page = tmp_path / "comparison.md"
    code, lines = compared(capfd, sound_once, last_bit, "-o", page)
    assert code == 0
    assert lines[0] == "A: Fake 9000, fakes 1.0, 3 cases"
    assert lines[1] == "B: Fake 9001, fakes 1.0, 3 cases"
    assert row(lines, "aten.exp.default")[1:7] == ["1", "1", "1", "0/1", "1", "ULP"]
    assert row(lines, "aten.abs.default")[1:6] == ["1", "1", "1", "1/1", "–"]  # noqa: RUF001
    assert row(lines, "all")[1:5] == ["3", "3", "3", "2/3"]
    assert f"  {PAIR}  1 ULP, 1 of 15 elements" in lines
    text = page.read_text()
    assert "1 ULP, 1 of 15 elements" in text
    assert "| aten.exp.default |" in text


def test_headroom_is_each_drivers_own(sound_once: Path, last_bit: Path, capfd: Capture) -> None:
    _, there = compared(capfd, sound_once, last_bit)
    _, back = compared(capfd, last_bit, sound_once)
    one, other = (row(lines, "aten.exp.default")[7:] for lines in (there, back))
    # Percentages are a number and a sign each.
    assert one[:2] == other[2:4]
    assert one[2:4] == other[:2]
    assert one[:2] != one[2:4]


def test_other_verdicts(sound_once: Path, wrong: Path, capfd: Capture) -> None:
    code, lines = compared(capfd, sound_once, wrong)
    assert code == 1
    assert "other verdicts: 1" in lines
    assert f"  {PAIR}  pass  fail at run (wrong)" in lines


def test_results_without_raw_outputs(
    failing_once: Path, last_bit: Path, wrong: Path, sound_once: Path, tmp_path: Path, capfd: Capture
) -> None:
    shutil.copy(last_bit / "shard-1-of-1" / "run1.jsonl", tmp_path / "results.jsonl")
    code, lines = compared(capfd, sound_once, tmp_path)
    assert code == 0
    assert f"  {PAIR}  raw outputs are not at hand: compare submissions" in lines


def test_cases_that_one_side_lacks(sound: Path, last_bit: Path, capfd: Capture) -> None:
    def dropped(documents: Lines) -> Lines:
        return [item for item in documents if item.get("case") != "pair"]

    runs(shard_with(sound, "pair"), dropped)
    code, lines = compared(capfd, sound, last_bit)
    assert code == 1
    assert lines[-2:] == ["only B has: 1", f"  {PAIR}"]


def test_runs_on_one_driver_are_compared_as_ever(
    sound_once: Path, failing_once: Path, tmp_path: Path, capfd: Capture
) -> None:
    page = tmp_path / "comparison.md"
    code, lines = compared(capfd, sound_once, failing_once, "-o", page)
    assert code == 1
    assert lines[0] == "new failures: 1"
    assert "new failures: 1" in page.read_text()


def test_outputs_of_another_type_than_the_records_say(
    sound: Path, last_bit: Path, tmp_path: Path, capfd: Capture
) -> None:
    def narrow(documents: Lines) -> None:
        for document in cases(documents):
            for output in document["outputs"][0]:
                output["dtype"] = "bfloat16"

    other = Path(shutil.copytree(last_bit, tmp_path / "other"))
    runs(shard_with(sound, "pair"), narrow)
    runs(other / "shard-1-of-1", narrow)
    code, lines = compared(capfd, sound, other)
    assert code == 2
    assert "an output called bfloat16 holds float32, should be bfloat16" in lines[0]


def test_bad_input(sound: Path, last_bit: Path, tmp_path: Path, capfd: Capture) -> None:
    def told(folder: Path, *more: object) -> str:
        code, lines = compared(capfd, folder, last_bit, *more)
        assert code == 2
        assert len(lines) <= 1 or more
        return lines[-1]

    assert "cannot write" in told(sound, "-o", tmp_path)
    shard = shard_with(sound, "pair")
    for output in (shard / "outputs").iterdir():
        output.write_bytes(output.read_bytes() + b"x")
    assert "altered: its SHA-256 is not that of its name" in told(sound)
    (shard / "run1.jsonl").write_text("{\n")
    assert "run1.jsonl" in told(sound)


@pytest.mark.parametrize("name", ["run1.jsonl", "outputs/*"])
@pytest.mark.parametrize("kind", ["a pipe", "a link"])
def test_only_files_are_read(
    name: str, kind: str, sound: Path, last_bit: Path, tmp_path: Path, capfd: Capture
) -> None:
    for path in shard_with(sound, "pair").glob(name):
        path.rename(tmp_path / "elsewhere")
        if kind == "a pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(tmp_path / "elsewhere")
    code, lines = compared(capfd, sound, last_bit)
    assert code == 2
    (line,) = lines
    assert f"is {kind}" in line
