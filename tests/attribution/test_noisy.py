"""What conforms operator by operator passes, however noisy; what does not is named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.attribution.chains import CHAINS, Chain, Device
from tests.comparison.build import GraphBuilder
from vgf_conformance.attribution.cut import as_delegate, pieces
from vgf_conformance.attribution.noisy import (
    Closer,
    JudgedCall,
    Unseen,
    look_closer,
    only_noisy,
    with_all_visible,
)
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.results.record import Comparison
from vgf_conformance.targets.base import Outputs, Target, TargetFailure
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: The piece that is off: the wide operator of the first branch.
WIDE = 2


def shown(call: JudgedCall) -> Delegate:
    return with_all_visible(call.delegate, call.graph, lambda tosa: b"")


def judged_on(chain: Chain, device: Target) -> JudgedCall:
    graph = read_graph(chain.tosa())
    delegate = as_delegate(graph, {"x": chain.input})
    right = Device(WIDE, 0.0)
    outputs = []
    for target in (right, device):
        target.load([delegate])
        outputs.append(target.run(0, [chain.input]).arrays)
    comparisons = judge_device(
        graph, [chain.input], outputs[1], outputs[0], target=device.name, delegate=delegate.name
    )
    return JudgedCall(delegate, graph, [chain.input], outputs[1], comparisons)


def looked_at(chain: Chain, device: Target) -> tuple[Comparison, Closer]:
    call = judged_on(chain, device)
    closer = look_closer(device, [call.delegate], [call], shown)
    return call.comparisons[0], closer


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_an_operator_just_outside_its_bound_is_named(chain: Chain) -> None:
    device = Device(WIDE, 1.25)
    assert len(pieces(read_graph(chain.tosa()))) == 10
    assert only_noisy(judged_on(chain, device).comparisons)
    comparison, closer = looked_at(chain, device)
    assert (comparison.passed, comparison.finding) == (False, None)
    assert closer.first_wrong is not None
    wrong = closer.first_wrong
    assert (wrong.stage, wrong.operator, wrong.rule) == (
        Stage.RUN,
        chain.operator,
        f"tosa-1.0.2 {chain.operator}",
    )
    assert f"{chain.operator} (number {wrong.position}) is outside of its own bound" in comparison.message


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_an_operator_just_inside_its_bound_passes_as_noisy(chain: Chain) -> None:
    comparison, closer = looked_at(chain, Device(WIDE, 0.9))
    assert (comparison.passed, comparison.finding) == (True, Finding.NOISY)
    assert closer.first_wrong is None
    assert [len(names) for names in closer.visible] == [10]
    assert comparison.headroom is not None
    assert f"{comparison.headroom:.3g} times the noise" in comparison.message
    first = read_graph(chain.tosa())
    number = pieces(first)[WIDE].operators[-1]
    assert comparison.message.endswith(f"{chain.operator} (number {number}) adds most")


def test_the_outputs_of_the_first_run_are_judged_not_those_of_the_second() -> None:
    """A device that computes right as soon as it is looked at."""
    comparison, closer = looked_at(CHAINS[0], Device(9, 1e4, hidden=True))
    assert comparison.passed is False
    assert closer.first_wrong is not None
    assert closer.first_wrong.operator == "SUB"


def test_what_passes_is_not_looked_at() -> None:
    device = Device(WIDE, 0.5e-3)
    comparison, closer = looked_at(CHAINS[0], device)
    assert (comparison.passed, comparison.finding) == (True, None)
    assert (closer.visible, closer.first_wrong) == ([[]], None)
    assert device.ran == [0]


def test_far_outside_the_propagated_bound_the_operator_is_named_too() -> None:
    comparison, closer = looked_at(CHAINS[0], Device(WIDE, 1e3))
    assert (comparison.passed, comparison.finding) == (False, None)
    assert closer.first_wrong is not None
    assert closer.first_wrong.operator == CHAINS[0].operator


def test_without_the_visible_graph_a_noisy_call_stays_failed_and_says_so() -> None:
    def none(call: JudgedCall) -> Delegate:
        raise Unseen("there is none")

    device = Device(WIDE, 0.9)
    call = judged_on(CHAINS[0], device)
    closer = look_closer(device, [call.delegate], [call], none)
    (comparison,) = call.comparisons
    assert (comparison.passed, comparison.finding) == (False, Finding.NOISY)
    assert "within the bound, but" in comparison.message
    assert comparison.message.endswith("; whether its operators conform cannot be told: there is none")
    assert closer == Closer([[]], None)


class Failing(Device):
    """Gives nothing, or other things, where all is visible."""

    def __init__(self, outcome: Outputs | TargetFailure) -> None:
        super().__init__(WIDE, 0.9)
        self._outcome = outcome

    def run(self, index: int, inputs: object) -> Outputs:
        if index == 0:
            return super().run(index, inputs)  # type: ignore[arg-type]
        if isinstance(self._outcome, TargetFailure):
            raise self._outcome
        return self._outcome


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (TargetFailure(Verdict.CRASH, Stage.RUN, Finding.CRASHED, "ended by SIGSEGV"), "ended by SIGSEGV"),
        (Outputs([np.zeros(3)] * 10, unrepeatable=[4]), "output 4: two runs on the same inputs differ"),
        (Outputs([np.zeros(3)] * 9), "9 intermediate results, should be 10"),
        (Outputs([np.zeros(3)] * 10), "is float64 [3]"),
    ],
)
def test_a_visible_run_that_fails_leaves_it_failed(outcome: Outputs | TargetFailure, why: str) -> None:
    comparison, closer = looked_at(CHAINS[0], Failing(outcome))
    assert (comparison.passed, comparison.finding) == (False, Finding.NOISY)
    assert why in comparison.message
    assert closer.first_wrong is None


def test_a_product_with_zero_need_not_be_visible() -> None:
    """The converter folds it, and nothing writes it where it is an output."""
    build = GraphBuilder()
    x = build.input("x", [2, 16], "float32")
    zero = build.constant(np.zeros([2, 16], np.float32), "float32")
    shift = build.constant(np.zeros(1, np.int8), "int8")
    nothing = build.operator("MUL", [x, zero, shift], [2, 16], "float32")
    wave = build.operator("SIN", [x], [2, 16], "float32")
    graph = read_graph(build.finish(build.operator("ADD", [wave, nothing], [2, 16], "float32")))
    inputs = [CHAINS[0].input]
    call_of = as_delegate(graph, {"x": inputs[0]})

    for share, conforms in ((0.9, True), (1.25, False)):
        device = Device("SIN", share)
        device.load([call_of])
        outputs = device.run(0, inputs).arrays
        noisy = Comparison(
            "vulkan/reference", Stage.RUN, 0, False, "", None, 9.0, "cut", finding=Finding.NOISY
        )
        call = JudgedCall(call_of, graph, inputs, outputs, [noisy])
        closer = look_closer(device, [call_of], [call], shown)
        assert noisy.passed is conforms
        assert [len(names) for names in closer.visible] == [2]
        assert (closer.first_wrong is None) is conforms
        assert "SIN (number" in noisy.message
