"""How are results rounded that lie half-way between two numbers?

TOSA 1.0.2 lets sums and products be rounded to either neighbour of a tie; CAST to an integer rounds ties
to even. What is asked here is that one implementation does it alike everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vgf_conformance.arithmetic.probe import Answer, Array, Probe, probe, wide
from vgf_conformance.comparison.bounds import FORMATS

#: Where each mode rounds the ties (even below, odd below, and their negatives): 0 the neighbour toward
#: zero, 1 the one away from it.
_MODES = {
    (0, 1, 0, 1): "ties to even",
    (1, 1, 1, 1): "ties away from zero",
    (0, 0, 0, 0): "toward zero",
    (1, 1, 0, 0): "up",
    (0, 0, 1, 1): "down",
}


def rounding(dtype: str) -> list[Probe]:
    """Probes of ``dtype``, each of which answers with a rounding mode."""
    unit = 2.0 ** -FORMATS[dtype].fraction
    even, odd = 1.0, 1.0 + unit
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    base = np.array([even, odd, even, odd]) * signs
    half = signs * unit / 2
    plain = ((4,), dtype)
    steps = _answer([even, odd], unit)
    # (1 + u) 1.5 lies between an odd number and an even one, (1 + 3u) 1.5 the other way round.
    factors = np.array([1 + 3 * unit, 1 + unit, 1 + 3 * unit, 1 + unit]) * signs
    below = [1.5 + 4 * unit, 1.5 + unit]
    found = [
        probe("ADD", steps, [(base, dtype), (half, dtype)], plain),
        probe("SUB", steps, [(base, dtype), (-half, dtype)], plain),
        probe(
            "MUL",
            _answer(below, unit),
            [(factors, dtype), (np.full(4, 1.5), dtype)],
            plain,
            constants=[([0], "int8")],
        ),
    ]
    if dtype == "float32":
        found.append(
            probe("CAST", _answer([2.0, 3.0], 1.0), [([2.5, 3.5, -2.5, -3.5], dtype)], ((4,), "int32"))
        )
    else:
        found.append(probe("CAST", steps, [(base + half, "float32")], plain))
    return found


def _answer(below: Sequence[float], step: float) -> Callable[[Array], Answer]:
    """``below``: the neighbours toward zero of an even tie and an odd one, ``step`` from their others."""
    least = np.array([*below, *below])

    def answer(result: Array) -> Answer:
        taken = tuple((np.abs(wide(result)) - least) / step)
        mode = _MODES.get(taken)
        return Answer(mode) if mode else Answer(f"{wide(result).tolist()}, no rounding mode", wrong=True)

    return answer
