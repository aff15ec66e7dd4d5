"""Task accuracy on tiny models: who is to blame for a drop, and what is told of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.subjects import FP, INT, randn, subject
from vgf_conformance.cases.case import About
from vgf_conformance.cases.task import COSINE, PSNR, TOP_1, Example, Outputs, Program, Task
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.task import Measurement
from vgf_conformance.vocabulary import Finding, Stage, Verdict


class Lowest(torch.nn.Module):
    """Logits that name the smallest of three inputs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1.0 - x


BATCHES = [torch.rand(4, 3, generator=torch.Generator().manual_seed(seed)) for seed in range(5)]


def examples(*_: Any) -> list[Example]:
    return [Example((batch,), batch.argmin(1)) for batch in BATCHES]


TASK = Task(TOP_1, examples, 0.1, "two of twenty")


def asked(task: Task = TASK, **more: Any) -> Subject:
    return subject(Lowest(), BATCHES[0], task=task, kind="model", **more)


def measured(drops: dict[str, float]) -> Measurement:
    """A measurement in which every program but those named is always right."""
    found = Measurement.of(replace(TASK, metric=replace(TOP_1, proportion=False)), Lowest())
    for program in ("quantised", "reference", "emulation"):
        found.scores[program] = found.scores["eager"] - drops.get(program, 0.0)
    return found


def test_every_program_is_scored_with_an_interval(evaluator: Evaluator) -> None:
    evaluator.evaluate(asked(), INT, "a8w8-pc", "reference")
    record = evaluator.evaluate(asked(), INT, "a8w8-pc", "emulation")
    assert record.verdict is Verdict.PASS
    assert record.task is not None
    assert [score.program for score in record.task.scores] == ["eager", "quantised", "reference", "emulation"]
    eager = record.task.scores[0]
    assert (record.task.examples, eager.mean, eager.high) == (20, 1.0, 1.0)
    assert 0.83 < eager.low < 0.85
    assert record.task.interval == "95 %, Wilson"
    assert "task" in record.seconds


def test_an_unquantised_model_has_no_quantised_program(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(asked(), FP, "none", "reference")
    assert record.task is not None
    assert [score.program for score in record.task.scores] == ["eager", "reference"]


def test_a_drop_of_the_quantised_program_is_found_at_quantise(evaluator: Evaluator) -> None:
    # Calibrated on small values, everything is clipped.
    clipped = replace(asked(), calibration=[(BATCHES[0] * 1e-3,)])
    record = evaluator.evaluate(clipped, INT, "a8w8-pc", "reference")
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.QUANTISE, Finding.WRONG)
    assert record.message.startswith("top-1: 1 eager, 0.")
    assert "quantised falls 0." in record.message
    assert record.message.endswith("below eager, allowed are 0.1")
    assert record.task is not None
    assert record.task.message == record.message


@pytest.mark.parametrize(
    ("drops", "stage"),
    [
        ({"quantised": 0.2, "reference": 0.2, "emulation": 0.2}, Stage.QUANTISE),
        ({"reference": 0.2, "emulation": 0.2}, Stage.LOWER),
        ({"emulation": 0.2}, Stage.RUN),
        # Each step stays within the budget, all together do not.
        ({"quantised": 0.08, "reference": 0.12, "emulation": 0.12}, Stage.LOWER),
        ({"emulation": float("nan")}, Stage.RUN),
    ],
)
def test_the_first_program_that_falls_too_far_names_the_stage(drops: dict[str, float], stage: Stage) -> None:
    _, faults = measured(drops).result("emulation")
    assert [fault.stage for fault in faults] == [stage]


def test_a_target_answers_for_itself_alone() -> None:
    result, faults = measured({"emulation": 0.2}).result("reference")
    assert faults == []
    assert [score.program for score in result.scores] == ["eager", "quantised", "reference"]


def test_a_small_drop_and_a_gain_are_right() -> None:
    assert measured({"quantised": 0.09, "reference": -0.2}).result("emulation")[1] == []


def test_examples_without_an_answer_are_held_against_eager(evaluator: Evaluator) -> None:
    task = Task(COSINE, lambda: [Example((batch,)) for batch in BATCHES], 0.01, "alike")
    record = evaluator.evaluate(asked(task), FP, "none", "emulation")
    assert record.task is not None
    assert [score.mean for score in record.task.scores] == pytest.approx([1.0, 1.0, 1.0])
    assert record.task.interval == "95 %, bootstrap"


def test_a_state_is_carried_from_call_to_call(evaluator: Evaluator) -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            state = state + x
            return state * 0.5, state

    def run(program: Program, inputs: tuple[Any, ...]) -> Outputs:
        state = torch.zeros(1, 3)
        for row in inputs[0].split(1):
            answer, state = program(row, state)
        return [answer]

    task = Task(
        PSNR,
        lambda: [Example((batch,), batch.sum(0, keepdim=True) * 0.5) for batch in BATCHES],
        1.0,
        "exact but for rounding",
        run=run,
    )
    stateful = subject(Sum(), randn(1, 3), torch.zeros(1, 3), task=task, kind="model")
    record = evaluator.evaluate(stateful, FP, "none", "emulation")
    assert record.verdict is Verdict.PASS
    assert record.task is not None
    assert record.task.scores[-1].mean > 100


def test_a_program_without_numbers_has_no_accuracy(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(asked(delegated=False), FP, "none", "reference")
    assert record.finding is Finding.BOUNDARY
    assert record.task is None


def test_a_record_tells_where_its_model_comes_from(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(asked(about=About("here", "MIT", "none")), FP, "none", "reference")
    assert record.about == {"source": "here", "licence": "MIT", "weights": "none"}
    assert record.pte_bytes > 0
