"""What reports show of models: delegation, accuracy, time and sizes; and of cases that could not be run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from junitparser import JUnitXml, Skipped

from tests.report.test_reports import page_data, written
from tests.results.records import record
from vgf_conformance.report import summary_table
from vgf_conformance.report.failure import failure_text
from vgf_conformance.report.models import models_section
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import DelegateFacts, Leftover, NotRun, Record, Score, TaskResult
from vgf_conformance.vocabulary import Finding, Verdict

LACKING = "weights 1.0 is not installed: pip install --no-deps weights==1.0"


def task(*programs: str, message: str = "") -> TaskResult:
    scores = [
        Score(program, 17.3 - number, 17.0 - number, 17.6 - number) for number, program in enumerate(programs)
    ]
    return TaskResult("PSNR", "dB", 360, "95 %, bootstrap", 0.5, "an eye notices", scores, message)


def unet(target: str, *programs: str, **more: Any) -> Record:
    found = record(
        "unet",
        "image",
        "INT",
        "a8w8-pc",
        target,
        file="models/test_vision.py",
        delegates=[DelegateFacts("delegate 0", 11, {"CONV2D": 4}, 20000, 20480)],
        leftovers=[Leftover("aten.topk.default", "not supported", 2)],
        task=task(*programs),
        about={"source": "a paper", "licence": "MIT", "weights": "trained"},
        pte_bytes=21504,
        **more,
    )
    found.kind = "model"
    return found


RECORDS = [
    unet("reference", "eager", "quantised", "reference", seconds={"lower": 8.0, "task": 1.0}),
    unet(
        "emulation",
        "eager",
        "quantised",
        "reference",
        "emulation",
        seconds={"lower": 8.0, "run": 0.5, "task": 2.0},
    ),
]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(text: str, start: str) -> dict[str, str]:
    """The first row of the table whose heading line begins with ``start``, by column."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(start))
    return dict(zip(cells(lines[at]), cells(lines[at + 2]), strict=True))


def test_a_model_has_one_row_with_its_targets_side_by_side() -> None:
    row = table(models_section(RECORDS), "| model")
    assert row["in delegates"] == "11/13 in 1"
    assert row["on the CPU"] == "aten.topk.default × 2: not supported"  # noqa: RUF001
    assert (row["reference"], row["emulation"]) == ("pass", "pass")
    # Lowered once, run by each target.
    assert (row["lower"], row["run"], row["task"]) == ("8 s", "0.5 s", "3 s")
    assert (row["VGF"], row[".pte"]) == ("20 KiB", "21 KiB")


def test_accuracy_of_every_program_with_its_interval() -> None:
    row = table(models_section(RECORDS).partition("### Accuracy")[2], "| model")
    assert (row["metric"], row["examples"], row["allowed"]) == ("PSNR", "360", "0.5 dB")
    assert row["eager"] == "17.3 (17 to 17.6)"
    assert row["emulation"] == "14.3 (14 to 14.6)"


def test_sources() -> None:
    row = table(models_section(RECORDS).partition("### Sources")[2], "| model")
    assert list(row.values()) == ["unet", "a paper", "MIT", "trained"]


def test_a_model_without_a_task_and_without_a_lowering() -> None:
    refused = record("net", verdict=Verdict.UNSUPPORTED, file="models/test_vision.py")
    refused.kind = "model"
    text = models_section([refused])
    assert "Accuracy" not in text
    assert table(text, "| model")["VGF"] == "–"  # noqa: RUF001
    assert models_section([record()]) == ""


def test_the_page_holds_task_source_and_size(tmp_path: Path) -> None:
    data = page_data(written(tmp_path, *RECORDS)["report.html"])
    row = {name: data["pool"][place] for name, place in zip(data["fields"], data["rows"][1], strict=True)}
    assert [score["program"] for score in row["task"]["scores"]] == [
        "eager",
        "quantised",
        "reference",
        "emulation",
    ]
    assert row["about"]["licence"] == "MIT"
    assert row["pte_bytes"] == 21504


def test_a_failure_shows_the_accuracy_of_every_program() -> None:
    failed = unet("reference", "eager", "quantised", "reference", verdict=Verdict.FAIL, finding=Finding.WRONG)
    assert (
        "PSNR over 360 examples, at most 0.5 dB below eager:\n  eager: 17.3 dB (17 to 17.6)"
        in failure_text(failed)
    )


def test_what_was_not_run_is_in_every_report(tmp_path: Path) -> None:
    lacking = [
        NotRun(f"suites/models/test_audio.py::voice[chunk-FP-none-{name}]", LACKING) for name in ("a", "b")
    ]
    line = f"not run: suites/models/test_audio.py::voice (2 cases): {LACKING}"
    pages = written(tmp_path, record(), not_run=lacking)
    assert line in pages["matrix.md"].replace("\\", "")
    assert line in page_data(pages["report.html"])["notes"]
    assert line in summary_table(Results(records=[record()], not_run=lacking))
    cases = list(next(iter(JUnitXml.fromstring(pages["junit.xml"].encode()))))
    assert [type(case.result[0]) for case in cases[1:]] == [Skipped, Skipped]
    assert cases[1].result[0].message == LACKING
