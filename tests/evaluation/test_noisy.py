"""What is only noisy is judged operator by operator in the suites: on targets, and on the reference model."""

from __future__ import annotations

import pytest
import torch

from tests.attribution.chains import Device
from tests.subjects import FP, randn, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.report.matrix import matrix_report
from vgf_conformance.report.summary import summary_table
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Finding, Stage, Verdict


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 0.5 - torch.sin(-x) * 0.25


WAVE = subject(wave, randn(3, 5))


def evaluated(cache: Cache, target: str, *, reference: float = 0.0, device: float = 0.0) -> Record:
    """On targets in exact arithmetic, whose first SIN is off by so much of its bound."""
    targets = {
        "reference": Device("SIN", reference, name="reference"),
        "fake": Device("SIN", device, name="fake"),
    }
    evaluator = Evaluator(targets, cache)
    record = evaluator.evaluate(WAVE, FP, "none", target)
    evaluator.attribute(record, WAVE, FP, "none", folder=None)
    return record


def test_a_noisy_device_conforms_and_reports_say_so(cache: Cache) -> None:
    record = evaluated(cache, "fake", device=0.9)
    assert (record.verdict, record.stage, record.finding) == (Verdict.PASS, None, Finding.NOISY)
    assert len(record.visible) == 1
    results = Results(records=[record])
    assert "noisy: 1 passes" in summary_table(results)
    assert "of these passes, noisy" in matrix_report(results)
    assert "every operator is within its own bound on what it was fed, SIN (number" in matrix_report(results)


def test_a_device_outside_the_bound_of_an_operator_fails_and_it_is_named(cache: Cache) -> None:
    record = evaluated(cache, "fake", device=1.25)
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert record.first_wrong is not None
    assert (record.first_wrong.stage, record.first_wrong.operator) == (Stage.RUN, "SIN")


@pytest.mark.parametrize("target", ["reference", "fake"])
def test_a_noisy_reference_model_is_held_to_the_same(cache: Cache, target: str) -> None:
    record = evaluated(cache, target, reference=0.9)
    assert (record.verdict, record.stage, record.finding) == (Verdict.PASS, None, Finding.NOISY)
    assert any(note.startswith("noisy: reference/eager, output 0, ") for note in record.notes)


def test_a_reference_model_outside_the_bound_of_an_operator_is_named(cache: Cache) -> None:
    record = evaluated(cache, "reference", reference=1.25)
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.LOWER, Finding.WRONG)
    assert record.first_wrong is not None
    assert (record.first_wrong.stage, record.first_wrong.operator) == (Stage.LOWER, "SIN")
    assert "SIN (number" in record.message


@pytest.mark.parametrize(
    "program",
    [
        subject(torch.round, torch.tensor([0.49999997, 1.5, 2.0])),
        subject(torch.asinh, torch.linspace(-1200.0, -1000.0, 9)),
    ],
    ids=["round", "asinh"],
)
def test_operators_that_lose_digits_however_well_they_round_are_a_fault_of_lowering(
    program: Subject, cache: Cache
) -> None:
    """round becomes FLOOR(x + 0.5), asinh LOG(x + POW(x * x + 1, 0.5)): each is right on what it is fed."""
    targets = {"reference": Device(0, 0.0, name="reference")}
    record = Evaluator(targets, cache).evaluate(program, FP, "none", "reference")
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.LOWER, Finding.WRONG)


def test_a_device_that_may_flush_conforms_whatever_comes_of_it(cache: Cache) -> None:
    """EXP of -90 is subnormal, and LOG of zero minus infinity."""
    program = subject(lambda x: torch.log(torch.exp(x)), torch.tensor([-90.0, -89.0, 1.0]))
    targets = {
        "reference": Device(0, 0.0, name="reference"),
        "fake": Device(0, 0.0, flushes=True, name="fake"),
    }
    record = Evaluator(targets, cache).evaluate(program, FP, "none", "fake")
    assert (record.verdict, record.finding) == (Verdict.PASS, Finding.NOISY)
    (note,) = [note for note in record.notes if note.startswith("noisy: ")]
    assert "-inf, should be -90; every operator is within its own bound on what it was fed" in note
