"""The orders of axes in which a TOSA tensor may hold what a PyTorch program has in another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vgf_conformance.targets.base import Array

#: Axes longer than 1 above which not every order is tried: seven have 5,040.
_MOST_AXES = 6


@dataclass(frozen=True)
class Layout:
    """``order`` permutes the axes longer than 1 of an array to those of ``shape``."""

    order: tuple[int, ...]
    shape: tuple[int, ...]

    def apply(self, array: Array) -> Array:
        """The array as the program has it."""
        squeezed = array.reshape(_long(array.shape) if self.order else -1)
        return (squeezed.transpose(self.order) if self.order else squeezed).reshape(self.shape)

    def undo(self, array: Array, shape: tuple[int, ...]) -> Array:
        """What ``apply`` makes ``array`` of, in the shape ``shape`` that TOSA has it in."""
        if not self.order:
            return array.reshape(shape)
        return array.reshape(_long(self.shape)).transpose(np.argsort(self.order)).reshape(shape)


def layouts(array: Array, shape: tuple[int, ...]) -> Iterator[Layout]:
    """The layouts that take ``array``, of as many elements, to ``shape``: as it lies in memory first."""
    yield Layout((), shape)
    given, wanted = _long(array.shape), _long(shape)
    if sorted(given) != sorted(wanted) or len(given) > _MOST_AXES:
        return
    for order in itertools.permutations(range(len(given))):
        if tuple(given[axis] for axis in order) == wanted and order != tuple(range(len(given))):
            yield Layout(order, shape)


def closest(array: Array, expected: Array) -> Layout:
    """The layout in which ``array`` comes closest to ``expected``, of as many elements."""
    return min(layouts(array, expected.shape), key=lambda layout: _distance(layout.apply(array), expected))


def _distance(actual: Array, expected: Array) -> float:
    with np.errstate(invalid="ignore"):
        gap = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    # An infinity equal to that of the other side is NaN here, and as near as a number can be.
    gap = np.where(actual == expected, 0.0, gap)
    return float(np.nan_to_num(gap, nan=np.inf).sum())


def _long(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
