"""Graphs in pieces: together the pieces compute what the whole does."""

from __future__ import annotations

from typing import Any

import numpy as np
import tosa_reference_model
import tosa_serializer as ts
from numpy.typing import NDArray

from tests.attribution.graphs import SHAPE, chain
from tests.comparison.build import GraphBuilder
from vgf_conformance.attribution.cut import Piece, alone, first, pieces, visible
from vgf_conformance.formats.tosa import TosaGraph, read_graph
from vgf_conformance.formats.tosa_write import write_graph

INPUT = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


def run(graph: TosaGraph, *inputs: NDArray[Any]) -> list[NDArray[Any]]:
    outputs, status = tosa_reference_model.run(write_graph(graph), list(inputs))
    assert status.name == "TOSA_VALID"
    return [np.array(item) for item in outputs]


def test_every_operator_is_a_piece_that_says_what_it_reads_and_writes() -> None:
    graph = read_graph(chain(4))
    assert [graph.operators[part.operators[0]].name for part in pieces(graph)] == [
        *("TANH", "ADD", "SIGMOID", "MUL")
    ]
    tanh, add, *_ = pieces(graph)
    assert tanh.reads == ("x",)
    assert add.reads == (tanh.writes[0], "x")


def test_pieces_alone_compute_what_the_whole_does() -> None:
    graph = read_graph(chain(9))
    parts = pieces(graph)
    values = {"x": INPUT}
    for part in parts:
        values |= dict(
            zip(part.writes, run(alone(graph, part), *(values[name] for name in part.reads)), strict=True)
        )
    assert np.array_equal(values[graph.outputs[0]], run(graph, INPUT)[0])
    shown = run(visible(graph, parts), INPUT)
    assert all(np.array_equal(values[part.writes[0]], item) for part, item in zip(parts, shown, strict=True))


def test_the_first_operators_give_what_the_others_need() -> None:
    graph = read_graph(chain(6))
    parts = pieces(graph)
    half = first(graph, parts[:3])
    # The fourth multiplies the results of the third and of the second.
    assert half.outputs == (parts[1].writes[0], parts[2].writes[0])
    assert [
        np.array_equal(one, other)
        for one, other in zip(run(half, INPUT), run(visible(graph, parts[1:3]), INPUT), strict=True)
    ] == [True, True]


def test_an_accumulator_of_48_bits_stays_with_its_reader() -> None:
    """int48 has no Vulkan format and no numpy type: no graph may end there."""
    build = GraphBuilder()
    x = build.input("x", [1, 2, 2, 1], "int16")
    weight = build.constant(np.ones([1, 1, 1, 1], np.int8), "int8")
    bias = build.constant(np.zeros([1], np.int64), "int48")
    zeros = [build.constant(np.zeros(1, kind), kind) for kind in ("int16", "int8")]
    wide = build.operator(
        "CONV2D",
        [x, weight, bias, *zeros],
        [1, 2, 2, 1],
        "int48",
        pad=[0, 0, 0, 0],
        stride=[1, 1],
        dilation=[1, 1],
        local_bound=False,
        acc_type=ts.DType.INT48,
    )
    reader = build.operator("IDENTITY", [wide], [1, 2, 2, 1], "int48")
    graph = read_graph(build.finish(reader))
    (part,) = pieces(graph)
    assert [graph.operators[index].name for index in part.operators] == ["CONV2D", "IDENTITY"]
    assert part == Piece(part.operators, ("x",), ())
