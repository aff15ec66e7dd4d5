"""Are subnormal numbers kept, or flushed to zero, as results and as operands?

TOSA lets an implementation do one or the other (``tosa_reference_check_fp_bnd``, 1.0.2, accepts a zero
for every result below the smallest normal number), but the same in every operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from vgf_conformance.arithmetic.probe import Answer, Array, Probe, probe, wide
from vgf_conformance.comparison.bounds import FORMATS


def subnormal_results(dtype: str) -> list[Probe]:
    """Probes of ``dtype`` whose exact result is half the smallest normal number, or near it."""
    least, largest = FORMATS[dtype].normal_min, FORMATS[dtype].normal_max
    half = least / 2
    found = [
        _probe("MUL", dtype, [least, 0.5], half),
        _probe("ADD", dtype, [1.5 * least, -least], half),
        _probe("SUB", dtype, [1.5 * least, least], half),
        _probe("EXP", dtype, [math.log(half)], half),
        _probe("ABS", dtype, [-half], half),
        _probe("NEGATE", dtype, [half], -half),
        _probe("MAXIMUM", dtype, [half, -1.0], half, nan_mode="PROPAGATE"),
        _probe("MINIMUM", dtype, [half, 1.0], half, nan_mode="PROPAGATE"),
        _probe("CLAMP", dtype, [half], half, min_val=-1.0, max_val=1.0, nan_mode="PROPAGATE"),
        _matmul(dtype, least, 0.5),
        _sum(dtype, 1.5 * least, -least),
    ]
    if 2 / largest < least:
        found.append(_probe("RECIPROCAL", dtype, [largest / 2], 2 / largest))
    if dtype != "float32":
        found.append(probe("CAST", _answer(half), [([half], "float32")], ((1,), dtype)))
    return found


def subnormal_operands(dtype: str) -> list[Probe]:
    """Probes of ``dtype`` that make normal numbers of half the smallest one."""
    half = FORMATS[dtype].normal_min / 2
    found = [
        _probe("MUL", dtype, [half, 4.0], 4 * half),
        _probe("ADD", dtype, [half, half], 2 * half),
        _probe("SUB", dtype, [half, -half], 2 * half),
        _probe("LOG", dtype, [half], math.log(half), of_zero=-math.inf),
        _probe("RSQRT", dtype, [half], half**-0.5, of_zero=math.inf),
        _probe("RECIPROCAL", dtype, [half], 1 / half, of_zero=math.inf),
        _matmul(dtype, half, 4.0),
        _sum(dtype, half, half),
    ]
    if dtype != "float32":
        found.append(probe("CAST", _answer(half), [([half], dtype)], ((1,), "float32")))
    return found


def _probe(
    operator: str,
    dtype: str,
    operands: Sequence[float],
    exact: float,
    *,
    of_zero: float = 0.0,
    **attributes: Any,
) -> Probe:
    """An operator on single numbers; ``of_zero`` is its result where a subnormal operand is taken as zero."""
    zero: tuple[Any, str] = ([0.0], dtype)
    constants = {"MUL": [([0], "int8")], "NEGATE": [zero, zero]}.get(operator, [])
    inputs = [([operand], dtype) for operand in operands]
    return probe(operator, _answer(exact, of_zero), inputs, ((1,), dtype), constants=constants, **attributes)


def _matmul(dtype: str, first: float, second: float) -> Probe:
    zero, operands = ([0.0], dtype), [([[[first]]], dtype), ([[[second]]], dtype)]
    output = (1, 1, 1), "float32" if dtype == "bfloat16" else dtype
    return probe("MATMUL", _answer(first * second), operands, output, constants=[zero, zero])


def _sum(dtype: str, first: float, second: float) -> Probe:
    return probe("REDUCE_SUM", _answer(first + second), [([first, second], dtype)], ((1,), dtype), axis=0)


def _answer(exact: float, of_zero: float = 0.0) -> Callable[[Array], Answer]:
    def answer(result: Array) -> Answer:
        got = float(wide(result).reshape(-1)[0])
        if got == of_zero:
            return Answer("flushed to zero")
        near = 0.9 < got / exact < 1.1
        return Answer("kept") if near else Answer(f"{got:g}, should be {exact:g} or {of_zero:g}", wrong=True)

    return answer
