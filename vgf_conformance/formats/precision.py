"""Where a graph that mixes the profiles computes in floating point, and where it requantises.

In FP+INT a program enters and leaves its quantised part inside the graph: integers are dequantised (a cast, a
factor) and floats quantised (a factor, rounding to the nearest, the zero point, limits, a cast). Every other
floating-point operator computes what the quantiser left alone.
"""

from __future__ import annotations

from collections import Counter

from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator

#: Operators that the backend moves across the boundary of the quantised part: no value changes in them.
_MOVED = {"RESHAPE", "TRANSPOSE", "IDENTITY"}
#: What quantising is made of between its factor and its cast.
_ROUNDING = {"CLAMP", "ADD", "SUB", "FLOOR", "CEIL", "SELECT", "GREATER_EQUAL", *_MOVED}
#: Control flow computes in its regions, which are looked at by themselves.
_CONTROL_FLOW = {"COND_IF", "WHILE_LOOP"}
_INTEGERS = ("int4", "int8", "int16", "int32", "int48")


def computed_in_floating_point(graph: TosaGraph) -> dict[str, int]:
    """How often each operator works in floating point, by name, without what only quantises and dequantises.

    Operators that move data where it is (reshaped, transposed) do not count.
    """
    found = Counter(
        operator.name for part in graph.parts for operator in _Part(part).computing_in_floating_point()
    )
    return dict(sorted(found.items()))


def requantisations(graph: TosaGraph) -> dict[str, int]:
    """How many RESCALEs there are from one dtype to another: ``{"int32 to int8": 2}``."""
    found = Counter(
        f"{part.tensors[operator.inputs[0]].dtype} to {part.tensors[operator.outputs[0]].dtype}"
        for part in graph.parts
        for operator in part.operators
        if operator.name == "RESCALE"
    )
    return dict(sorted(found.items()))


class _Part:
    """The operators of one graph, by what makes and what reads a tensor."""

    def __init__(self, graph: TosaGraph) -> None:
        self._graph = graph
        self._makers = {name: operator for operator in graph.operators for name in operator.outputs}
        self._readers: dict[str, list[TosaOperator]] = {}
        for operator in graph.operators:
            for name in operator.inputs:
                self._readers.setdefault(name, []).append(operator)

    def computing_in_floating_point(self) -> list[TosaOperator]:
        crossing: set[int] = set()
        for operator in self._graph.operators:
            if operator.name == "CAST":
                crossing |= self._quantising(operator) | self._dequantising(operator)
        passed_over = {"CAST", *_MOVED, *_CONTROL_FLOW, *CONSTANTS}
        return [
            operator
            for operator in self._graph.operators
            if id(operator) not in crossing
            and operator.name not in passed_over
            and any(self._is_floating(name) for name in operator.inputs)
        ]

    def _quantising(self, cast: TosaOperator) -> set[int]:
        """The operators from the factor to ``cast``, where that ends a quantisation."""
        source, made = cast.inputs[0], cast.outputs[0]
        if not self._is_floating(source) or self._graph.tensors[made].dtype not in _INTEGERS:
            return set()
        found: set[int] = set()
        waiting = [source]
        while waiting:
            operator = self._makers.get(waiting.pop())
            if operator is None or id(operator) in found or operator.name in CONSTANTS:
                continue
            if operator.name == "MUL":
                found.add(id(operator))
            elif operator.name in _ROUNDING:
                found.add(id(operator))
                waiting += operator.inputs
        return found

    def _dequantising(self, cast: TosaOperator) -> set[int]:
        """The factors that follow ``cast``, where that begins a dequantisation."""
        source, made = cast.inputs[0], cast.outputs[0]
        if not self._is_floating(made) or self._graph.tensors[source].dtype not in _INTEGERS:
            return set()
        found: set[int] = set()
        waiting = [made]
        while waiting:
            for operator in self._readers.get(waiting.pop(), []):
                if operator.name in _MOVED:
                    waiting += operator.outputs
                elif operator.name == "MUL" and any(map(self._is_constant, operator.inputs)):
                    found.add(id(operator))
        return found

    def _is_constant(self, name: str) -> bool:
        maker = self._makers.get(name)
        if maker is not None and maker.name in _MOVED:
            return self._is_constant(maker.inputs[0])
        return self._graph.tensors[name].data is not None or (maker is not None and maker.name in CONSTANTS)

    def _is_floating(self, name: str) -> bool:
        return "float" in self._graph.tensors[name].dtype
