"""A program's outputs in the runtime against its delegates' on the same driver: whose fault is what."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tests.evaluation.test_programs import caught, pairs
from tests.subjects import FP, INT, randn, request, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.walk import walk_program
from vgf_conformance.formats.pte import Executable
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Array, Outputs, Target, TargetFailure
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.targets.runtime import RuntimeTarget
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

X = randn(3, 5)
Fault = Callable[[list[Array]], Outputs]


def shifted(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two outputs: the planted faults of tests.fakes strike delegates of two."""
    return torch.abs(x), x + 1.0


def sorted_between(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The second output is none that the sort outside the delegates reaches."""
    before = torch.abs(x)
    return torch.sort(before)[0] * 2.0 + x, before


def in_two_scales(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rounds inside the delegate, where the runtime has no liberty."""
    return torch.sigmoid(x) * x, x + 1.0


class Walks:
    """Stands in for a runtime: walks ``function`` on the reference model, then plants ``fault``."""

    def __init__(
        self,
        reference: Target,
        cache: Cache,
        function: Any,
        options: dict[str, Any],
        fault: Fault,
        inputs: torch.Tensor = X,
    ) -> None:
        self._reference, self._fault = reference, fault
        self._artifact = lower(request(function, inputs, **options), cache)

    def execute(self, program: Executable, inputs: Sequence[Any]) -> Outputs:
        assert program.pte == self._artifact.pte
        walk = walk_program(self._artifact, list(map(torch.from_numpy, inputs)), self._reference)
        return self._fault([np.array(to_numpy(output)) for output in walk.outputs])

    def close(self) -> None:
        """Nothing of its own."""


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    opened = open_targets(["emulation"], DriverChoice(), tmp_path_factory.mktemp("layers"))
    yield opened
    for target in opened.values():
        target.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """This module's own: ExecuTorch writes other bytes for the same program in another worker."""
    return Cache(tmp_path_factory.mktemp("artifact-cache"))


@pytest.fixture
def evaluated(targets: dict[str, Target], cache: Cache) -> Callable[..., Record]:
    def evaluate(
        function: Callable[..., Any],
        profile: Profile = FP,
        scheme: str = "none",
        fault: Fault = Outputs,
        peer: str = "Faithful",
        inputs: torch.Tensor = X,
        **more: Any,
    ) -> Record:
        options = {"profile": profile, "scheme": scheme, **more}
        walks = Walks(targets["reference"], cache, function, options, fault, inputs)
        process = ProcessTarget("emulation", f"tests.fakes:{peer}", time_limit=60)
        beside = targets["emulation"] if peer == "Faithful" else process
        evaluator = Evaluator({**targets, "runtime": RuntimeTarget(beside, walks)}, cache)
        try:
            return evaluator.evaluate(subject(function, inputs, **more), profile, scheme, "runtime")
        finally:
            process.close()

    return evaluate


@pytest.mark.parametrize("function", [shifted, sorted_between])
@pytest.mark.parametrize(("profile", "scheme"), [(FP, "none"), (INT, "a8w8-pc")], ids=["FP", "INT"])
def test_what_agrees_passes(
    function: Any, profile: Profile, scheme: str, evaluated: Callable[..., Record]
) -> None:
    record = evaluated(function, profile, scheme)
    assert (record.verdict, record.message) == (Verdict.PASS, "")
    assert record.driver.startswith("lvp")
    judged = pairs(record, "runtime/emulation")
    assert judged and all(item.passed for item in judged)
    assert pairs(record, "runtime/eager")
    assert pairs(record, "emulation/reference")
    rules = [item.rule for item in judged]
    assert rules[1] == "exact"
    if function is shifted:
        assert rules[0] == "exact"
    else:
        assert ("sqnr" if scheme == "none" else "ties propagated") in rules[0]


def last_bit(outputs: list[Array]) -> Outputs:
    outputs[0].view(np.uint8).reshape(-1)[0] ^= 1
    return Outputs(outputs)


def without_signs_of_zero(outputs: list[Array]) -> Outputs:
    outputs[0] = np.abs(outputs[0])
    return Outputs(outputs)


def flushed(outputs: list[Array]) -> Outputs:
    tiny = np.abs(outputs[0]) < np.finfo(np.float32).tiny
    assert tiny.any()
    outputs[0] = np.where(tiny, np.copysign(np.float32(0), outputs[0]), outputs[0])
    return Outputs(outputs)


def one_step(outputs: list[Array]) -> Outputs:
    """Larger by a quantisation step where the values leave room for one."""
    steps = np.unique(outputs[0])
    outputs[0].reshape(-1)[0] += np.diff(steps).min()
    return Outputs(outputs)


def dropped(outputs: list[Array]) -> Outputs:
    return Outputs(outputs[:-1])


@pytest.mark.parametrize(
    ("fault", "options", "words"),
    [
        (last_bit, (FP, "none"), "output 0, 1 of 15 elements"),
        (one_step, (INT, "a8w8-pc"), "output 0, 1 of 15 elements"),
        (dropped, (FP, "none"), "1 outputs, should be 2"),
        (
            lambda outputs: Outputs([outputs[0].astype(np.float16), outputs[1]]),
            (FP, "none"),
            "output 0 is float16",
        ),
    ],
    ids=["last bit", "one step", "dropped", "dtype"],
)
def test_a_difference_is_the_runtimes(
    fault: Fault, options: tuple[Profile, str], words: str, evaluated: Callable[..., Record]
) -> None:
    record = evaluated(shifted, *options, fault=fault)
    assert caught(record) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert record.message.startswith(f"the runtime differs from emulation on the same VGFs: {words}")


def test_the_last_bit_is_shown(evaluated: Callable[..., Record]) -> None:
    shown, wanted = evaluated(shifted, fault=last_bit).message.rpartition(": ")[2].split(", should be ")
    assert shown != wanted


@pytest.mark.parametrize(
    ("value", "fault", "words"),
    [(-0.0, without_signs_of_zero, "0, should be -0"), (2.0**-130, flushed, "0, should be 7.34684e-40")],
    ids=["sign of zero", "subnormal"],
)
def test_equal_means_bit_for_bit(
    value: float, fault: Fault, words: str, evaluated: Callable[..., Record]
) -> None:
    """Data that is only moved: what TOSA lets a device do to it, the runtime must not."""

    def turned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.transpose(0, 1) * 1.0, x.flip(0)

    x = torch.full((2, 3), value)
    assert evaluated(turned, inputs=x).verdict is Verdict.PASS
    record = evaluated(turned, inputs=x, fault=fault)
    assert caught(record) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert record.message.endswith(f"output 0, 6 of 6 elements, worst at [0, 0]: {words}")


@pytest.mark.parametrize("place", range(0, 15, 2))
def test_ties_inside_delegates_are_no_excuse(place: int, evaluated: Callable[..., Record]) -> None:
    def one_step_there(outputs: list[Array]) -> Outputs:
        outputs[0].reshape(-1)[place] += np.diff(np.unique(outputs[0])).min()
        return Outputs(outputs)

    record = evaluated(in_two_scales, INT, "a8w8-pc", fault=one_step_there)
    assert caught(record) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert [item.rule for item in pairs(record, "runtime/emulation")] == ["exact", "exact"]


def mirrored(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.flip(0), x.flip(1)


def test_a_tie_of_the_runtimes_own_quantisation_is_one(
    evaluated: Callable[..., Record], cache: Cache
) -> None:
    """2.5 steps of the input, which the program quantises outside the delegate; 7.25 steps are no tie."""
    calibration = [(torch.tensor([[-127.0, 128.0, 2.5, 7.25]]),)]
    options: dict[str, Any] = {"profile": INT, "scheme": "a8w8-pc", "calibration": calibration}
    program = lower(request(mirrored, *calibration[0], **options), cache).program
    scale = next(step.args[1] for step in program.steps if "quantize_per_tensor" in step.operator)
    x = torch.tensor([[-120.0, 120.0, 2.5, 7.25]]) * scale

    def up(*places: int) -> Fault:
        def stepped(outputs: list[Array]) -> Outputs:
            for place in places:
                outputs[0].reshape(-1)[place] += np.float32(scale)
            return Outputs(outputs)

        return stepped

    right = evaluated(mirrored, INT, "a8w8-pc", inputs=x, calibration=calibration, fault=up(2))
    assert (right.verdict, right.message) == (Verdict.PASS, "")
    assert pairs(right, "runtime/emulation")[0].rule == "exact, ties propagated"
    wrong = evaluated(mirrored, INT, "a8w8-pc", inputs=x, calibration=calibration, fault=up(2, 3))
    assert caught(wrong) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert "output 0, 1 of 4 elements, worst at [0, 3]" in wrong.message


def test_what_the_driver_computes_wrongly_is_not_the_runtimes(evaluated: Callable[..., Record]) -> None:
    """The driver is the first that errs, and the runtime is not asked."""
    record = evaluated(shifted, fault=unreachable, peer="OffByTenthOfRms")
    assert caught(record) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert "runtime" not in record.message
    assert pairs(record, "runtime/emulation") == []


@pytest.mark.parametrize(
    ("peer", "verdict", "finding"),
    [
        ("CrashesWithSigsegv", Verdict.CRASH, Finding.CRASHED),
        ("LeavesTail", Verdict.FAIL, Finding.UNWRITTEN),
    ],
)
def test_what_fails_on_the_driver_never_reaches_the_runtime(
    peer: str, verdict: Verdict, finding: Finding, evaluated: Callable[..., Record]
) -> None:
    record = evaluated(shifted, fault=unreachable, peer=peer)
    assert caught(record) == (verdict, Stage.RUN, finding)


def unreachable(outputs: list[Array]) -> Outputs:
    raise AssertionError("the runtime was asked")


def test_two_runs_that_differ(evaluated: Callable[..., Record]) -> None:
    record = evaluated(shifted, fault=lambda outputs: Outputs(outputs, unrepeatable=[1]))
    assert caught(record) == (Verdict.FAIL, Stage.RUN, Finding.UNREPEATABLE)
    assert record.message == "the runtime, output 1: two runs on the same inputs differ"


def test_a_runtime_that_fails(evaluated: Callable[..., Record]) -> None:
    def fails(outputs: list[Array]) -> Outputs:
        raise TargetFailure(Verdict.CRASH, Stage.RUN, Finding.CRASHED, "it is gone", "last words")

    record = evaluated(shifted, fault=fails)
    assert caught(record) == (Verdict.CRASH, Stage.RUN, Finding.CRASHED)
    assert (record.message, record.log) == ("it is gone", "last words")


def test_a_broken_program_is_the_lowerings(
    targets: dict[str, Target], cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "vgf_conformance.evaluation.prepare.lower",
        lambda asked, cache, exported: dataclasses.replace(lower(asked, cache, exported), pte=b"no program"),
    )
    walks = Walks(targets["reference"], cache, shifted, {}, Outputs)
    evaluator = Evaluator({**targets, "runtime": RuntimeTarget(targets["emulation"], walks)}, cache)
    record = evaluator.evaluate(subject(shifted, X), FP, "none", "runtime")
    assert caught(record) == (Verdict.FAIL, Stage.LOWER, Finding.INVALID)
    assert record.message == "the program: not an ExecuTorch program (.pte): the file identifier is missing"
