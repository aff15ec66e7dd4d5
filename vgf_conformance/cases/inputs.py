"""Generators of sample inputs: declared by shape and kind, drawn from a seed when a case runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

#: What a sample is declared with: drawn from a seeded generator when the case runs.
Draw = Callable[[torch.Generator], object]


@dataclass(frozen=True)
class Tensor:
    """A tensor to draw: ``fill`` makes it from a shape, ``arrange`` sets its memory layout."""

    shape: tuple[int, ...]
    fill: Callable[[tuple[int, ...], torch.Generator], torch.Tensor]
    dtype: torch.dtype
    channels_last: bool = False
    transposed: bool = False

    def __call__(self, generator: torch.Generator) -> torch.Tensor:
        """Draw the tensor."""
        shape = self.shape[::-1] if self.transposed else self.shape
        tensor = self.fill(shape, generator).to(self.dtype)
        if self.transposed:
            tensor = tensor.permute(*reversed(range(tensor.dim())))
        if self.channels_last:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        return tensor

    def narrowed(self, dtype: torch.dtype) -> Tensor:
        """The same tensor in another floating-point type."""
        return replace(self, dtype=dtype)


class SpecialValues(Tensor):
    """What ``special_values`` draws; another type has extremes of its own."""

    def narrowed(self, dtype: torch.dtype) -> Tensor:
        """The special values of ``dtype``."""
        return special_values(dtype, column=len(self.shape) == 2)


def normal(
    *shape: int,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
    channels_last: bool = False,
    transposed: bool = False,
) -> Tensor:
    """Normally distributed values with standard deviation ``scale``."""

    def fill(size: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        return torch.randn(size, generator=generator) * scale

    return Tensor(shape, fill, dtype, channels_last, transposed)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Uniformly distributed values in [low, high)."""

    def fill(size: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        return torch.rand(size, generator=generator, dtype=torch.float64) * (high - low) + low

    return Tensor(shape, fill, dtype)


def ramp(*shape: int, low: float, high: float) -> Tensor:
    """Evenly spaced values from ``low`` to ``high``, both included.

    Calibrated on them, 256 or more reach every code of int8, and some 1000 both sides of every rounding.
    """

    def fill(size: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        return torch.linspace(low, high, math.prod(size), dtype=torch.float64).reshape(size)

    return Tensor(shape, fill, torch.float32)


def integers(*shape: int, low: int, high: int, dtype: torch.dtype = torch.int32) -> Tensor:
    """Uniformly distributed integers in [low, high)."""

    def fill(size: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        return torch.randint(low, high, size, generator=generator)

    return Tensor(shape, fill, dtype)


def sparse(*shape: int, share: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """A ``share`` of ones of either sign among zeros: long sums of them stay small whole numbers."""

    def fill(size: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        signs = torch.randint(0, 2, size, generator=generator) * 2 - 1
        return signs * (torch.rand(size, generator=generator) < share)

    return Tensor(shape, fill, dtype)


def booleans(*shape: int) -> Tensor:
    """True and False with equal probability."""
    return integers(*shape, low=0, high=2, dtype=torch.bool)


def values(numbers: Sequence[float], *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Exactly these numbers, as a vector or in ``shape``."""

    def fill(size: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        return torch.tensor(list(numbers), dtype=wide).reshape(size)

    wide = torch.float64 if dtype.is_floating_point else torch.int64
    return Tensor(shape or (len(numbers),), fill, dtype)


def stacked(*parts: Tensor) -> Tensor:
    """The parts one after the other along the first axis: beside ordinary numbers, say, which show more."""

    def fill(size: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        return torch.cat([part(generator) for part in parts])

    first = parts[0]
    return Tensor((sum(part.shape[0] for part in parts), *first.shape[1:]), fill, first.dtype)


def special_values(dtype: torch.dtype = torch.float32, *, column: bool = False) -> Tensor:
    """Signed zeros, ones, the largest and smallest normal magnitudes, infinities and NaN.

    A row and a ``column`` of them broadcast to every pair.
    """
    info = torch.finfo(dtype)
    magnitudes = (0.0, 1.0, info.tiny, info.max, math.inf)
    numbers = [*magnitudes, *(-magnitude for magnitude in magnitudes), math.nan]
    shape = (len(numbers), 1) if column else (len(numbers),)
    return SpecialValues(shape, values(numbers).fill, dtype)
