"""What a quantisation scheme prescribes for what an observer saw: scale, zero point and range, in fp64.

Written from the formulas, not from torchao's code. With values from ``low`` to ``high``, both extended to
hold 0, and integers from ``qmin`` to ``qmax``: symmetric, scale = 2 max(-low, high) / (qmax - qmin) with zero
point 0; affine, scale = (high - low) / (qmax - qmin) with zero point qmin - round(low / scale). No scale is
smaller than the observer's ``eps``.

A histogram observer gives up the ends of its range for as long as that makes the expected squared error
smaller: Caffe2's NormMinimization::NonlinearQuantizationParamsSearch, which its documentation names.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

#: The search lets go of this share of the values at a time.
_STEP = 1e-5
#: How far fp32 may err in a sum of 2,048 squares: two errors that differ by less are alike.
_ALIKE = 1e-3
#: How many bins off fp32 may place an end, where counts were rescaled to other bins, or sums pass 2^24.
_BINS = 1
#: By what share of all values fp32 may misjudge how many lie below an end then. Bins at the ends are mostly
#: empty: one value more or less moves an end over many of them.
_COUNT_SHARE = 2.0**-22


@dataclass(frozen=True, eq=False)
class Parameters:
    """How a tensor is quantised: one scale and zero point, or one for each place along ``axis``.

    ``low`` and ``high`` are the ends of the integers, ``dtype`` is their type (int8).
    """

    scale: Float
    zero: Float
    low: int
    high: int
    dtype: str
    axis: int | None = None

    def codes(self, value: Any) -> Float:
        """``value`` in steps from the zero point, in fp64: neither rounded nor limited."""
        scale, zero = self._along(np.ndim(value))
        return np.asarray(np.asarray(value, np.float64) / scale + zero)

    def nearest(self, value: Any) -> Float:
        """``value`` rounded to the nearest code (ties to even), as what that code stands for, in fp64."""
        scale, zero = self._along(np.ndim(value))
        codes = np.clip(np.round(np.asarray(value, np.float64) / scale) + zero, self.low, self.high)
        return np.asarray((codes - zero) * scale)

    def _along(self, rank: int) -> tuple[Any, Any]:
        if self.axis is None:
            return self.scale[0], self.zero[0]
        shape = [1] * rank
        shape[self.axis] = -1
        return self.scale.reshape(shape), self.zero.reshape(shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Parameters)
            and (self.low, self.high, self.dtype, self.axis)
            == (other.low, other.high, other.dtype, other.axis)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero, other.zero)
        )

    def __str__(self) -> str:
        many = f"{self.scale.size} scales along axis {self.axis}" if self.axis is not None else ""
        one = f"scale {self.scale.flat[0]:.8g}, zero point {self.zero.flat[0]}"
        return f"{many or one}, {self.dtype} {self.low}..{self.high}"


def affine(low: Float, high: Float, qmin: int, qmax: int, eps: float) -> tuple[Float, Float]:
    """The scale, and the zero point before it is rounded: qmin - low / scale."""
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    scale = np.maximum((high - low) / (qmax - qmin), eps)
    return scale, np.clip(qmin - low / scale, qmin, qmax)


def symmetric(low: Float, high: Float, qmin: int, qmax: int, eps: float) -> Float:
    """The scale; the zero point is 0."""
    return np.maximum(2.0 * np.maximum(-np.minimum(low, 0.0), np.maximum(high, 0.0)) / (qmax - qmin), eps)


def ranges(histogram: Float, low: float, high: float, codes: int) -> Iterator[tuple[float, float]]:
    """The ranges that norm minimisation may end with, the likeliest first: fp32 cannot tell them apart.

    ``histogram`` counts the values in bins of equal width from ``low`` to ``high``.
    """
    width = (high - low) / histogram.size
    exact = histogram.sum() < 2**24 and not (histogram % 1).any()
    shifts = (0,) if exact else range(-_BINS, _BINS + 1)
    misjudged = 0.0 if exact else _COUNT_SHARE * float(histogram.sum())
    for count in dict.fromkeys((0.0, misjudged, -misjudged)):
        for start, end in _smallest(histogram, width, codes, count):
            for first, last in sorted(
                itertools.product(shifts, shifts), key=lambda pair: abs(pair[0]) + abs(pair[1])
            ):
                yield low + width * (start + first), low + width * (end + last + 1)


def _smallest(histogram: Float, width: float, codes: int, misjudged: float) -> Iterator[tuple[int, int]]:
    """First and last bin after each step until the error grows."""
    smallest = np.inf
    for start, end in _narrowing(histogram, misjudged):
        error = _squared_error(histogram, width, start, end, codes)
        if error > smallest * (1 + _ALIKE):
            return
        smallest = min(smallest, error)
        yield start, end


def _narrowing(histogram: Float, misjudged: float = 0.0) -> Iterator[tuple[int, int]]:
    """First and last bin, after each step that lets go of bins at the end that has more empty ones.

    ``misjudged`` values more are taken to lie below each end.
    """
    below, total = np.cumsum(histogram).tolist(), float(histogram.sum())
    start, end = 0, histogram.size - 1
    alpha, beta = 0.0, 1.0
    while alpha < beta:
        first = max(start, min(end, bisect.bisect_left(below, (alpha + _STEP) * total - misjudged)))
        last = min(end, max(start, bisect.bisect_right(below, (beta - _STEP) * total - misjudged) - 1))
        if first - start > end - last:
            alpha, moved = alpha + _STEP, (first, end)
        else:
            beta, moved = beta - _STEP, (start, last)
        if moved != (start, end):
            start, end = moved
            yield start, end


def _squared_error(histogram: Float, width: float, start: int, end: int, codes: int) -> float:
    """Expected squared error of ``codes`` over the bins start to end, with each bin's values spread evenly.

    What lies outside is rounded to the first or the last code.
    """
    step = width * (end - start + 1) / codes
    if step == 0:
        return 0.0
    begin = (np.arange(histogram.size) - start) * width
    code_of_begin = np.clip(np.floor(begin / step), 0, codes - 1)
    code_of_end = np.clip(np.floor((begin + width) / step), 0, codes - 1)

    def cube(value: Any) -> Any:
        return value * value * value / 3.0

    error = cube(step / 2) - cube(begin - (code_of_begin + 0.5) * step)
    error = error + (code_of_end - code_of_begin - 1) * 2.0 * cube(step / 2)
    error = error + cube(begin + width - (code_of_end + 0.5) * step) - cube(-step / 2)
    return float((histogram / width * error).sum())
