"""Where in a graph a wrong tensor comes from: the operators behind it, and the step each was made from."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.attribution.graphs import SHAPE, InProcess, chain
from tests.comparison.build import GraphBuilder
from vgf_conformance.attribution.cut import as_delegate, pieces
from vgf_conformance.attribution.prefix import first_failing
from vgf_conformance.attribution.region import Seen, see, step_of
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, read_graph

INPUT = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)


@pytest.fixture(scope="module")
def seen() -> Seen:
    """A chain of six operators: TANH, ADD, SIGMOID, MUL, SUB, MAXIMUM."""
    graph = read_graph(chain(6))
    return see(as_delegate(graph, {"x": INPUT}), [INPUT], InProcess("reference"), {})


def _named(seen: Seen, positions: list[int]) -> list[str]:
    return [seen.graph.operators[at].name for at in positions]


def test_every_tensor_has_its_value(seen: Seen) -> None:
    made = {item.operator.name: item.array.astype(np.float64) for item in seen.made(0)}
    np.testing.assert_allclose(made["TANH"], np.tanh(INPUT), rtol=1e-6)
    assert list(made) == ["TANH", "ADD", "SIGMOID", "MUL", "SUB", "MAXIMUM"]


def test_right_tensors_bound_the_region(seen: Seen) -> None:
    made = {item.operator.name: item.tensor for item in seen.made(0)}
    assert _named(seen, seen.region(made["MUL"], {"x"})) == ["TANH", "ADD", "SIGMOID", "MUL"]
    region = seen.region(made["MUL"], {"x", made["ADD"]})
    assert _named(seen, region) == ["SIGMOID", "MUL"]
    assert seen.read_by(region) == [made["ADD"]]
    assert seen.cut(region, made["MUL"]).outputs == (made["MUL"],)


def test_what_only_moves_has_the_source_of_what_it_moves() -> None:
    build = GraphBuilder()
    x = build.input("x", [2, 3], "float32")
    tanh = build.operator("TANH", [x], [2, 3], "float32")
    moved = build.operator("TRANSPOSE", [tanh], [3, 2], "float32", perms=[1, 0])
    graph = read_graph(build.finish(moved))
    seen = Seen("delegate 0", graph, {}, {})
    assert (seen.source(moved), seen.source(tanh)) == (tanh, tanh)


def _operator(*trace: tuple[str, str]) -> TosaOperator:
    noted = {
        "node_trace": [{"name": name, "target": target} for name, target in trace],
        "nn_module_stack": {},
        "stack_trace": [],
    }
    return TosaOperator("ADD", {}, (), (), json.dumps({"torch_info": noted}))


@pytest.mark.parametrize(
    ("trace", "step"),
    [
        # Newer names come first; the decomposed program's "add" is by chance another step's name.
        ([("add", "aten.add.Tensor"), ("gelu", "aten.gelu.default")], "gelu"),
        # ExecuTorch renames nodes on the way; the operator tells.
        ([("add", "aten.add.Tensor"), ("gelu", "aten.tanh.default")], "add"),
        ([("relu_7", "aten.relu.default")], ""),
        ([], ""),
    ],
)
def test_the_step_that_an_operator_was_made_from(trace: list[tuple[str, str]], step: str) -> None:
    steps = {"add": "aten.add.Tensor", "gelu": "aten.gelu.default"}
    assert step_of(_operator(*trace), steps) == step


@pytest.mark.parametrize("guilty", [0, 3, 5])
def test_the_first_operator_that_a_tool_does_not_take(guilty: int) -> None:
    graph = read_graph(chain(6))
    position = pieces(graph)[guilty].operators[-1]
    name = graph.operators[position].outputs[0]

    def fails(part: TosaGraph) -> bool:
        return any(name in operator.outputs for operator in part.operators)

    found = first_failing(graph, fails)
    assert found is not None
    assert found.position == position
    assert found.graph.operators[-1].outputs == (name,)
    assert first_failing(graph, lambda part: False) is None
