"""The suites' longest dot products on whole numbers: one product of 4608 left out is caught."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from suites.operators.test_convolutions import conv2d_exact_long
from suites.operators.test_linear_algebra import mm_exact
from tests.comparison.build import GraphBuilder
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.targets.base import Array

DTYPES = ("float16", "bfloat16")


def drawn(name: str) -> tuple[Array, Array]:
    """Both operands of the sample of ``mm_exact``, of 4608 terms."""
    (sample,) = (item for item in mm_exact.samples if item.name == name)
    left, right = sample.inputs(seed=0)
    assert left.shape[1] == 4608
    return to_numpy(left), to_numpy(right)


def product(dtype: str, left: Array, right: Array) -> tuple[bytes, list[Array]]:
    """The graph of the matrix product, and its inputs."""
    build = GraphBuilder()
    inputs = [left[None], right[None]]
    a, b = (build.input(name, [*array.shape], dtype) for name, array in zip("ab", inputs, strict=True))
    zero = build.constant([0.0], dtype)
    shape = [1, left.shape[0], right.shape[1]]
    return build.finish(build.operator("MATMUL", [a, b, zero, zero], shape, dtype)), inputs


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dropped_product_is_caught(dtype: str) -> None:
    left, right = drawn(f"long_{dtype}")
    tosa, inputs = product(dtype, left, right)
    graph = read_graph(tosa)
    terms = left[0].astype(np.float64) * right[:, 0].astype(np.float64)
    sums = left.astype(np.float64) @ right.astype(np.float64)
    expected = sums.astype(left.dtype)
    assert np.array_equal(expected.astype(np.float64), sums), "the sample is not exact"

    def passes(outputs: Array) -> bool:
        judged = judge_device(graph, inputs, [outputs[None]], [expected[None]], target="planted", delegate="")
        return all(item.passed for item in judged)

    assert passes(expected)
    counting = np.flatnonzero(terms)
    assert len(counting) > 20
    for place in np.random.default_rng(0).choice(counting, 20, replace=False):
        wrong = sums.copy()
        wrong[0, 0] -= terms[place]
        assert not passes(wrong.astype(left.dtype)), f"the product at {place} is not missed"


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_convolutions_sums_are_exact_too(dtype: str) -> None:
    """What makes a dropped product visible: every sum, in any order, is a number that the type holds."""
    (sample,) = (item for item in conv2d_exact_long.samples if item.name == dtype)
    (image,), layer = sample.inputs(seed=0), sample.module(seed=0)
    weight = layer.weight
    assert isinstance(weight, torch.Tensor)
    assert weight[0].numel() == 4608
    most = torch.nn.functional.conv2d(image.double().abs(), weight.double().abs())
    assert most.max() <= {"float16": 2**11, "bfloat16": 2**8}[dtype]
