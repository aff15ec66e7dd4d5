"""The reference model in fp64: the same numbers as this harness's own interpreter, in every type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.attribution.graphs import SHAPE, chain
from tests.comparison.build import GraphBuilder
from vgf_conformance.comparison.propagation import propagate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.targets.precise import PreciseFailure, precise_results


def test_a_long_graph_agrees_with_the_interpreter() -> None:
    tosa = chain(24)
    graph = read_graph(tosa)
    inputs = [np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)]
    (found,) = precise_results(tosa, graph, inputs)
    (known,) = propagate(graph, inputs)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, known.value, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8])
def test_narrow_types_are_handed_over(dtype: type) -> None:
    build = GraphBuilder()
    name = np.dtype(dtype).name
    x = build.input("x", [2, 3], name)
    tosa = build.finish(build.operator("REVERSE", [x], [2, 3], name, axis=1))
    inputs: list[Any] = [np.arange(-3, 3).reshape(2, 3).astype(dtype)]
    (found,) = precise_results(tosa, read_graph(tosa), inputs)
    assert found.tolist() == [[-1, -2, -3], [2, 1, 0]]


def test_an_unpredictable_run_has_no_exact_result() -> None:
    build = GraphBuilder()
    values, indices = build.input("values", [1, 2, 1], "float32"), build.input("indices", [1, 1], "int32")
    tosa = build.finish(build.operator("GATHER", [values, indices], [1, 1, 1], "float32"))
    inputs = [np.zeros((1, 2, 1), np.float32), np.array([[7]], np.int32)]
    with pytest.raises(PreciseFailure, match="the fp64 run ends"):
        precise_results(tosa, read_graph(tosa), inputs)
