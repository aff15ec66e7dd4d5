"""A probe: one operator on numbers whose result tells how a target computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, TosaTensor, storage

Array = NDArray[Any]


@dataclass(frozen=True)
class Answer:
    """What a result says of how it was computed, in a few words; ``wrong`` where TOSA does not allow it."""

    text: str
    wrong: bool = False


@dataclass(frozen=True)
class Probe:
    """A graph of one operator, its inputs, and what to read off its result."""

    graph: TosaGraph
    inputs: tuple[Array, ...]
    answer: Callable[[Array], Answer]

    @property
    def operator(self) -> str:
        """The operator, with the accumulator that it is given where it is given one."""
        operator = self.graph.operators[-1]
        accumulator = operator.attributes.get("acc_type")
        return f"{operator.name} with {accumulator}" if accumulator else operator.name


def probe(
    operator: str,
    answer: Callable[[Array], Answer],
    inputs: Sequence[tuple[Any, str]],
    output: tuple[tuple[int, ...], str],
    *,
    constants: Sequence[tuple[Any, str]] = (),
    **attributes: Any,
) -> Probe:
    """Put ``operator`` on ``inputs`` and ``constants``, each numbers with their dtype.

    ``output`` is the result's shape and dtype.
    """
    arrays = [np.asarray(numbers).astype(storage(dtype)) for numbers, dtype in (*inputs, *constants)]
    dtypes = [dtype for _, dtype in (*inputs, *constants)]
    names = [f"operand_{number}" for number in range(len(arrays))]
    given, fixed = names[: len(inputs)], names[len(inputs) :]
    tensors = {
        name: TosaTensor(name, array.shape, dtype, array if name in fixed else None)
        for name, array, dtype in zip(names, arrays, dtypes, strict=True)
    }
    tensors["result"] = TosaTensor("result", *output)
    operators = [TosaOperator("CONST", {}, (), (name,)) for name in fixed]
    operators.append(TosaOperator(operator, attributes, tuple(names), ("result",)))
    graph = TosaGraph("1.0.0", tensors, tuple(operators), tuple(given), ("result",))
    return Probe(graph, tuple(arrays[: len(inputs)]), answer)


def wide(array: Array) -> NDArray[np.float64]:
    """The numbers in fp64."""
    return array.astype(np.float64)
