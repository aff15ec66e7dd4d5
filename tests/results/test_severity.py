"""How wrong a failure is: which numbers count, and when they are clearly worse or better."""

from __future__ import annotations

import math

import pytest

from tests.results.records import record
from vgf_conformance.results.record import Comparison, Metrics, Record, Score, TaskResult
from vgf_conformance.results.severity import MEASURES, Severity, severity_of, worst
from vgf_conformance.vocabulary import Finding, Stage, Verdict


def compared(
    stage: Stage = Stage.LOWER, passed: bool | None = False, elements: int = 100, **metrics: object
) -> Comparison:
    measured = Metrics(elements=elements, differing=elements, **metrics)  # type: ignore[arg-type]
    return Comparison("reference/eager", stage, 0, passed, "propagated", measured)


def failed(*comparisons: Comparison, **more: object) -> Record:
    return record(verdict=Verdict.FAIL, comparisons=list(comparisons), **more)  # type: ignore[arg-type]


def test_a_float_output_counts_in_ulp_an_integer_or_quantised_one_in_lsb() -> None:
    floating = severity_of(failed(compared(max_ulp=7.0, sqnr_db=90.0, wrong=3, nonfinite_mismatches=1)))
    assert floating == Severity(wrong=0.03, nonfinite=0.01, ulp=7.0, sqnr_db=90.0)
    quantised = severity_of(failed(compared(max_ulp=1e40, max_lsb=2.0, sqnr_db=40.0, wrong=3)))
    assert quantised == Severity(wrong=0.03, lsb=2.0, sqnr_db=40.0)


def test_only_what_failed_at_the_stage_counts_and_the_worst_of_it() -> None:
    seen = severity_of(
        failed(
            compared(max_lsb=2.0, sqnr_db=40.0, wrong=1),
            compared(max_lsb=1.0, sqnr_db=20.0, wrong=5),
            compared(max_lsb=90.0, passed=True),
            compared(Stage.RUN, max_lsb=80.0),
        )
    )
    assert seen == Severity(wrong=0.05, lsb=2.0, sqnr_db=20.0)


@pytest.mark.parametrize(
    "item",
    [
        failed(),
        failed(compared(Stage.RUN, max_ulp=3.0)),
        failed(Comparison("reference/eager", Stage.LOWER, 0, False, "shape and dtype", None)),
        failed(compared(max_ulp=218.0), finding=Finding.UNWRITTEN),
        record(verdict=Verdict.UNSUPPORTED, comparisons=[compared(max_ulp=3.0)]),
        record(verdict=Verdict.CRASH),
        record(comparisons=[compared(passed=True, max_ulp=3.0)]),
        failed(compared(elements=0)),
    ],
)
def test_failures_without_numbers_have_no_severity(item: Record) -> None:
    assert severity_of(item) is None


def test_a_model_that_does_its_task_worse_counts_by_its_score() -> None:
    scores = [
        Score(name, mean, 0.0, 1.0) for name, mean in (("eager", 0.9), ("quantised", 0.6), ("emulation", 0.7))
    ]
    task = TaskResult("accuracy", "", 9, "bootstrap", 0.1, "small", scores, "quantised falls 0.3 below eager")
    seen = severity_of(failed(task=task, stage=Stage.QUANTISE))
    assert seen is not None
    assert seen.measures() == {"drop": pytest.approx(0.3)}


@pytest.mark.parametrize(
    ("name", "known", "within", "beyond"),
    [
        ("wrong", 0.02, 0.029, 0.031),
        ("wrong", 0.0, 0.0, 0.001),
        ("nonfinite", 0.0, 0.0, 0.01),
        ("lsb", 10.0, 15.0, 16.0),
        ("lsb", 1.0, 2.0, 3.0),
        ("lsb", 0.0, 1.0, 2.0),
        ("ulp", 1000.0, 1500.0, 1501.0),
        ("ulp", 0.0, 4.0, 5.0),
        ("sqnr_db", 69.4, 66.0, 65.0),
        ("sqnr_db", -3.0, -6.5, -7.0),
        ("drop", 0.1, 0.149, 0.151),
        ("lsb", 10.0, 7.0, math.inf),
        ("lsb", 10.0, 7.0, math.nan),
        ("sqnr_db", 40.0, 37.0, -math.inf),
        ("sqnr_db", 40.0, 37.0, math.nan),
    ],
)
def test_worse_is_beyond_the_margin(name: str, known: float, within: float, beyond: float) -> None:
    bound = Severity(**{name: known})
    assert Severity(**{name: within}).worse_than(bound) == ""
    assert "known: " in Severity(**{name: beyond}).worse_than(bound)


def test_better_is_beyond_the_same_margin_and_worse_in_nothing() -> None:
    bound = Severity(wrong=0.3, lsb=30.0, sqnr_db=20.0)
    assert Severity(wrong=0.25, lsb=25.0, sqnr_db=22.0).better_than(bound) == ""
    assert Severity(wrong=0.3, lsb=10.0, sqnr_db=20.0).better_than(bound) == "10 LSB, known: 30"
    assert Severity(wrong=0.9, lsb=10.0, sqnr_db=20.0).better_than(bound) == ""


def test_a_measure_that_one_side_lacks_is_not_compared() -> None:
    assert Severity(ulp=900.0).worse_than(Severity(lsb=1.0)) == ""


def test_the_worst_is_taken_measure_by_measure() -> None:
    one, two = Severity(lsb=3.0, sqnr_db=50.0), Severity(lsb=1.0, sqnr_db=20.0, wrong=0.5)
    assert worst([one, two]) == worst([two, one]) == Severity(wrong=0.5, lsb=3.0, sqnr_db=20.0)
    assert worst([]) is None


def test_what_is_kept_is_finite_and_short() -> None:
    seen = Severity(lsb=37.00006649, sqnr_db=math.inf, wrong=1 / 3)
    assert seen.rounded() == Severity(lsb=37.0, wrong=0.3333)
    assert Severity(sqnr_db=math.nan).rounded() is None


def test_what_is_kept_holds_for_what_was_seen() -> None:
    seen = Severity(**dict.fromkeys(MEASURES, 0.123456789))
    kept = seen.rounded()
    assert kept is not None
    assert seen.worse_than(kept) == seen.better_than(kept) == ""
