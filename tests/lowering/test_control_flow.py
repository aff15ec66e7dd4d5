"""Programs with branches and loops, as data: walked as eager PyTorch runs them, delegates and all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from tests.subjects import Function, randn, request, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.lowering.program import NotRepresentable, Program, Step, read_program
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

UP, DOWN = randn(3, 4).abs(), -randn(3, 4).abs()


def branch(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x * 2.0, lambda x: x - 1.0, (x,))


def nested(x: torch.Tensor) -> torch.Tensor:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.max() > 100, lambda x: x * 2.0, lambda x: x * 3.0, (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x - 1.0, (x,)) * 2.0


def counted(x: torch.Tensor) -> torch.Tensor:
    made = while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2.0), (torch.tensor(0), x))
    return made[1]


def never(x: torch.Tensor) -> torch.Tensor:
    return while_loop(lambda x: x.sum() < -1e9, lambda x: (x * 2.0,), (x,))[0]


def scanned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return scan(lambda carry, row: (carry + row, (carry * row).clone()), torch.ones(4), x)


def mapped(x: torch.Tensor) -> torch.Tensor:
    return torch_map(lambda row, other: row * other, x, torch.ones(4))


def loop_in_branch(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, counted, lambda x: x - 1.0, (x,))


@pytest.mark.parametrize("function", [branch, nested, counted, never, scanned, mapped, loop_in_branch])
def test_control_flow_is_walked_as_eager_runs_it(function: Callable[..., Any]) -> None:
    exported = torch.export.export(Function(function), (UP,))
    program, delegates = read_program(exported)
    assert delegates == []
    for x in (UP, DOWN):
        eager = function(x)
        expected = eager if isinstance(eager, tuple) else (eager,)
        for actual, right in zip(program.walk([x]), expected, strict=True):
            assert torch.equal(actual, right)


def test_a_name_stands_for_one_value_of_the_whole() -> None:
    program, _ = read_program(torch.export.export(Function(nested), (UP,)))
    names = [step.name for step in program.all_steps]
    assert len(set(names)) == len(names)
    assert {"cond", "cond.true_graph_0.cond", "cond.false_graph_0.sub"} <= set(names)


def test_what_a_walk_changes_inside_a_branch_counts() -> None:
    program, _ = read_program(torch.export.export(Function(nested), (UP,)))
    seen = []

    def after(step: Step, args: tuple[Any, ...], result: Any) -> Any:
        seen.append(step.name)
        return result + 1.0 if step.name.endswith(".false_graph_0.mul") else result

    (changed,) = program.walk([UP], after=after)
    assert torch.allclose(changed, (UP * 3.0 + 1.0) * 2.0)
    assert not any("sub" in name for name in seen)


def test_other_control_flow_is_refused_by_name() -> None:
    def other(x: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(False):
            return x * 2.0

    exported = torch.export.export(Function(other), (UP.clone().requires_grad_(),))
    with pytest.raises(NotRepresentable, match=r"it has control flow \(higher_order\.wrap_with_set_grad_ena"):
        read_program(exported)


class Gate(torch.nn.Module):
    """Delegates before, in both branches and behind; a sort in one branch stays on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        def true(y: torch.Tensor) -> torch.Tensor:
            return torch.sort(torch.tanh(y), 1)[0] + 1.0

        return torch.relu(torch.cond(up, true, lambda y: torch.sigmoid(y), (self.first(x),)))


def calls(program: Program) -> list[tuple[str, int]]:
    return [(step.name, step.delegate) for step in program.all_steps if step.delegate is not None]


def test_delegates_in_branches_are_numbered_as_they_are_called(cache: Cache) -> None:
    artifact = lower(request(Gate(), UP, torch.tensor(True)), cache)
    assert [number for _, number in calls(artifact.program)] == [0, 1, 2, 3, 4]
    places = [name.rpartition(".")[0] for name, _ in calls(artifact.program)]
    assert places == ["", "cond.submodule_0", "cond.submodule_0", "cond.submodule_1", ""]
    inside = [list(read_graph(delegate.tosa).operator_counts()) for delegate in artifact.delegates]
    assert [names[-1] for names in inside] == ["RESHAPE", "TANH", "RESHAPE", "SIGMOID", "CLAMP"]
    assert [node.operator for node in artifact.leftovers] == ["higher_order.cond", "aten.sort.default"]
    assert "control flow" in artifact.leftovers[0].reason


@pytest.mark.parametrize("up", [True, False])
def test_delegates_in_branches_run_on_a_device(up: bool, evaluator: Evaluator) -> None:
    case = subject(Gate(), UP, torch.tensor(up))
    record = evaluator.evaluate(case, Profile.parse("FP"), "none", "emulation")
    assert (record.verdict, record.message) == (Verdict.PASS, "")
    judged = [item for item in record.comparisons if item.pair == "emulation/reference"]
    assert len(judged) == (4 if up else 3)


def test_a_loop_calls_its_delegate_each_time(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(subject(mapped, UP), Profile.parse("FP"), "none", "emulation")
    assert (record.verdict, record.message) == (Verdict.PASS, "")


def test_a_loop_that_executorch_does_not_emit_is_the_lowerings(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(subject(never, UP), Profile.parse("FP"), "none", "reference")
    assert (record.verdict, record.stage) == (Verdict.FAIL, Stage.LOWER)
    assert "Unsupported control flow operator: while_loop" in record.message


def test_what_the_converter_refuses_fails_at_convert_and_runs_on_the_reference_model(
    evaluator: Evaluator, cache: Cache
) -> None:
    def gated(x: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return torch.cond(up, lambda x: x * 2.0, lambda x: x - 1.0, (x,))

    profile = Profile.parse("FP+cf")
    for up in (torch.tensor([True]), torch.tensor([False])):
        case = subject(gated, UP, up)
        record = evaluator.evaluate(case, profile, "none", "reference")
        assert (record.verdict, record.message) == (Verdict.PASS, "")
        assert record.delegates[0].tosa_operators["COND_IF"] == 1
        record = evaluator.evaluate(case, profile, "none", "emulation")
        assert (record.verdict, record.stage, record.finding) == (
            Verdict.FAIL,
            Stage.CONVERT,
            Finding.RAISED,
        )
        assert "failed to legalize operation 'tosa.cond_if'" in record.message
    artifact = lower(request(gated, UP, up, profile=profile), cache)
    assert (artifact.delegates[0].vgf, artifact.pte) == (b"", b"")
