"""State in buffers: several calls in sequence, each form of the program with its own state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tests.evaluation.test_programs import caught, pairs
from tests.subjects import FP, INT, randn, request, subject
from vgf_conformance.cases.case import model, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import subject_of
from vgf_conformance.evaluation.walk import walk_calls
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.lowering.program import Program
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.targets.runtime import RuntimeTarget
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

CALLS = tuple((randn(1, 3, seed=seed),) for seed in range(3))


class Window(nn.Module):
    """Attends to the last four rows that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 3))
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.cache.copy_(torch.cat([self.cache[1:], x]))
        return (self.cache * self.scale).abs() + x


class Counted(Window):
    """Counts its calls too."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return super().forward(x)


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    opened = open_targets(["reference", "emulation"], DriverChoice(), tmp_path_factory.mktemp("layers"))
    yield opened
    for target in opened.values():
        target.close()


@pytest.fixture
def called(targets: dict[str, Target], cache: Cache) -> Callable[..., Record]:
    def call(
        module: nn.Module, number: int, profile: Profile = FP, scheme: str = "none", target: str = "emulation"
    ) -> Record:
        calls = {"before": CALLS[:number], "example": CALLS[0], "calibration": list(CALLS)}
        return Evaluator(targets, cache).evaluate(
            subject(module, *CALLS[number], **calls), profile, scheme, target
        )

    return call


def test_a_program_takes_the_state_that_it_left(targets: dict[str, Target], cache: Cache) -> None:
    """What it starts with stays as it is."""
    artifact = lower(request(Counted(), *CALLS[0], profile=FP), cache)
    assert set(artifact.program.writes) == {"cache", "calls"}
    module = Counted()
    for (x,) in CALLS:
        output = module(x)
    walk = walk_calls(artifact, list(map(list, CALLS)), targets["reference"])
    assert torch.equal(walk.buffers["cache"], module.get_buffer("cache"))
    assert walk.buffers["calls"].tolist() == [3]
    torch.testing.assert_close(walk.outputs[0], output)
    assert not artifact.program.constants["b_cache"].any()


@pytest.mark.parametrize(
    ("module", "number", "profile", "scheme"),
    [
        (Counted, 0, FP, "none"),
        (Counted, 2, FP, "none"),
        (Window, 0, INT, "a8w8-pc"),
        (Window, 2, INT, "a8w8-pc"),
    ],
)
def test_each_call_is_judged_with_what_it_leaves(
    module: type[Window], number: int, profile: Profile, scheme: str, called: Callable[..., Record]
) -> None:
    record = called(module(), number, profile, scheme)
    assert (record.verdict, record.message) == (Verdict.PASS, "")
    against = "eager" if scheme == "none" else "quantised"
    rules = [item.rule for item in pairs(record, f"reference/{against} buffers")]
    assert rules == (["sqnr >= 100 dB", "exact"] if module is Counted else ["ties propagated"])


def test_calibration_leaves_no_state(cache: Cache) -> None:
    """It calls the model, but the program starts as the model does."""
    asked = request(Window(), *CALLS[0], profile=INT, scheme="a8w8-pc", calibration=list(CALLS))
    artifact = lower(asked, cache)
    assert artifact.quantised is not None
    for program in (artifact.quantised, artifact.program):
        assert program.buffers["b_cache"] == "cache"
        assert not program.constants["b_cache"].any()


def test_state_that_quantisation_freezes(called: Callable[..., Record]) -> None:
    """torchao folds what is computed from buffers alone, as if these were constants."""
    record = called(Counted(), 0, INT, "a8w8-pc")
    assert caught(record) == (Verdict.FAIL, Stage.QUANTISE, Finding.WRONG)
    assert record.message == "buffer calls: the program keeps no state there, and has the value of the export"


def forgets(program: Program) -> Program:
    return dataclasses.replace(program, writes={}, buffers={})


def keeps_the_old(program: Program) -> Program:
    return dataclasses.replace(program, writes={"calls": program.writes["calls"]})


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (forgets, "buffer cache: the program keeps no state there, and has the value of the export"),
        (keeps_the_old, "output 0, 6 of 12 elements"),
    ],
)
def test_state_that_lowering_loses(
    fault: Callable[[Program], Program],
    message: str,
    called: Callable[..., Record],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*asked: Any) -> Artifact:
        artifact = lower(*asked)
        return dataclasses.replace(artifact, program=fault(artifact.program))

    monkeypatch.setattr("vgf_conformance.evaluation.prepare.lower", broken)
    record = called(Counted(), 2)
    assert caught(record) == (Verdict.FAIL, Stage.LOWER, Finding.WRONG)
    messages = [item.message for item in record.comparisons if item.passed is False]
    assert any(item.startswith(message) for item in messages), messages
    assert any(item.startswith("buffer cache") for item in messages), messages
    # A first call, by itself, gives the right outputs.
    first = [item.message for item in called(Counted(), 0).comparisons if item.passed is False]
    assert first and all(item.startswith("buffer ") for item in first)


def test_a_failure_says_in_which_call(targets: dict[str, Target], cache: Cache) -> None:
    artifact = lower(request(Window(), *CALLS[0], profile=FP), cache)
    process = ProcessTarget("emulation", "tests.fakes:CrashesWithSigsegv", time_limit=60)
    failure = walk_calls(artifact, list(map(list, CALLS)), process).failure
    assert failure is not None
    assert failure.message == "the worker was ended by SIGSEGV, in call 1 of 3"


def test_the_runtime_is_asked_for_first_calls_only(targets: dict[str, Target], cache: Cache) -> None:
    class Unreachable:
        def execute(self, program: Any, inputs: Any) -> Any:
            raise AssertionError("the runtime was asked")

        def close(self) -> None:
            """Nothing of its own."""

    evaluator = Evaluator({**targets, "runtime": RuntimeTarget(targets["emulation"], Unreachable())}, cache)
    later = subject(Counted(), *CALLS[1], before=CALLS[:1])
    record = evaluator.evaluate(later, FP, "none", "runtime")
    assert caught(record) == (Verdict.UNSUPPORTED, Stage.RUN, Finding.CAPABILITY)


def test_samples_of_a_case_in_sequence() -> None:
    case = model(Window, [sample("first", normal(1, 3)), sample("second", normal(1, 3))], sequence=True)
    first, second = (subject_of(case, item, seed=0) for item in case.samples)
    assert first.before == ()
    assert second.before is not None
    assert torch.equal(second.before[0][0], first.inputs[0])
