"""What the operators share: a value with its error bound, the registry, interval arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison.bounds import FORMATS

Array = NDArray[Any]
Float = NDArray[np.float64]

#: Smallest and largest value of each integer dtype.
RANGES = {
    "int4": (-7, 7),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int48": (-(2**47), 2**47 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "shape": (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True)
class Bounded:
    """A tensor as exact arithmetic has it, and how far a conforming implementation may be from it.

    ``value`` is float64, int64 or bool; ``error`` has its shape, in the value's units
    (1 for a bool that may be either); ``dtype`` is what the graph declares.
    """

    value: Array
    error: Float
    dtype: str

    @property
    def floating(self) -> bool:
        """Whether the graph declares a floating-point tensor."""
        return self.dtype in FORMATS

    @property
    def exact(self) -> bool:
        """Whether no element may differ."""
        return not self.error.any()

    @property
    def low(self) -> Float:
        """The least that each element may be."""
        return self._moved(-1.0)

    @property
    def high(self) -> Float:
        """The most that each element may be."""
        return self._moved(1.0)

    def _moved(self, sign: float) -> Float:
        # inf - inf: an element that may be anything.
        moved = self.value + sign * self.error
        return np.where(np.isinf(self.error) & ~np.isnan(self.value), sign * np.inf, moved)


@dataclass(frozen=True)
class Call:
    """One output of one operator, with the operands at hand; ``shape`` and ``dtype`` are the output's.

    ``version`` names the table of bounds, ``output`` says which output it is.
    """

    name: str
    attributes: dict[str, Any]
    inputs: tuple[Bounded, ...]
    shape: tuple[int, ...]
    dtype: str
    version: str
    output: int = 0

    def constant(self, index: int) -> Array:
        """The value of an operand that steers the operator: a zero point, a shape, a shift."""
        return self.inputs[index].value

    def scalar(self, index: int) -> int:
        """The same for a tensor of one element."""
        return int(self.inputs[index].value.reshape(-1)[0])

    @property
    def floating(self) -> bool:
        """Whether the first operand is floating point."""
        return self.inputs[0].floating

    def result(self, value: Array, error: Float | float = 0.0) -> Bounded:
        """The output: integers wrapped to the dtype's width, an error that is NaN made infinite."""
        if self.dtype in FORMATS:
            value = value.astype(np.float64)
        elif self.dtype == "bool":
            value = value.astype(np.bool_)
        else:
            value = wrap(value.astype(np.int64), self.dtype)
        spread = np.broadcast_to(np.asarray(error, np.float64), value.shape)
        if self.dtype not in FORMATS:
            # Two integers that differ by at most 1.3 differ by at most 1; the slack is fp64's own rounding.
            spread = np.floor(spread + 1e-6)
        return Bounded(value, np.where(np.isnan(spread), np.inf, spread), self.dtype)


Operator = Callable[[Call], Bounded]

#: Operators with several outputs, and how many.
SEVERAL_OUTPUTS = {"FFT2D": 2, "RFFT2D": 2}

#: TOSA operator name -> its meaning.
OPERATORS: dict[str, Operator] = {}


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Enter a function into OPERATORS under ``names``."""

    def enter(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return enter


def wrap(value: Array, dtype: str) -> Array:
    """Reduce int64 values to the width of ``dtype`` as two's complement does.

    TOSA calls an overflow unpredictable; the reference model wraps.
    """
    if dtype in ("int8", "int16", "int32"):
        return value.astype(dtype).astype(np.int64)
    return value


def distance(first: Array, second: Array) -> Float:
    """|first - second|, 0 where both are the same infinity or both NaN, infinite where only one is NaN."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    gap = np.abs(
        np.subtract(first, second, where=~same, out=np.zeros(np.broadcast_shapes(first.shape, second.shape)))
    )
    return np.where(np.isnan(gap), np.inf, gap)


def product(error: Array, factor: Array) -> Float:
    """error * |factor|, where an error of 0 stays 0 whatever the factor."""
    spread = np.asarray(error * np.abs(factor), np.float64)
    return np.where((error == 0) | (factor == 0), 0.0, spread)


def spread(function: Callable[..., Array], value: Array, *operands: Bounded) -> Float:
    """How far ``function`` may go from ``value``, where it is monotone in each operand alone.

    Its extremes over the operands' intervals are then at corners.
    """
    if all(operand.exact for operand in operands):
        return np.zeros(value.shape)
    corners: list[tuple[Float, ...]] = [()]
    for operand in operands:
        ends = (operand.low, operand.high) if not operand.exact else (operand.value.astype(np.float64),)
        corners = [(*corner, end) for corner in corners for end in ends]
    widest = [distance(function(*corner), value) for corner in corners]
    return np.asarray(np.maximum.reduce(widest), np.float64)
