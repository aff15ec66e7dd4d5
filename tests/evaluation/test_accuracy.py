"""A word for what the outputs are worth, beside the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch

from tests.results import records
from tests.subjects import subject
from vgf_conformance.evaluation.accuracy import accuracy, budget_faults
from vgf_conformance.results.record import Accuracy, Comparison, Metrics, Record, Score, TaskResult
from vgf_conformance.vocabulary import Grade, Stage, Verdict


@dataclass
class Lowered:
    """What is asked of what was prepared: eager's outputs, and whether there is a quantised program."""

    eager: list[torch.Tensor] = field(default_factory=lambda: [torch.zeros(1), torch.zeros(1)])
    quantised: list[torch.Tensor] | None = None


def compared(pair: str, *sqnr: float | None) -> list[Comparison]:
    return [
        Comparison(pair, Stage.LOWER, number, None, "reported", Metrics(1, 1, sqnr_db=value))
        for number, value in enumerate(sqnr)
    ]


def record(*comparisons: Comparison, target: str = "emulation", task: TaskResult | None = None) -> Record:
    return records.record(sample="image", target=target, comparisons=list(comparisons), task=task)


def scored(drop: float, *, target: float) -> TaskResult:
    scores = [Score("eager", 0.9, 0.8, 1.0), Score("emulation", target, 0.0, 1.0)]
    return TaskResult("top-1", "", 100, "95 %, Wilson", drop, "a test", scores)


X = torch.ones(3)
SUBJECT = subject(torch.nn.ReLU(), X)


@pytest.mark.parametrize(
    ("sqnr", "grade"),
    [
        (math.inf, Grade.GOOD),
        (20.0, Grade.GOOD),
        (19.99, Grade.DEGRADED),
        (10.0, Grade.DEGRADED),
        (9.99, Grade.UNUSABLE),
        (-32.0, Grade.UNUSABLE),
        (math.nan, Grade.UNUSABLE),
    ],
)
def test_the_word_for_an_sqnr(sqnr: float, grade: Grade) -> None:
    found = accuracy(SUBJECT, Lowered(), record(*compared("emulation/eager", sqnr)))  # type: ignore[arg-type]
    assert found is not None
    assert found.grade is grade


def test_the_worst_floating_point_output_counts_on_the_records_own_target() -> None:
    outputs = [torch.zeros(1), torch.zeros(1), torch.zeros(1, dtype=torch.int64)]
    comparisons = [*compared("reference/eager", 3.0), *compared("emulation/eager", 40.0, 30.0, 2.0)]
    found = accuracy(SUBJECT, Lowered(outputs), record(*comparisons))  # type: ignore[arg-type]
    assert found == Accuracy(Grade.GOOD, 30.0, "image", None)


def test_without_a_floating_point_output_there_is_none() -> None:
    outputs = [torch.zeros(1, dtype=torch.int64)]
    found = accuracy(SUBJECT, Lowered(outputs), record(*compared("emulation/eager", 2.0)))  # type: ignore[arg-type]
    assert found is None


@pytest.mark.parametrize(
    ("inputs", "calibrated"), [((X,), True), ((X.clone(),), True), ((2 * X,), False), ((X, X), False)]
)
def test_it_says_whether_the_sample_was_calibrated_on(
    inputs: tuple[torch.Tensor, ...], calibrated: bool
) -> None:
    ran = subject(torch.nn.ReLU(), *inputs, calibration=[(torch.zeros(3),), (X,)])
    lowered = Lowered(quantised=[X])
    found = accuracy(ran, lowered, record(*compared("emulation/eager", 40.0)))  # type: ignore[arg-type]
    assert found is not None
    assert found.calibrated is calibrated


@pytest.mark.parametrize(
    ("sqnr", "score", "grade"),
    [
        (40.0, 0.885, Grade.GOOD),
        (40.0, 0.85, Grade.DEGRADED),
        (40.0, 0.5, Grade.UNUSABLE),
        (40.0, math.nan, Grade.UNUSABLE),
        (13.0, 0.9, Grade.DEGRADED),
    ],
)
def test_with_a_task_the_worse_of_both_counts(sqnr: float, score: float, grade: Grade) -> None:
    ran = record(*compared("emulation/eager", sqnr), task=scored(0.02, target=score))
    found = accuracy(SUBJECT, Lowered(), ran)  # type: ignore[arg-type]
    assert found is not None
    assert found.grade is grade


@pytest.mark.parametrize(
    ("quantised", "reference", "stage"),
    [(12.0, 12.0, Stage.QUANTISE), (30.0, 12.0, Stage.LOWER), (30.0, 30.0, Stage.RUN)],
)
def test_too_little_is_a_failure_at_the_first_stage_that_keeps_less(
    quantised: float, reference: float, stage: Stage
) -> None:
    asked = subject(torch.nn.ReLU(), X, min_sqnr=25.0)
    ran = record(
        *compared("quantised/eager", quantised),
        *compared("reference/eager", reference),
        *compared("emulation/eager", 12.0),
    )
    ran.accuracy = Accuracy(Grade.DEGRADED, 12.0, "image")
    (fault,) = budget_faults(asked, ran)
    assert (fault.verdict, fault.stage) == (Verdict.FAIL, stage)
    assert fault.message == "12.0 dB against eager, asked for are 25 dB"


def test_enough_is_none() -> None:
    ran = record(*compared("emulation/eager", 25.0))
    ran.accuracy = Accuracy(Grade.GOOD, 25.0, "image")
    assert budget_faults(subject(torch.nn.ReLU(), X, min_sqnr=25.0), ran) == []
    assert budget_faults(SUBJECT, ran) == []


def test_it_survives_the_results_file() -> None:
    ran = record()
    for sqnr in (41.5, math.inf, -math.inf):
        ran.accuracy = Accuracy(Grade.GOOD, sqnr, "image", calibrated=True)
        assert Record.from_json(ran.to_json()).accuracy == ran.accuracy
