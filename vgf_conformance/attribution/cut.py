"""A TOSA graph in pieces: each operator alone, all of them visible, or only the first few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator
from vgf_conformance.formats.tosa_write import write_graph
from vgf_conformance.targets.base import Array

#: A TOSA flatbuffer made into a VGF.
Convert = Callable[[bytes], bytes]

#: Element types that no tensor outside a graph may have: what they join stays together.
_INSIDE_ONLY = frozenset({"int48", "shape"})


@dataclass(frozen=True)
class Piece:
    """Operators of a graph that are run together, by position; mostly one.

    ``reads`` are the tensors that they need from outside, constants left out, and ``writes``
    those that they make and that can be seen.
    """

    operators: tuple[int, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def pieces(graph: TosaGraph) -> list[Piece]:
    """Every operator in a piece, constants aside, in an order in which the pieces can run.

    An operator whose result cannot leave the graph (int48 accumulators) is in one piece with
    those that read it.
    """
    constant = _constants(graph)
    groups: list[list[int]] = []
    for index, operator in enumerate(graph.operators):
        if operator.name in CONSTANTS:
            continue
        joined = [group for group in groups if _hidden(graph, group) & set(operator.inputs)]
        for group in joined:
            groups.remove(group)
        groups.append(sorted([index, *(position for group in joined for position in group)]))
    return [_piece(graph, group, constant) for group in sorted(groups, key=lambda group: group[-1])]


def visible(graph: TosaGraph, parts: Sequence[Piece]) -> TosaGraph:
    """``graph`` with everything that ``parts`` write as its outputs, in their order."""
    return replace(graph, outputs=tuple(name for part in parts for name in part.writes))


def alone(graph: TosaGraph, part: Piece) -> TosaGraph:
    """The graph of one piece: it reads what the piece reads and gives what it writes."""
    return _of(graph, part.operators, part.reads, part.writes)


def first(graph: TosaGraph, parts: Sequence[Piece]) -> TosaGraph:
    """The graph up to the end of ``parts``, with the outputs that something behind them needs."""
    kept = {position for part in parts for position in part.operators}
    behind = {
        name
        for position, operator in enumerate(graph.operators)
        if position not in kept
        for name in operator.inputs
    }
    needed = behind.union(graph.outputs)
    outputs = tuple(name for part in parts for name in part.writes if name in needed)
    return _of(graph, sorted(kept), graph.inputs, outputs)


def as_delegate(
    graph: TosaGraph, values: Mapping[str, Array], convert: Convert = lambda tosa: b""
) -> Delegate:
    """The graph as a target runs it, on inputs of the shapes that ``values`` have by name.

    ``convert`` makes its VGF, which every target but the reference model needs.
    """
    tosa = write_graph(graph)
    return Delegate(
        name="cut",
        tosa=tosa,
        vgf=convert(tosa),
        inputs=tuple(_port(graph, name, values[name].shape) for name in graph.inputs),
        outputs=tuple(_port(graph, name, graph.tensors[name].shape) for name in graph.outputs),
        nodes=len(graph.operators),
    )


def _port(graph: TosaGraph, name: str, shape: tuple[int, ...]) -> Port:
    return Port(shape, graph.tensors[name].dtype, tuple(range(len(shape))))


def _piece(graph: TosaGraph, group: Sequence[int], constant: set[str]) -> Piece:
    operators = [graph.operators[index] for index in group]
    made = [name for operator in operators for name in operator.outputs]
    read = dict.fromkeys(name for operator in operators for name in operator.inputs)
    return Piece(
        operators=tuple(group),
        reads=tuple(name for name in read if name not in constant and name not in made),
        writes=tuple(name for name in made if graph.tensors[name].dtype not in _INSIDE_ONLY),
    )


def _hidden(graph: TosaGraph, group: Iterable[int]) -> set[str]:
    made = (name for index in group for name in graph.operators[index].outputs)
    return {name for name in made if graph.tensors[name].dtype in _INSIDE_ONLY}


def _constants(graph: TosaGraph) -> set[str]:
    return {name for operator in graph.operators if operator.name in CONSTANTS for name in operator.outputs}


def _of(
    graph: TosaGraph, positions: Iterable[int], inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> TosaGraph:
    chosen = [graph.operators[position] for position in positions]
    read = {name for operator in chosen for name in operator.inputs}
    constants = [operator for operator in graph.operators if _holds(operator, read)]
    names = [
        *inputs,
        *(name for operator in (*constants, *chosen) for name in (*operator.inputs, *operator.outputs)),
    ]
    tensors = {name: graph.tensors[name] for name in dict.fromkeys(names)}
    return replace(graph, tensors=tensors, operators=(*constants, *chosen), inputs=inputs, outputs=outputs)


def _holds(operator: TosaOperator, read: set[str]) -> bool:
    return operator.name in CONSTANTS and not read.isdisjoint(operator.outputs)
