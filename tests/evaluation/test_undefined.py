"""The exported program against eager, and the elements that PyTorch leaves undefined."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.subjects import FP, INT, randn, request, subject
from vgf_conformance.evaluation.eager import EagerFailure, repeated_eager
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.exported import check_export
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.lower import export
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: The last two are the largest float32 below 2^31, and the smallest int32.
OUT_OF_RANGE = torch.tensor([3e9, 1.5, math.nan, -math.inf, 2147483520.0, -2147483648.0])
ROWS = torch.tensor([[1.0, 2, 2, 3], [1, 2, 3, 4]])
INTEGERS = torch.tensor([1, 2, 3, 4], dtype=torch.int32)


def found(module: nn.Module | Callable[..., Any], *inputs: Any) -> Undefined:
    case = subject(module, *inputs)
    eager = repeated_eager(case.module, case.inputs)
    return check_export(export(request(module, *inputs)), case, eager)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def marked(module: nn.Module | Callable[..., Any], *inputs: Any) -> list[Any]:
    # Beside it an output that is always defined.
    masks = found(lambda *given: [*_list(module(*given)), torch.zeros(1)], *inputs).masks[:-1]
    return [None if mask is None else mask.int().tolist() for mask in masks]


def write_rows(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[torch.tensor([1, 0, 1])] = rows
    return x


def through_a_view(x: torch.Tensor) -> list[torch.Tensor]:
    y = torch.zeros(2, 3, dtype=torch.int32)
    y[0] = x[:3].int()
    return [y, y + 1]


@pytest.mark.parametrize(
    ("function", "inputs", "masks"),
    [
        (lambda x: x.to(torch.int32), [OUT_OF_RANGE], [[1, 0, 1, 1, 0, 0]]),
        (lambda x: x.to(torch.int64), [torch.tensor([3e9, 2.0**63, -(2.0**63)])], [[0, 1, 0]]),
        (lambda x: x.half().to(torch.uint8), [torch.tensor([-1.0, -0.5, 255.5, 256.0])], [[1, 0, 0, 1]]),
        (lambda x: torch.zeros(6, dtype=torch.int8).copy_(x), [OUT_OF_RANGE], [[1, 0, 1, 1, 1, 1]]),
        (lambda x: x << 32, [INTEGERS], [[1, 1, 1, 1]]),
        (lambda x, by: x >> by, [INTEGERS, torch.tensor([0, 31, 32, -1]).int()], [[0, 0, 1, 1]]),
        (lambda x: torch.topk(x, 3), [ROWS], [None, [[0, 1, 1], [0, 0, 0]]]),
        (lambda x: torch.topk(x, 2, dim=0), [ROWS], [None, [[1, 1, 0, 0], [1, 1, 0, 0]]]),
        (lambda x: torch.topk(x, 2, sorted=False)[0], [ROWS], [[[1, 1], [1, 1]]]),
        (torch.sort, [torch.tensor([math.nan, 1.0, math.nan])], [None, [0, 1, 1]]),
        (torch.argsort, [ROWS], [[[0, 1, 1, 0], [0, 0, 0, 0]]]),
        (lambda x: torch.median(x, 1), [ROWS], [None, [1, 0]]),
        (write_rows, [torch.zeros(3, 2), randn(3, 2)], [[[0, 0], [1, 1], [0, 0]]]),
        (
            lambda x, y: torch.ops.aten.index_put(x, [None, torch.tensor([1, 1])], y),
            [torch.zeros(2, 3), randn(2, 2)],
            [[[0, 1, 0]] * 2],
        ),
        (
            lambda x, y: x.index_copy(0, torch.tensor([2, 2]), y),
            [torch.zeros(3, 2), randn(2, 2)],
            [[[0] * 2] * 2 + [[1] * 2]],
        ),
        (
            lambda x, y: x.scatter(0, torch.tensor([[0, 1], [0, 2]]), y),
            [torch.zeros(3, 2), randn(2, 2)],
            [[[1, 0], [0, 0], [0, 0]]],
        ),
    ],
)
def test_what_is_undefined(function: Any, inputs: list[Any], masks: list[Any]) -> None:
    assert marked(function, *inputs) == masks


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: torch.sort(x, stable=True), [ROWS]),
        (lambda x: torch.argmax(x, 1), [ROWS]),
        (lambda x: torch.max(x, 1), [ROWS]),
        (lambda x: x.bool(), [OUT_OF_RANGE]),
        (lambda x: [x.mean(0), x.sum(0), x.prod(0)], [torch.zeros(0, 3)]),
        (lambda x, y: x.index_put((torch.tensor([1, 1]),), y, accumulate=True), [torch.zeros(3), randn(2)]),
        (lambda x: x.index_put((torch.tensor([1, 1]),), torch.full((2,), math.nan)), [torch.zeros(3)]),
        (lambda x: x.index_copy(0, torch.tensor([1, 1]), torch.ones(2)), [torch.zeros(3)]),
        (lambda x: x.scatter(0, torch.tensor([1, 1]), torch.ones(3)), [torch.zeros(3)]),
        (lambda x: torch.where(x.abs() < 2e9, x.int(), 0), [OUT_OF_RANGE]),
        (lambda x: x.int().masked_fill(~(x.abs() < 2e9), 7), [OUT_OF_RANGE]),
    ],
)
def test_what_is_defined(function: Any, inputs: list[Any]) -> None:
    assert marked(function, *inputs) == []


@pytest.mark.parametrize(
    ("function", "masks"),
    [
        (lambda x: (x.int() + 1).reshape(2, 3), [[[1, 0, 1], [1, 0, 0]]]),
        (lambda x: x.int() + torch.zeros(2, 1), [[[1, 0, 1, 1, 0, 0]] * 2]),
        (lambda x: torch.stack([x.int(), x.bool()]).chunk(2), [[[1, 0, 1, 1, 0, 0]], [[0] * 6]]),
        (lambda x: x.int()[torch.tensor([1, 0])], [[0, 1]]),
        (lambda x: [x.int().sum(), x.int()[1:2].sum()], [1, None]),
        (through_a_view, [[[1] * 3] * 2] * 2),
        (
            lambda x: torch.cond(x[1] > 0, lambda x: x.int() + 1, lambda x: x.bool().int(), (x,)),
            [[1] * 6],
        ),
    ],
)
def test_it_goes_on(function: Any, masks: list[Any]) -> None:
    given = marked(function, OUT_OF_RANGE)
    assert [None if mask is None or not torch.tensor(mask).any() else mask for mask in given] == [
        None if mask is None or not torch.tensor(mask).any() else mask for mask in masks
    ]


@pytest.mark.parametrize(
    "function", [lambda x: x // 0, lambda x: x % 0, lambda x: torch.fmod(x, 0), lambda x: x[:0].amax(0)]
)
def test_eager_refuses_the_rest(function: Any) -> None:
    with pytest.raises(EagerFailure):
        found(function, INTEGERS)


def test_a_sample_without_a_defined_element_is_an_error() -> None:
    with pytest.raises(
        LoweringFailure, match=r"nothing to judge.* 4 of 4 elements of output 0.*lshift"
    ) as caught:
        found(lambda x: x << 32, INTEGERS)
    assert (caught.value.verdict, caught.value.finding) == (Verdict.ERROR, Finding.INPUT)


@pytest.mark.parametrize("target", ["reference", "emulation"])
def test_only_defined_elements_are_judged(evaluator: Evaluator, target: str) -> None:
    case = subject(lambda x: (x.to(torch.int32).float() + 0.5).reshape(2, 3), OUT_OF_RANGE)
    record = evaluator.evaluate(case, FP, "none", target)
    assert record.verdict is Verdict.PASS, record.message
    assert record.notes == [
        "3 of 6 elements of output 0 not judged: PyTorch leaves undefined "
        "a cast of NaN or of a number that the integer type does not hold (to)"
    ]


def test_a_wrong_element_beside_an_undefined_one_is_found(evaluator: Evaluator) -> None:
    # The backend casts to int8 by rounding to the nearest, which is wrong for 1.75 and left open for 300.
    case = subject(lambda x: x.to(torch.int8), torch.tensor([300.0, 1.75, 2.0]))
    record = evaluator.evaluate(case, FP, "none", "reference")
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.LOWER, Finding.WRONG)
    assert "1 of 3 elements, worst at [1]: 2, should be 1" in record.message
    assert "1 of 3 elements of output 0 not judged" in record.notes[0]


def test_equal_elements_of_the_quantised_program_count(evaluator: Evaluator) -> None:
    x = torch.tensor([1.0, 2.0, 2.001, 3.0])
    record = evaluator.evaluate(subject(lambda x: torch.topk(x * 2, 3)[1], x), INT, "a8w8-pc", "reference")
    assert record.verdict is Verdict.PASS
    assert record.notes[0].startswith("2 of 3 elements of output 0 not judged")


class Otherwise(nn.Module):
    """Is another model where it is exported."""

    def __init__(self, then: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.then = then

    def forward(self, x: torch.Tensor) -> Any:
        return self.then(x) if torch.compiler.is_exporting() else x.abs()


def one_off(x: torch.Tensor) -> torch.Tensor:
    return x.abs() + torch.tensor([0.0, 1e-4, 0.0])


@pytest.mark.parametrize(("profile", "scheme"), [(FP, "none"), (INT, "a8w8-pc")])
@pytest.mark.parametrize(
    ("then", "said"),
    [
        (one_off, "output 0, element [0, 1] is 2.0 in eager, 2.0000998973846436 as exported"),
        (lambda x: [x.abs(), x], "the number of outputs is 1 in eager, 2 as exported"),
        (lambda x: x.abs().double(), "output 0 is float32[1, 3] in eager, float64[1, 3] as exported"),
        (
            lambda x: x.abs().where(x > 0, math.nan),
            "output 0, element [0, 0] is 1.0 in eager, nan as exported",
        ),
        (lambda x: x.abs() * (1 + 3e-5), "output 0, element [0, 0] is 1.0 in eager, 1.00003"),
        (
            lambda x: -x.abs() * torch.tensor([-1.0, -1.0, 1.0]),
            "element [0, 2] is 0.0 in eager, -0.0 as exported",
        ),
    ],
)
def test_an_export_that_differs_is_a_failure_at_export(
    profile: Any, scheme: str, then: Any, said: str, evaluator: Evaluator
) -> None:
    case = subject(Otherwise(then), torch.tensor([[-1.0, 2.0, 0.0]]))
    record = evaluator.evaluate(case, profile, scheme, "emulation")
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.EXPORT, Finding.WRONG)
    assert record.message.startswith("the exported program differs from eager: ") and said in record.message


def test_a_fused_kernel_may_round_otherwise() -> None:
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
    assert found(encoder, randn(2, 7, 32)).notes() == []


class Counts(nn.Module):
    """Counts in a buffer, and writes to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x.add_(self.calls)


