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


def sorted_between(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(torch.exp(x))[0] * 2.0 + x


class Walks:
    """Stands in for a runtime: walks ``function`` on the reference model, then plants ``fault``."""

    def __init__(
        self, reference: Target, cache: Cache, function: Any, options: dict[str, Any], fault: Fault
    ) -> None:
        self._reference, self._fault = reference, fault
        self._artifact = lower(request(function, X, **options), cache)

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


@pytest.fixture
def evaluated(targets: dict[str, Target], cache: Cache) -> Callable[..., Record]:
    def evaluate(
        function: Callable[..., Any],
        profile: Profile = FP,
        scheme: str = "none",
        fault: Fault = Outputs,
        peer: Target | None = None,
    ) -> Record:
        walks = Walks(targets["reference"], cache, function, {"profile": profile, "scheme": scheme}, fault)
        target = RuntimeTarget(peer or targets["emulation"], walks)
        evaluator = Evaluator({**targets, "runtime": target}, cache)
        return evaluator.evaluate(subject(function, X), profile, scheme, "runtime")

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
    rules = {item.rule for item in judged}
    if scheme == "none":
        assert rules == {"exact"} if function is shifted else all("sqnr" in rule for rule in rules)
    else:
        assert rules == {"1 LSB, ties propagated"}


def last_bit(outputs: list[Array]) -> Outputs:
    outputs[0].view(np.uint8).reshape(-1)[0] ^= 1
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


def test_what_the_driver_computes_wrongly_is_not_the_runtimes(evaluated: Callable[..., Record]) -> None:
    """The driver is the first that errs, and the runtime, which happens to be right, is not blamed."""
    peer = ProcessTarget("emulation", "tests.fakes:OffByTenthOfRms", time_limit=60)
    try:
        record = evaluated(shifted, peer=peer)
    finally:
        peer.close()
    assert caught(record) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert "runtime" not in record.message
    assert [item.passed for item in pairs(record, "runtime/emulation")] == [False, True]


def test_what_crashes_the_driver_never_reaches_the_runtime(evaluated: Callable[..., Record]) -> None:
    def unreachable(outputs: list[Array]) -> Outputs:
        raise AssertionError("the runtime was asked")

    peer = ProcessTarget("emulation", "tests.fakes:CrashesWithSigsegv", time_limit=60)
    record = evaluated(shifted, fault=unreachable, peer=peer)
    assert caught(record) == (Verdict.CRASH, Stage.RUN, Finding.CRASHED)


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
