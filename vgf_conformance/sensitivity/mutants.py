"""Faults of a compiler, put into a correct TOSA graph: an operator, an attribute or a constant changed.

A mutant keeps every tensor's shape and dtype, so that it is a graph that could have been emitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator

#: Operators of the same operands and attributes.
_SWAPPED = {
    "ADD": "SUB",
    "SUB": "ADD",
    "MAXIMUM": "MINIMUM",
    "MINIMUM": "MAXIMUM",
    "GREATER": "GREATER_EQUAL",
    "GREATER_EQUAL": "GREATER",
    "EQUAL": "GREATER_EQUAL",
    "REDUCE_MAX": "REDUCE_MIN",
    "REDUCE_MIN": "REDUCE_MAX",
    "REDUCE_ANY": "REDUCE_ALL",
    "REDUCE_ALL": "REDUCE_ANY",
    "LOGICAL_AND": "LOGICAL_OR",
    "LOGICAL_OR": "LOGICAL_AND",
    "LOGICAL_XOR": "LOGICAL_OR",
    "BITWISE_AND": "BITWISE_OR",
    "BITWISE_OR": "BITWISE_XOR",
    "BITWISE_XOR": "BITWISE_AND",
    "SIN": "COS",
    "COS": "SIN",
    "FLOOR": "CEIL",
    "CEIL": "FLOOR",
    "SIGMOID": "TANH",
    "TANH": "SIGMOID",
    "EXP": "RECIPROCAL",
    "LOG": "EXP",
    "RSQRT": "RECIPROCAL",
    "RECIPROCAL": "RSQRT",
    "ERF": "TANH",
    "ABS": "IDENTITY",
}
#: The places of two operands that mean something else the other way round.
_EXCHANGED = {"SELECT": (1, 2), **dict.fromkeys(("SUB", "POW", "GREATER", "GREATER_EQUAL"), (0, 1))}


@dataclass(frozen=True)
class Mutant:
    """A graph with one fault, in the operator at ``position`` or in a constant that it reads.

    ``name`` holds for all graphs of the same operators, whatever their shapes and layouts: it counts
    operators by their kind, ``FLOOR made CEIL (FLOOR 2)``.
    """

    name: str
    position: int
    graph: TosaGraph


def mutants(graph: TosaGraph) -> Iterator[Mutant]:
    """Every mutant of ``graph``, constants that several operators read once for each."""
    makers = {item.outputs[0]: item for item in graph.operators if item.name in CONSTANTS}
    seen: Counter[str] = Counter()
    for position, operator in enumerate(graph.operators):
        if operator.name in CONSTANTS:
            continue
        seen[operator.name] += 1
        place = f"({operator.name} {seen[operator.name]})"
        for fault, changed in _operators(operator, graph):
            yield Mutant(f"{fault} {place}", position, _with(graph, position, changed))
        for number, name in enumerate(operator.inputs):
            if name in makers and graph.tensors[name].dtype != "shape":
                for fault, spoilt in _constants(graph, name):
                    yield Mutant(f"operand {number}, {fault} {place}", position, spoilt)


def _operators(operator: TosaOperator, graph: TosaGraph) -> Iterator[tuple[str, TosaOperator]]:
    if other := _swapped(operator):
        yield f"{operator.name} made {other.name}", other
    if places := _EXCHANGED.get(operator.name):
        one, two = (operator.inputs[place] for place in places)
        if graph.tensors[one].shape == graph.tensors[two].shape:
            inputs = list(operator.inputs)
            inputs[places[0]], inputs[places[1]] = two, one
            yield "operands exchanged", replace(operator, inputs=tuple(inputs))
    for name, value in operator.attributes.items():
        for fault, changed in _ATTRIBUTES.get(name, _unchanged)(operator, value, graph):
            yield fault, replace(operator, attributes={**operator.attributes, name: changed})


def _swapped(operator: TosaOperator) -> TosaOperator | None:
    name = _SWAPPED.get(operator.name)
    if name is None:
        return None
    attributes = (
        {} if name in ("IDENTITY", "RECIPROCAL", "RSQRT", "EXP", "TANH", "SIGMOID") else operator.attributes
    )
    return replace(operator, name=name, attributes=attributes)


Change = Iterator[tuple[str, Any]]


def _unchanged(operator: TosaOperator, value: Any, graph: TosaGraph) -> Change:
    yield from ()


def _pad(operator: TosaOperator, value: tuple[int, ...], graph: TosaGraph) -> Change:
    """One more row before and one less after, or the other way: the shape stays."""
    for before, after in ((0, 1), (2, 3)):
        moved = list(value)
        if len(value) >= after + 1 and value[after] > 0:
            moved[before], moved[after] = value[before] + 1, value[after] - 1
            yield f"padding moved along axis {before // 2}", tuple(moved)


def _perms(operator: TosaOperator, value: tuple[int, ...], graph: TosaGraph) -> Change:
    """Two axes of one size exchanged."""
    shape = graph.tensors[operator.inputs[0]].shape
    for first in range(len(value)):
        for second in range(first + 1, len(value)):
            if shape[value[first]] == shape[value[second]] > 1:
                changed = list(value)
                changed[first], changed[second] = value[second], value[first]
                yield f"axes {first} and {second} exchanged", tuple(changed)


def _bound(step: float) -> Callable[[TosaOperator, Any, TosaGraph], Change]:
    def change(operator: TosaOperator, value: Any, graph: TosaGraph) -> Change:
        integer = graph.tensors[operator.inputs[0]].dtype.startswith("int")
        moved = value + int(step) if integer else value + step * 0.1
        if np.isfinite(moved) and moved != value and abs(moved) < 2**31:
            yield "a limit of the clamp moved", moved

    return change


def _flag(what: str) -> Callable[[TosaOperator, Any, TosaGraph], Change]:
    def change(operator: TosaOperator, value: Any, graph: TosaGraph) -> Change:
        other = {"PROPAGATE": "IGNORE", "IGNORE": "PROPAGATE", "NEAREST": "BILINEAR", "BILINEAR": "NEAREST"}
        if isinstance(value, str) and value in other:
            yield what, other[value]

    return change


#: Attribute -> the faults that leave the shape as it is.
_ATTRIBUTES: dict[str, Callable[[TosaOperator, Any, TosaGraph], Change]] = {
    "pad": _pad,
    "perms": _perms,
    "min_val": _bound(1.0),
    "max_val": _bound(-1.0),
    "nan_mode": _flag("the other NaN mode"),
}


def _constants(graph: TosaGraph, name: str) -> Iterator[tuple[str, TosaGraph]]:
    data = graph.tensors[name].data
    if data is None or not data.size:
        return
    for fault, changed in _changed(np.array(data)):
        tensors = {**graph.tensors, name: replace(graph.tensors[name], data=changed)}
        yield fault, replace(graph, tensors=tensors)


def _changed(data: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The largest element left out, and one element moved: a tenth of it, or one step of an integer."""
    flat = data.reshape(-1)
    if data.dtype == np.bool_:
        yield "a constant turned over", _put(data, 0, ~flat[0])
        return
    wide = np.abs(flat.astype(np.float64))
    place = int(np.argmax(np.where(np.isfinite(wide), wide, -1.0)))
    if data.size > 1 and flat[place] != 0:
        yield "a constant's element left out", _put(data, place, 0)
    if data.dtype.kind in "iu":
        yield "a constant off by one", _put(data, place, flat[place] - (1 if flat[place] > 0 else -1))
    elif np.isfinite(wide[place]):
        moved = flat[place].astype(np.float64) * 1.1 or 0.1
        yield "a constant off by a tenth", _put(data, place, moved)


def _put(data: NDArray[Any], place: int, value: Any) -> NDArray[Any]:
    changed = np.array(data)
    changed.reshape(-1)[place] = np.asarray(value).astype(data.dtype)
    return changed


def _with(graph: TosaGraph, position: int, operator: TosaOperator) -> TosaGraph:
    return replace(graph, operators=(*graph.operators[:position], operator, *graph.operators[position + 1 :]))
