"""Are the numbers of each RESCALE the best for the scale that they stand for?

A RESCALE multiplies by an integer and shifts right (TOSA 1.0: ``apply_scale_32``, ``apply_scale_16``), so that
it stands for ``multiplier / 2**shift``. A multiplier has 31 bits beside its sign, with ``scale32`` false 15; a
shift is 2 to 62. An error in the last bits of a multiplier hides behind the one step that an output may be
off, so the numbers themselves are compared: exactly, as fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor

import numpy as np

from vgf_conformance.formats.boundary import Problem
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator
from vgf_conformance.vocabulary import Finding, Stage

_SHIFTS = range(2, 63)


def check_rescales(delegate: Delegate, graph: TosaGraph) -> list[Problem]:
    """Find multipliers and shifts that are not the nearest to the scales that the backend wanted.

    A RESCALE whose scale is not known (see ``Delegate.scales``) is passed over.
    """
    return [
        Problem(Stage.LOWER, Finding.WRONG, f"{delegate.name}, RESCALE {operator.outputs[0]!r}: {message}")
        for part in graph.parts
        for operator in part.operators
        if operator.name == "RESCALE" and operator.outputs[0] in delegate.scales
        for message in _differences(part, operator, delegate.scales[operator.outputs[0]])
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


def _differences(part: TosaGraph, operator: TosaOperator, scales: tuple[float, ...]) -> Iterator[str]:
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
