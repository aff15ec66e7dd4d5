"""A graph written is the graph that was read: over TOSA's own tests and every kind of constant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tosa_reference_model

from tests.attribution.graphs import chain
from tests.comparison.build import GraphBuilder
from vgf_conformance.formats.tosa import TosaGraph, TosaTensor, read_graph
from vgf_conformance.formats.tosa_write import write_graph


def comparable(graph: TosaGraph) -> Any:
    """The graph as plain values, arrays as bytes."""
    tensors = {
        name: (item.shape, item.dtype, None if item.data is None else item.data.tobytes())
        for name, item in graph.tensors.items()
    }
    operators = [
        (item.name, item.inputs, item.outputs, repr(sorted(item.attributes.items())), item.location)
        for item in graph.operators
    ]
    return graph.version, tensors, operators, graph.inputs, graph.outputs


def test_a_graph_survives_and_runs_the_same() -> None:
    data = chain(12)
    graph = read_graph(data)
    written = write_graph(graph)
    assert comparable(read_graph(written)) == comparable(graph)
    array = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
    one, _ = tosa_reference_model.run(data, [array])
    other, status = tosa_reference_model.run(written, [array])
    assert status.name == "TOSA_VALID"
    assert np.array_equal(one[0], other[0])


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        ("int4", [-7, 0, 7, 3, -1]),
        ("int8", [-128, 127]),
        ("int16", [-32768, 32767]),
        ("int48", [-(2**47), 2**47 - 1, -1]),
        ("float32", [-0.0, np.inf, 1e-40]),
        ("float16", [65504.0, 6e-8]),
        ("bfloat16", [1.0, 3.0e38]),
        ("bool", [True, False]),
    ],
)
def test_constants_of_every_dtype(dtype: str, numbers: list[Any]) -> None:
    build = GraphBuilder()
    name = build.constant(np.array(numbers), dtype)
    graph = read_graph(build.finish(name))
    again = read_graph(write_graph(graph)).tensors[name]
    assert again.data is not None
    assert again.data.astype(float).tolist() == [
        float(number) for number in np.array(numbers, again.data.dtype)
    ]
    assert comparable(read_graph(write_graph(graph))) == comparable(graph)


def test_what_the_schema_does_not_have_is_refused() -> None:
    graph = read_graph(chain(1))
    bad = replace(graph.operators[-1], name="TANGLE")
    with pytest.raises(ValueError, match="TANGLE is no TOSA operator"):
        write_graph(replace(graph, operators=(bad,)))
    odd = replace(graph.operators[-1], attributes={"colour": 1})
    with pytest.raises(ValueError, match="TanhAttribute has no field colour"):
        write_graph(replace(graph, operators=(odd,)))
    with pytest.raises(ValueError, match="COMPLEX64 is no DType"):
        write_graph(replace(graph, tensors={"x": TosaTensor("x", (1,), "complex64")}))