def test_the_walk_leaves_state_and_inputs_alone() -> None:
    module, x = Counts(), randn(3)
    kept = x.clone()
    found(module, x)
    assert module.calls == 0 and torch.equal(x, kept)


def test_a_program_that_raises_on_other_inputs_is_a_failure_at_export() -> None:
    case = subject(lambda x: x.reshape(3), randn(3))
    exported = export(request(case.module, randn(3)))
    case.inputs = (randn(4),)
    with pytest.raises(LoweringFailure) as caught:
        check_export(exported, case, [randn(3)])
    assert (caught.value.stage, caught.value.finding) == (Stage.EXPORT, Finding.RAISED)


def test_what_tosa_leaves_open_too_is_no_failure_of_the_stack(evaluator: Evaluator) -> None:
    """CAST clips 3e9 to the largest int32, and ADD overflows."""
    case = subject(lambda x: x.to(torch.int32) + 1, torch.tensor([3e9, 1.5]))
    record = evaluator.evaluate(case, FP, "none", "emulation")
    assert (record.verdict, record.stage, record.finding) == (Verdict.ERROR, Stage.EXPORT, Finding.INPUT)
    assert record.message.startswith("nothing to judge, choose other inputs: 1 of 2 elements of output 0")
    assert "(to); and so does TOSA: " in record.message
