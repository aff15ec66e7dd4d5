"""What is written for keeps is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.full_disk import full_disk
from tests.report.synthetic import synthetic
from tests.results.records import record
from vgf_conformance import files
from vgf_conformance.cli import main
from vgf_conformance.report import write_reports
from vgf_conformance.results.baselines import update_baselines
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Comparison, Metrics
from vgf_conformance.results.store import ResultsWriter
from vgf_conformance.vocabulary import Stage, UserError


def test_a_full_disk_leaves_the_reports_that_were_there(tmp_path: Path) -> None:
    paths = write_reports(Results(records=[record()]), tmp_path)
    before = {path: path.read_bytes() for path in paths}
    with full_disk(2_000), pytest.raises(UserError, match=r"cannot write .*: File too large"):
        write_reports(synthetic(2), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_leaves_a_comparison_that_was_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, samples in (("old", 1), ("new", 200)):
        with ResultsWriter(tmp_path / name, {}) as writer:
            for number in range(samples):
                writer.append(record(sample=str(number)))
    page = tmp_path / "page.md"
    page.write_text("what was there")
    with full_disk(1_000):
        command = ["compare", str(tmp_path / "old"), str(tmp_path / "new"), "-o", str(page)]
        assert main(command) == 2
    assert "page.md: File too large" in capsys.readouterr().err
    assert page.read_text() == "what was there"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_full_disk_leaves_a_baseline_that_was_there(tmp_path: Path) -> None:
    metrics = Metrics(1, 1)
    records = [
        record(sample=str(number), comparisons=[Comparison("a/b", Stage.RUN, 0, True, "", metrics, 0.5)])
        for number in range(100)
    ]
    (path,) = update_baselines(tmp_path, records[:1], {"reference": {}})
    before = path.read_bytes()
    with full_disk(1_000), pytest.raises(UserError, match="File too large"):
        update_baselines(tmp_path, records, {"reference": {}})
    assert path.read_bytes() == before


def test_what_raises_while_it_writes_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write(path, "old")
    with pytest.raises(ZeroDivisionError), files.replacing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert [item.read_text() for item in tmp_path.iterdir()] == ["old"]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path.with_name("other"))])
def test_only_regular_files_are_replaced(tmp_path: Path, make: object) -> None:
    path = tmp_path / "file"
    make(path)  # type: ignore[operator]
    before = path.lstat()
    with pytest.raises(UserError, match="not a regular file; name another"):
        files.write(path, "new")
    assert os.path.samestat(path.lstat(), before)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_device_is_not_replaced() -> None:
    with pytest.raises(UserError, match="/dev/null: it is a device"):
        files.write(Path("/dev/null"), "new")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with results of two runs, a model file, and a link to it."""
    for name in ("old", "new"):
        with ResultsWriter(tmp_path / name, {}) as writer:
            writer.append(record())
    (tmp_path / "model.py").write_text("import torch\n")
    (tmp_path / "link.py").symlink_to("model.py")
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compare old new -o new/results.jsonl", "name a file that ends in .md"),
        ("compare old new -o other.zip", "name a file that ends in .md"),
        ("pack build suites/test_x.py -o new/results.jsonl", "name a file that ends in .zip"),
        ("pack build suites/test_x.py -o suites/test_x.py", "name a file that ends in .zip"),
        ("reduce model.py -o new/results.jsonl", "name a file that ends in .py"),
        ("reduce model.py -o model.py", "it is what is read; name another"),
        ("reduce link.py -o model.py", "it is what is read; name another"),
        ("reduce model.py -o link.py", "it is a link, not a regular file"),
        ("reduce model.py -o /dev/full", "it is a device, not a regular file"),
        ("bisect model.py -o model.py", "model.py is not a folder: name another"),
        ("bisect model.py -o /dev/full", "/dev/full is not a folder: name another"),
    ],
)
def test_nothing_of_another_kind_is_replaced(
    command: str, words: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    before = contents(runs)
    assert main(command.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert contents(runs) == before


@pytest.mark.parametrize("command", ["report", "merge"])
def test_a_report_does_not_replace_what_it_is_made_of(
    command: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = (runs / "new" / "results.jsonl").rename(runs / "junit.xml")
    before = results.read_bytes()
    assert main([command, str(results), "-o", str(runs)]) == 2
    assert "junit.xml: it is what is read; name another" in capsys.readouterr().err
    assert results.read_bytes() == before
    assert not (runs / "matrix.md").exists()
