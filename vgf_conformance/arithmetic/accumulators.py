"""How wide is what sums are made in?

A 1 beside 2^p and -2^p, in each of the three orders, is kept where the accumulator has p fraction bits
at least, whatever the order of the additions. So the largest p with all three right is the width.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.arithmetic.probe import Answer, Array, Probe, probe, wide
from vgf_conformance.comparison.bounds import FORMATS

#: Where the 1 stands among 2^p and -2^p: the signs of the powers, 0 for the 1.
_ORDERS = np.array([(0, 1, -1), (1, 0, -1), (1, -1, 0)])
#: Exponents of fp16 end at 15: there each product is of two powers, of which one is 2^12.
_SPLIT = 12


def accumulators(dtype: str) -> list[Probe]:
    """Probes of ``dtype``, each of which answers with the fraction bits of an accumulator."""
    zero = ([0.0], dtype)
    narrow = dtype == "float16"
    powers, factor = np.arange(1, 28 if narrow else 64), 2.0**_SPLIT if narrow else 1.0
    rows, weights = _terms(powers, 1 / factor), np.where(_ORDERS == 0, 1.0, factor)
    count = len(rows)
    found = [
        probe(
            "MATMUL",
            _answer(powers),
            [(rows[None], dtype), (weights.T[None], dtype)],
            ((1, count, 3), "float32" if dtype == "bfloat16" else dtype),
            constants=[zero, zero],
        )
    ]
    single = np.arange(1, 16) if narrow else powers
    sums = _terms(single)
    found.append(
        probe("REDUCE_SUM", _answer(single), [(sums, dtype)], ((len(sums), 1), dtype), axis=1),
    )
    for accumulator in ("float16", "float32") if narrow else ("float32",):
        convolution = probe(
            "CONV2D",
            _answer(powers, accumulator),
            [(rows.reshape(count, 1, 1, 3), dtype)],
            ((count, 1, 1, 3), dtype),
            constants=[(weights.reshape(3, 1, 1, 3), dtype), zero, zero, zero],
            pad=(0, 0, 0, 0),
            stride=(1, 1),
            dilation=(1, 1),
            acc_type=accumulator,
            local_bound=False,
        )
        average = probe(
            "AVG_POOL2D",
            _answer(single, accumulator, kept=1 / 3),
            [(sums.reshape(-1, 1, 3, 1), dtype)],
            ((len(sums), 1, 1, 1), dtype),
            constants=[zero, zero],
            kernel=(1, 3),
            stride=(1, 1),
            pad=(0, 0, 0, 0),
            acc_type=accumulator,
        )
        found += [convolution, average]
    return found


def _terms(powers: Array, scale: float = 1.0) -> NDArray[np.float64]:
    """A row of three terms for each order and power, (3 * powers, 3); ``scale`` holds for the powers only."""
    orders = _ORDERS[:, None]
    terms = np.where(orders == 0, 1.0, orders * scale * 2.0 ** powers[:, None])
    return np.asarray(terms.reshape(-1, 3), np.float64)


def _answer(powers: Array, declared: str = "", kept: float = 1.0) -> Callable[[Array], Answer]:
    """What a result says that holds, for each order and power, one number or one for each order of weights.

    Narrower than ``declared`` is wrong.
    """
    least = FORMATS[declared].fraction if declared else 1

    def answer(result: Array) -> Answer:
        got = wide(result).reshape(3, len(powers), -1)
        own = np.stack([got[order, :, order % got.shape[2]] for order in range(3)])
        right = (np.abs(own - kept) < kept / 16).all(axis=0)
        if right.all():
            return Answer(f"{powers[-1]} fraction bits or more")
        bits = int(np.argmin(right))
        return Answer(f"{bits} fraction bits{_named(bits)}", wrong=bits < least)

    return answer


def _named(bits: int) -> str:
    return "".join(f" ({name})" for name, form in FORMATS.items() if form.fraction == bits)
