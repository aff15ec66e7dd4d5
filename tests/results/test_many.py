"""Small files that ask for much work: many plans, run lines, splits and columns."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.results.records import record
from vgf_conformance.cli import main
from vgf_conformance.report import write_reports
from vgf_conformance.report.matrix import matrix_report
from vgf_conformance.results.merge import Results
from vgf_conformance.results.shards import gaps
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.vocabulary import UserError

RUN = {"type": "run", "schema": 1, "started": "2026-12-01T00:00:00.000+00:00"}


def results(folder: Path, *lines: dict[str, Any]) -> Path:
    with ResultsWriter(folder / "run", {}) as writer:
        writer.append(record())
    path = folder / "run" / "results.jsonl"
    path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_thousands_of_plans_and_runs(tmp_path: Path) -> None:
    plans = [{"type": "plan", "cases": [f"{number}", f"{number + 1}"]} for number in range(4000)]
    runs = [{**RUN, "cpu": f"cpu {number}"} for number in range(4000)]
    path = results(tmp_path, *plans, *runs)
    start = time.monotonic()
    found = read_results([path])
    write_reports(found, tmp_path)
    # Where each line looked at all before it, these took minutes.
    assert time.monotonic() - start < 30
    assert len(found.plan) == 4001


def test_runs_that_were_split_in_many_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = results(tmp_path, *({**RUN, "shard": f"1/{count}"} for count in range(1, 2000)))
    with pytest.raises(UserError, match="split in 1999 ways"):
        gaps([read_results([path])], read_results([path]))
    assert main(["merge", str(path), "-o", str(tmp_path / "merged")]) == 2
    assert "shards of runs that were split in 1999 ways: give those of one run" in capsys.readouterr().err
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize(
    ("kind", "left_out"), [("operator", "200 columns more"), ("model", "280 targets more")]
)
def test_a_table_has_no_more_columns_than_can_be_read(kind: str, left_out: str) -> None:
    records = [
        dataclasses.replace(record(sample=str(number), target=f"t{number}"), kind=kind)
        for number in range(300)
    ]
    text = matrix_report(Results(records=records))
    assert max(line.count("|") for line in text.splitlines()) < 150
    assert f"{left_out} are left out; report.html has all records." in text


def test_no_text_of_a_stranger_makes_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "x\n1 of 1 planned cases are there"
    runs = [{**RUN, "driver": {"device": forged + name}} for name in "ab"]
    path = results(tmp_path, *runs, {"type": "not_run", "id": "other[x]", "reason": forged})
    main(["merge", str(path), "-o", str(tmp_path / "merged")])
    lines = capsys.readouterr().out.splitlines()
    assert "not run: other (1 cases): x 1 of 1 planned cases are there" in lines
    assert not any(line.startswith("1 of 1 planned") for line in lines)
