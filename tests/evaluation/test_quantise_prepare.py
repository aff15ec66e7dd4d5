"""Step prepare of the quantise stage: the rewritten program is the model, or pass and node are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from executorch.backends.arm._passes import DecomposeSoftmaxPass
from torch import nn
from torch.fx import GraphModule

from tests.evaluation.shared import Thrice, Tied
from tests.subjects import INT, Function, randn, subject
from vgf_conformance.comparison.rewriting import judge_rewritten
from vgf_conformance.evaluation.eager import repeated_eager
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.quantisation.stage import Judgement, judge_quantise
from vgf_conformance.evaluation.subject import request_of
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.lowering.lower import prepared_for
from vgf_conformance.lowering.program import read_prepared
from vgf_conformance.lowering.steps import Steps
from vgf_conformance.vocabulary import Stage, Verdict


def judged(module: nn.Module | Callable[..., Any], *inputs: torch.Tensor, **more: Any) -> Judgement:
    """The quantise stage of ``module`` as it is prepared for INT."""
    one = subject(module, *inputs, **more)
    request = request_of(one, INT, "a8w8-pc")
    exported = torch.export.export(one.module, one.example, dynamic_shapes=one.dynamic_shapes)
    steps = Steps(read_prepared(prepared_for(request, exported)), (), {})
    return judge_quantise(one, request, steps, repeated_eager(one.module, one.inputs), Undefined())


class Shared(nn.Module):
    """A layer called twice, each time with a batch norm of its own behind it."""

    def __init__(self, layer: nn.Module, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer, self.one, self.two = layer, norm(4), norm(4)
        for each, scale in ((self.one, 4.0), (self.two, 0.25)):
            each.running_mean.normal_()
            each.running_var.fill_(scale)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.one(self.layer(x)) + self.two(self.layer(y))


SHARED: dict[str, tuple[Callable[[], nn.Module], Callable[[int], nn.Module], tuple[int, ...]]] = {
    "convolution": (lambda: nn.Conv2d(3, 4, 3), nn.BatchNorm2d, (1, 3, 5, 5)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(3, 4, 3), nn.BatchNorm2d, (1, 3, 5, 5)),
    "convolution along one axis": (lambda: nn.Conv1d(3, 4, 3), nn.BatchNorm1d, (1, 3, 5)),
    "linear": (lambda: nn.Linear(3, 4), nn.BatchNorm1d, (2, 3)),
}


@pytest.mark.parametrize("name", SHARED)
def test_two_norms_that_are_folded_into_one_weight_fail(name: str) -> None:
    layer, norm, shape = SHARED[name]
    found = judged(Shared(layer(), norm).eval(), randn(*shape), randn(*shape, seed=1))
    assert found.fault is not None
    assert found.fault.step == "prepare"
    assert found.fault.cause == ("fuse_linear_bn" if name == "linear" else "fuse_conv_bn")
    assert "layer (" in found.fault.origin
    assert "test_quantise_prepare.py:" in found.fault.origin


class Masked(nn.Module):
    """Attention in which one query sees no key: scaled_dot_product_attention gives zeros there."""

    def __init__(self) -> None:
        super().__init__()
        mask = torch.ones(4, 4, dtype=torch.bool).tril()
        mask[2] = False
        self.register_buffer("mask", mask)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)


def test_attention_that_sees_nothing_fails_in_the_rows_that_see_nothing() -> None:
    found = judged(Masked(), *(randn(1, 2, 4, 8, seed=seed) for seed in range(3)))
    assert found.fault is not None
    assert found.fault.step == "prepare"
    assert found.fault.cause == "DecomposeSoftmaxPass"
    assert "softmax" in found.fault.tensor
    (comparison,) = found.comparisons
    assert comparison.metrics is not None
    assert comparison.metrics.wrong == 2 * 8


def test_attention_of_padding_as_an_input_fails() -> None:
    valid = torch.tensor([1, 1, 1, 0], dtype=torch.bool)
    keep = (valid[:, None] & valid[None, :]).view(1, 1, 4, 4)

    def attend(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, attn_mask=keep)

    found = judged(attend, randn(1, 2, 4, 8), keep)
    assert found.fault is not None
    assert found.fault.cause == "DecomposeSoftmaxPass"


def test_cosine_similarity_along_another_axis_fails_with_its_shape() -> None:
    found = judged(lambda x, y: F.cosine_similarity(x, y, dim=-1), randn(2, 4, 5), randn(2, 1, 5, seed=1))
    assert found.fault is not None
    assert found.fault.cause == "DecomposeCosineSimilarityPass"
    assert found.fault.tensor == "cosine_similarity"
    assert found.fault.message == "output 0 has the shape [2, 5], should be [2, 4]"


def _in_place_on_a_shared_value(x: torch.Tensor) -> torch.Tensor:
    y = x + 1.0
    z = y * 2.0
    F.relu_(y)
    return y + z


class Counter(nn.Module):
    """Keeps a running sum in a buffer, which calibration must not move."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sum.add_(x[0])
        return x + self.sum


