"""Are the numbers of each RESCALE the best for the scale that they stand for, and is that the right scale?

A RESCALE multiplies by an integer and shifts right (TOSA 1.0: ``apply_scale_32``, ``apply_scale_16``): it
stands for ``multiplier / 2**shift``. A multiplier has 31 bits beside its sign, with ``scale32`` false 15; a
shift is 2 to 62. An error in the last bits of a multiplier hides behind the one step that an output may be
off, so the numbers themselves are compared: exactly, as fractions.

The scale follows from those of the quantised program's tensors. With s for them, a RESCALE between two
tensors stands for s_in / s_out, one after a product or a convolution for s_a s_b / s_out, for each channel
with its own weight's s_b (TOSA 1.0, "Quantization"). Sums and comparisons rescale their operands to one
scale, which backends choose as a power of two times one of the operands'. So all but that power is known. A
bilinear RESIZE gives numbers that are larger by its two numerators (TOSA 1.0, RESIZE): behind one, a RESCALE
divides by their product.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats.boundary import Problem
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator
from vgf_conformance.vocabulary import Finding, Stage

_SHIFTS = range(2, 63)

#: What a scale may differ by that is computed from others in float32: four roundings of 2**-24.
_ROUNDING = 2.0**-22
#: With more scales than these a product of three of them comes near to any number by chance.
_MANY = 40


def check_rescales(delegate: Delegate, graph: TosaGraph) -> list[Problem]:
    """Find multipliers and shifts that are not the nearest to their scales, and scales that follow from none.

    A RESCALE whose scale is not known (see ``Delegate.scales``) is passed over.
    """
    derived = _Derived(delegate.parameters) if 0 < len(delegate.parameters) <= _MANY else None
    return [
        Problem(Stage.LOWER, Finding.WRONG, f"{delegate.name}, RESCALE {operator.outputs[0]!r}: {message}")
        for part in graph.parts
        for operator in part.operators
        if operator.name == "RESCALE" and operator.outputs[0] in delegate.scales
        for message in _problems(part, operator, delegate.scales[operator.outputs[0]], derived)
    ]


def nearest(scale: Fraction, bits: int) -> tuple[int, int]:
    """The multiplier of at most ``bits`` bits and the shift that come closest to ``scale``, at least 0.

    Larger shifts come closer, so the largest with which the multiplier has room is taken.
    """
    for shift in reversed(_SHIFTS):
        multiplier = floor(scale * 2**shift + Fraction(1, 2))
        if multiplier < 2**bits:
            return multiplier, shift
    return 2**bits - 1, _SHIFTS[0]


def _problems(
    part: TosaGraph, operator: TosaOperator, scales: tuple[float, ...], derived: _Derived | None
) -> Iterator[str]:
    yield from _differences(part, operator, scales)
    if derived is not None and not derived.explain(scales) and not _divides(part, operator, scales):
        wanted = ", ".join(f"{scale:.9g}" for scale in scales[:4])
        yield f"the scale {wanted} follows from none of the quantised program's, nor a power of two times one"


def _divides(part: TosaGraph, operator: TosaOperator, scales: tuple[float, ...]) -> bool:
    """Whether ``scales`` undo what a RESIZE before ``operator`` multiplies by."""
    for maker in part.operators:
        if maker.name == "RESIZE" and operator.inputs[0] in maker.outputs:
            factors = part.tensors[maker.inputs[1]].data
            numerators = 0.0 if factors is None else float(factors[0] * factors[2])
            return bool(abs(scales[0] * numerators - 1.0) <= _ROUNDING)
    return False


def _differences(part: TosaGraph, operator: TosaOperator, scales: tuple[float, ...]) -> Iterator[str]:
    """The first channel whose multiplier and shift are not the nearest."""
    multipliers, shifts = (part.tensors[name].data for name in operator.inputs[1:3])
    if multipliers is None or shifts is None:
        return
    bits = 31 if operator.attributes["scale32"] else 15
    found = [(int(m), int(s)) for m, s in zip(np.ravel(multipliers), np.ravel(shifts), strict=True)]
    if len(found) != len(scales):
        yield f"{len(found)} multipliers, {len(scales)} scales"
        return
    for channel, ((multiplier, shift), wanted) in enumerate(zip(found, scales, strict=True)):
        scale, best = Fraction(wanted), nearest(Fraction(wanted), bits)
        if abs(_value(multiplier, shift) - scale) > abs(_value(*best) - scale):
            where = f"channel {channel}: " if len(found) > 1 else ""
            yield (
                f"{where}multiplier {multiplier} and shift {shift} stand for "
                f"{float(_value(multiplier, shift)):.9g}, the scale is {wanted:.9g}: {best[0]} and {best[1]} "
                "are nearer"
            )
            return


def _value(multiplier: int, shift: int) -> Fraction:
    return Fraction(multiplier, 2**shift) if shift >= 0 else Fraction(multiplier * 2**-shift)


class _Derived:
    """All scales that follow from a program's parameters, but for powers of two: as logarithms modulo 1."""

    def __init__(self, parameters: tuple[tuple[float, ...], ...]) -> None:
        logarithms = [np.log2(np.asarray(values)) for values in parameters]
        self._tensors = np.concatenate([[0.0], *(values for values in logarithms if len(values) == 1)])
        self._channels = [values for values in logarithms if len(values) > 1]

    def explain(self, scales: tuple[float, ...]) -> bool:
        """Whether ``scales``, of one RESCALE, are a quotient of two parameters or of a product and one."""
        wanted = np.log2(np.asarray(scales))
        alike = bool(np.ptp(wanted) <= _ROUNDING)
        if alike and (_among(self._quotients, wanted[0]) or _among(self._products, wanted[0])):
            return True
        return any(self._is_for_each_channel(wanted, values) for values in self._channels)

    def _is_for_each_channel(self, wanted: NDArray[Any], weights: NDArray[Any]) -> bool:
        """Whether ``wanted`` are successive ones of ``weights``, all with one quotient beside them."""
        count = len(wanted)
        for first in range(len(weights) - count + 1):
            beside = wanted - weights[first : first + count]
            if np.ptp(beside) <= 2 * _ROUNDING and _among(self._quotients, beside[0]):
                return True
        return False

    @functools.cached_property
    def _quotients(self) -> NDArray[Any]:
        return _sorted(self._tensors[:, None] - self._tensors)

    @functools.cached_property
    def _products(self) -> NDArray[Any]:
        sums = self._tensors[:, None, None] + self._tensors[:, None]
        return _sorted(sums - self._tensors)


def _sorted(values: NDArray[Any]) -> NDArray[Any]:
    """Modulo 1, with the neighbours of both ends beyond them."""
    found = np.unique(values % 1.0)
    return np.concatenate([[found[-1] - 1.0], found, [found[0] + 1.0]])


def _among(found: NDArray[Any], value: float) -> bool:
    value %= 1.0
    place = int(np.searchsorted(found, value))
    return bool(np.min(np.abs(found[max(place - 1, 0) : place + 1] - value)) <= 2 * _ROUNDING)
