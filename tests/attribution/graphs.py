"""Graphs to cut, and targets that compute one operator of them wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tests.comparison.build import PROPAGATE, GraphBuilder
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, read_graph
from vgf_conformance.formats.tosa_write import write_graph
from vgf_conformance.targets.base import Array, Outputs
from vgf_conformance.targets.reference import ReferenceRunner

#: Rows and columns of every float tensor in the chain.
SHAPE = [4, 6]


def chain(length: int) -> bytes:
    """``length`` operators of several kinds in a row, of which some read two of the results before."""
    build = GraphBuilder()
    x = build.input("x", SHAPE, "float32")
    half = build.constant(np.full(SHAPE, 0.5, np.float32), "float32")
    shift = build.constant(np.zeros(1, np.int8), "int8")
    steps: list[Callable[[str, str], str]] = [
        lambda new, old: build.operator("TANH", [new], SHAPE, "float32"),
        lambda new, old: build.operator("ADD", [new, old], SHAPE, "float32"),
        lambda new, old: build.operator("SIGMOID", [new], SHAPE, "float32"),
        lambda new, old: build.operator("MUL", [new, old, shift], SHAPE, "float32"),
        lambda new, old: build.operator("SUB", [new, half], SHAPE, "float32"),
        lambda new, old: build.operator("MAXIMUM", [new, old], SHAPE, "float32", nan_mode=PROPAGATE),
    ]
    old, new = x, x
    for number in range(length):
        old, new = new, steps[number % len(steps)](new, old)
    return build.finish(new)


def planted(tosa: bytes, name: str) -> bytes:
    """``tosa`` with the columns of the tensor ``name`` swapped end for end, where it makes that tensor."""
    graph = read_graph(tosa)
    position = next((at for at, item in enumerate(graph.operators) if name in item.outputs), None)
    return tosa if position is None else write_graph(_reversed(graph, position, name))


def _reversed(graph: TosaGraph, position: int, name: str) -> TosaGraph:
    true = f"{name}_true"
    maker = replace(graph.operators[position], outputs=(true,))
    swap = TosaOperator("REVERSE", {"axis": len(graph.tensors[name].shape) - 1}, (true,), (name,))
    operators = (*graph.operators[:position], maker, swap, *graph.operators[position + 1 :])
    tensors = {**graph.tensors, true: replace(graph.tensors[name], name=true)}
    return replace(graph, operators=operators, tensors=tensors)


class InProcess:
    """The reference model as a target in this process; ``spoil`` may change what a delegate computes."""

    driver = ""

    def __init__(
        self, name: str, spoil: Callable[[Delegate], bytes] = lambda delegate: delegate.tosa
    ) -> None:
        self.name = name
        self.runs = 0
        self._spoil = spoil
        self._delegates: tuple[Delegate, ...] = ()

    def load(self, delegates: Sequence[Delegate]) -> None:
        self._delegates = tuple(delegates)

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        self.runs += 1
        delegate = replace(self._delegates[index], tosa=self._spoil(self._delegates[index]))
        return Outputs([np.array(item) for item in ReferenceRunner().build(delegate).run(inputs, 0)])

    def close(self) -> None:
        """Nothing to give back."""