def _normed(first: bool) -> nn.Module:
    norm = nn.BatchNorm2d(3 if first else 4)
    norm.running_mean.normal_()
    norm.running_var.fill_(3.0)
    return nn.Sequential(norm, nn.Conv2d(3, 4, 3)) if first else nn.Sequential(nn.Conv2d(3, 4, 3), norm)


RIGHT: dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]] = {
    "norm after convolution": (lambda: _normed(first=False), (randn(1, 3, 5, 5),)),
    "norm before convolution": (lambda: _normed(first=True), (randn(1, 3, 5, 5),)),
    "tied weights": (Tied, (randn(2, 4),)),
    "called three times": (Thrice, (randn(2, 4),)),
    "in-place ReLU on a shared value": (lambda: Function(_in_place_on_a_shared_value), (randn(2, 4),)),
    "dropout": (lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), (randn(2, 4),)),
    "state in a buffer": (Counter, (randn(2, 4),)),
    "minus infinity as a mask": (
        lambda: Function(lambda x: x.masked_fill(x > 1, -torch.inf).softmax(-1)),
        (randn(3, 4),),
    ),
    "a constant's variance": (lambda: Function(lambda x: x.var(-1)), (torch.full((2, 5), 0.1),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_rewriting_that_keeps_the_model_passes(name: str) -> None:
    torch.manual_seed(0)
    module, inputs = RIGHT[name]
    found = judged(module().eval(), *inputs)
    assert found.fault is None
    assert [item.passed for item in found.comparisons] == [True]


@pytest.fixture
def _a_pass_that_scales(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """DecomposeSoftmaxPass with a fault planted: what it makes is 0.1 % too large."""
    original = DecomposeSoftmaxPass.call

    def call(self: Any, module: GraphModule) -> Any:
        result = original(self, module)
        graph = result.graph_module.graph
        for node in graph.nodes:
            if node.target is torch.ops.aten.mul.Tensor:
                with graph.inserting_after(node):
                    scaled = graph.call_function(torch.ops.aten.mul.Scalar, (node, 1.001))
                node.replace_all_uses_with(scaled, delete_user_cb=lambda user, new=scaled: user is not new)
        result.graph_module.recompile()
        return result

    monkeypatch.setattr(DecomposeSoftmaxPass, "call", call)
    yield


@pytest.mark.usefixtures("_a_pass_that_scales")
def test_a_pass_that_is_wrong_by_a_thousandth_is_named() -> None:
    found = judged(lambda x: torch.relu(x + 1).softmax(-1), randn(3, 4))
    assert found.fault is not None
    assert (found.fault.cause, found.fault.tensor) == ("DecomposeSoftmaxPass", "softmax")
    assert found.fault.origin.startswith("aten.softmax.int")


def test_a_record_names_step_value_and_pass(evaluator: Evaluator) -> None:
    layer, norm, shape = SHARED["linear"]
    one = subject(Shared(layer(), norm), randn(*shape), randn(*shape, seed=1))
    record = evaluator.evaluate(one, INT, "a8w8-pc", "reference")
    assert (record.verdict, record.stage) == (Verdict.FAIL, Stage.QUANTISE)
    assert record.message.startswith("prepare: output 0, 8 of 8 elements")
    assert record.quantise_fault is not None
    assert record.quantise_fault.cause == "fuse_linear_bn"


def test_single_elements_and_infinities_are_judged_by_themselves() -> None:
    exact = np.array([1.0, -2.0, np.inf, -np.inf, np.nan])
    native = exact.astype(np.float32)

    def passes(*values: float) -> bool | None:
        return judge_rewritten("pair", 0, np.array(values), exact, native).passed

    assert passes(1.0, -2.0, 255.0, -2.0, 7.0)
    assert not passes(1.0, -2.0, 1.0, -255.0, 0.0)
    assert not passes(1.0, -2.0, -255.0, -255.0, 0.0)
    assert not passes(1.0 + 1e-5, -2.0, 255.0, -255.0, 0.0)
    assert passes(1.0 + 1e-6, -2.0, 255.0, -255.0, 0.0)
    assert not passes(1.0, np.nan, 255.0, -255.0, 0.0)
