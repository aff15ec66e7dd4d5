"""Chains of ten operators, one of them with a wide bound, and a device that is as far off there as told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.comparison.build import GraphBuilder
from vgf_conformance.attribution.cut import alone, pieces
from vgf_conformance.comparison.propagation import propagate
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import read_graph, storage
from vgf_conformance.targets.base import Array, Outputs

SHAPE = [2, 16]


@dataclass(frozen=True)
class Chain:
    """The wide operator, the dtype, and the range of what it reads."""

    operator: str
    dtype: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.operator}-{self.dtype}"

    @property
    def input(self) -> Array:
        """Of the range, in steps that ADD and SUB do not round: the others have no noise to speak of."""
        step = 2.0**-16 if self.dtype == "float32" else 2.0**-7
        data = np.random.default_rng(7).uniform(self.low, self.high, SHAPE)
        return (np.round(data / step) * step).astype(self.dtype)

    def tosa(self) -> bytes:
        """Ten operators: one branch with the wide operator at position 2, one at 6, and their sum.

        So the propagated bound has room for twice the error of one.
        """
        build = GraphBuilder()
        x = build.input("x", SHAPE, self.dtype)
        half = build.constant(np.full(SHAPE, 0.5, self.dtype), self.dtype)
        shift = build.constant(np.zeros(1, np.int8), "int8")
        moved = build.operator("ADD", [x, half], SHAPE, self.dtype)
        back = build.operator("SUB", [moved, half], SHAPE, self.dtype)
        first = self._wide(build, back)
        turned = build.operator("NEGATE", [first, *self._zeros(build)], SHAPE, self.dtype)
        scaled = build.operator("MUL", [turned, half, shift], SHAPE, self.dtype)
        again = build.operator("SUB", [moved, half], SHAPE, self.dtype)
        second = self._wide(build, again)
        smaller = build.operator("MUL", [second, half, shift], SHAPE, self.dtype)
        less = build.operator("MUL", [smaller, half, shift], SHAPE, self.dtype)
        return build.finish(build.operator("SUB", [scaled, less], SHAPE, self.dtype))

    def _zeros(self, build: GraphBuilder) -> list[str]:
        return [build.constant(np.zeros(1, self.dtype), self.dtype) for _ in range(2)]

    def _wide(self, build: GraphBuilder, name: str) -> str:
        if self.operator == "POW":
            exponent = build.constant(np.full(SHAPE, 40.0, self.dtype), self.dtype)
            return build.operator("POW", [name, exponent], SHAPE, self.dtype)
        return build.operator(self.operator, [name], SHAPE, self.dtype)


class Device:
    """Exact arithmetic, rounded, but for one piece of its graphs: off by ``share`` of that one's bound.

    ``piece`` is its number, or the name of the operator, whose first one is meant. ``hidden``: not where
    intermediate results are visible. ``flushes``: subnormal results of float32 become zero.
    """

    def __init__(
        self,
        piece: int | str,
        share: float,
        *,
        hidden: bool = False,
        flushes: bool = False,
        name: str = "vulkan",
        driver: str = "",
    ) -> None:
        self.name = name
        self.driver = driver
        self._piece = piece
        self._share = share
        self._hidden = hidden
        self._flushes = flushes
        self._delegates: Sequence[Delegate] = ()
        self.ran: list[int] = []

    def load(self, delegates: Sequence[Delegate]) -> None:
        self._delegates = delegates

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        self.ran.append(index)
        graph = read_graph(self._delegates[index].tosa)
        seen = dict(zip(graph.inputs, inputs, strict=True))
        shown = len(graph.outputs) > 1
        names = [graph.operators[piece.operators[-1]].name for piece in pieces(graph)]
        wanted = names.index(self._piece) if self._piece in names else self._piece
        for number, piece in enumerate(pieces(graph)):
            part = alone(graph, piece)
            exact = propagate(part, [seen[name] for name in part.inputs])
            for name, item in zip(part.outputs, exact, strict=True):
                off = number == wanted and not (shown and self._hidden)
                value = item.value + self._share * item.error if off else item.value
                if self._flushes and item.dtype == "float32":
                    value = np.where(np.abs(value) < np.finfo(np.float32).tiny, 0.0, value)
                seen[name] = value.astype(storage(item.dtype))
        return Outputs([np.array(seen[name]) for name in graph.outputs])

    def close(self) -> None:
        """Nothing to give back."""


#: Operators whose own bound is wider than this harness's limit to noise, where they are read in this range.
CHAINS = [
    Chain("SIN", "float32", 1.0, 3.0),
    Chain("COS", "float32", 2.0, 4.0),
    Chain("EXP", "float32", 80.0, 87.0),
    Chain("SIGMOID", "float32", -85.0, -80.0),
    Chain("TANH", "float32", 30.0, 60.0),
    Chain("LOG", "float32", 1.001, 1.002),
    Chain("POW", "float32", 2.0, 3.0),
    Chain("SIN", "float16", 1.0, 2.0),
    Chain("EXP", "float16", 5.0, 8.0),
    Chain("TANH", "float16", 3.0, 6.0),
]
