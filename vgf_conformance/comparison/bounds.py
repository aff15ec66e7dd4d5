"""How far a conforming implementation may lie from the exact result, operator by operator.

The formulas are those of the TOSA specification 1.0.2: the "Precision Requirements" of
each operator, "Dot product accuracy requirements", and the pseudocode functions
``tosa_reference_check_fp_bnd`` (here ``within``), ``tosa_reference_check_fp`` (``ulp``)
and ``calcAbsErrorBound`` (``absolute``). They hold for one operator whose operands are
exact; ``propagation`` carries them through a graph.

Every function takes exact fp64 arrays and the output's dtype (``float32``, ``float16``
or ``bfloat16``) and returns an array of absolute error bounds in the result's units.
A bound of infinity means that the specification sets no limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Format:
    """A floating-point format: fraction bits, smallest normal and largest finite number."""

    fraction: int
    normal_min: float
    normal_max: float


FORMATS = {
    "float32": Format(23, 2.0**-126, 2.0**128 - 2.0**104),
    "float16": Format(10, 2.0**-14, 2.0**16 - 2.0**5),
    "bfloat16": Format(7, 2.0**-126, 2.0**128 - 2.0**120),
}

#: Largest allowed |e| of a dot product in units of ksb, by version and the operands' dtype: ABS_BOUND / ksb.
#: The draft lets products of fp32 numbers be made of several of bf16; those of bf16 numbers with an fp32
#: result have no such need, and no more room.
DOT_PRODUCT_LIMIT = {
    "1.0.2": {"float32": 2.0, "float16": 2.0, "bfloat16": 2.0},
    "1.1-draft": {"float32": 6.0, "float16": 2.0, "bfloat16": 2.0},
}

#: Largest allowed mean of e^2 of a dot product in units of ksb: VARIANCE_ERROR_BOUND / ksb.
DOT_PRODUCT_VARIANCE = 1.6

#: RESIZE may take its coefficients from a texture unit: 0.6 % of the largest input.
RESIZE_SHARE = 0.006


def within(actual: NDArray[Any], exact: Float, error: Float, dtype: str) -> NDArray[np.bool_]:
    """Whether each element may stand for ``exact`` +- ``error``: tosa_reference_check_fp_bnd.

    NaN must meet NaN; a bound that is not finite passes anything else; a zero of either
    sign passes where the allowed range reaches below the smallest normal number (results
    may be flushed); beyond the largest finite number the range extends to infinity.
    """
    form = FORMATS[dtype]
    mirror = np.where(exact < 0, -1.0, 1.0)
    result, reference = actual.astype(np.float64) * mirror, exact * mirror
    with np.errstate(invalid="ignore", over="ignore"):
        high = _saturate(reference + error, form)
        low = _saturate(reference - error, form)
        inside = np.where(result == 0, low < form.normal_min, (low <= result) & (result <= high))
    inside |= ~np.isfinite(error)
    return np.where(np.isnan(exact), np.isnan(result), inside)


def headroom(actual: NDArray[Any], exact: Float, error: Float, dtype: str) -> float:
    """The largest share of the bound that was used: max |I - R| / err, 0 where nothing differs.

    Left out: what ``within`` allows beside the bound (flushed zeros, overflow to
    infinity), and elements without a finite bound. Infinite where an exact element differs.
    """
    form = FORMATS[dtype]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = np.abs(actual.astype(np.float64) - exact)
        flushed = (actual == 0) & (np.abs(exact) - error < form.normal_min)
        overflown = np.isinf(actual.astype(np.float64)) & (np.abs(exact) + error > form.normal_max)
        judged = np.isfinite(error) & ~np.isnan(difference) & (difference > 0) & ~flushed & ~overflown
        shares = difference[judged] / error[judged]
    return float(shares.max(initial=0.0))


def _saturate(value: Float, form: Format) -> Float:
    value = np.where(value > form.normal_max, np.inf, value)
    return np.where(value < -form.normal_max, -np.inf, value)


def power_of_two(value: Float) -> Float:
    """2^floor(log2 |value|): exact, 0 at 0, infinity and NaN kept."""
    mantissa, exponent = np.frexp(np.abs(value))
    power = np.ldexp(1.0, np.where(mantissa == 0, 0, exponent - 1))
    return np.where(np.isfinite(mantissa) & (mantissa != 0), power, mantissa)


def ulp(exact: Float, count: float, dtype: str) -> Float:
    """``count`` units in the last place at ``exact``; 0 where that is 0, infinite or NaN.

    The unit of a subnormal number is that of the smallest normal one.
    """
    return np.where(np.isfinite(exact) & (exact != 0), count * ulp_size(exact, dtype), 0.0)


def ulp_size(value: Float, dtype: str) -> Float:
    """The distance between neighbouring numbers of ``dtype`` at ``value``, never less than the smallest."""
    form = FORMATS[dtype]
    return np.maximum(power_of_two(value), form.normal_min) * 2.0**-form.fraction


def absolute(magnitude: Any, factor: Any, dtype: str, *, floor: Any = 0.0, divisor: int = 1) -> Float:
    """calcAbsErrorBound: ``factor`` units of 2^-(fraction bits / divisor) at ``magnitude``.

    ``floor`` is the least product of magnitude and factor. The exponent is truncated toward zero, as the
    pseudocode has it (exp2 of an int); the verifier of tosa-tools does not truncate it.
    """
    form = FORMATS[dtype]
    size = np.maximum(np.abs(magnitude), form.normal_min)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(np.asarray(floor) > 0, np.maximum(floor / np.asarray(factor), size), size)
        bound = 2.0 ** math.trunc(-form.fraction / divisor) * size * factor
    return np.where(~np.isfinite(factor) & (magnitude == 0), 0.0, bound)


def arithmetic(exact: Float, dtype: str) -> Float:
    """ADD, SUB, MUL: correctly rounded, in bf16 to 1 ULP (an fp32 result may be truncated)."""
    return rounded(exact, dtype, 1.0 if dtype == "bfloat16" else 0.5)


def rounded(exact: Float, dtype: str, count: float = 0.5) -> Float:
    """CEIL and FLOOR: half a unit in the last place, or ``count`` of them.

    0 where the exact result is representable: an operator that rounds then has no
    choice. (The specification's formula would also admit the next number below a power
    of two, which lies exactly half a unit away; nothing that rounds gives it.)
    """
    return np.where(representable(exact, dtype), 0.0, ulp(exact, count, dtype))


def representable(exact: Float, dtype: str) -> NDArray[np.bool_]:
    """Whether each value is a number of the format (subnormal numbers included)."""
    form, unit = FORMATS[dtype], ulp_size(exact, dtype)
    with np.errstate(invalid="ignore"):
        whole = np.round(exact / unit) * unit == exact
        return np.asarray(whole & (np.abs(exact) <= form.normal_max), np.bool_)


def _base(dtype: str) -> int:
    """The constant part of the exponential functions' bounds: 3 units in fp32, 1 in fp16 and bf16."""
    return 3 if dtype == "float32" else 1


def reciprocal(exact: Float, operand: Float, dtype: str) -> Float:
    """RECIPROCAL: 1 ULP."""
    return ulp(exact, 1, dtype)


def rsqrt(exact: Float, operand: Float, dtype: str) -> Float:
    """RSQRT: 2 ULP."""
    return ulp(exact, 2, dtype)


def erf(exact: Float, operand: Float, dtype: str) -> Float:
    """ERF: 5 ULP."""
    return ulp(exact, 5, dtype)


def exp(exact: Float, operand: Float, dtype: str) -> Float:
    """EXP: relative, and growing with |x|."""
    return absolute(exact, _base(dtype) + 2 * np.abs(operand), dtype)


def log(exact: Float, operand: Float, dtype: str) -> Float:
    """LOG: 5 units of |result|, of 0.1 at least."""
    return absolute(exact, 5.0, dtype, floor=0.5)


def sigmoid(exact: Float, operand: Float, dtype: str) -> Float:
    """SIGMOID: relative, and growing with |x|."""
    return absolute(exact, 2 * (1 + np.abs(operand)), dtype)


def tanh(exact: Float, operand: Float, dtype: str) -> Float:
    """TANH: growing with |x|, half a unit of 1 at least."""
    return absolute(exact, 4 * (_base(dtype) + 2 * np.abs(operand)), dtype, floor=0.5)


def cos(exact: Float, operand: Float, dtype: str) -> Float:
    """COS: half the fraction bits, growing with |x|."""
    return absolute(1 + np.abs(operand), 1.0, dtype, divisor=2)


def sin(exact: Float, operand: Float, dtype: str) -> Float:
    """SIN: half the fraction bits of |x|."""
    return np.maximum(absolute(operand, 2.0, dtype, divisor=2), math.pi * FORMATS[dtype].normal_min)


#: Bounds of the operators with one floating operand: (exact result, operand, dtype) -> bound.
UNARY: dict[str, Callable[[Float, Float, str], Float]] = {
    "RECIPROCAL": reciprocal,
    "RSQRT": rsqrt,
    "ERF": erf,
    "EXP": exp,
    "LOG": log,
    "SIGMOID": sigmoid,
    "TANH": tanh,
    "COS": cos,
    "SIN": sin,
}


def power(exact: Float, base: Float, exponent: Float, dtype: str) -> Float:
    """POW as exp(y log x): the error of z = y log x carried through the exponential.

    Where z is not finite the result is 0, 1 or infinite, and only the exponential's own
    bound remains.
    """
    with np.errstate(all="ignore"):
        z = exponent * np.log(base)
        inner = absolute(z, 5.5, dtype, floor=np.abs(0.55 * exponent))
        z, inner = (np.where(np.isfinite(z), part, 0.0) for part in (z, inner))
        carried = np.where(exact == 0, 0.0, exact * np.expm1(inner))
        return carried + absolute(exact, _base(dtype) + 2 * np.abs(z + inner), dtype)


def reduce_product(exact: Float, terms: int, dtype: str) -> Float:
    """REDUCE_PRODUCT over ``terms`` elements: one rounding for each."""
    form = FORMATS[dtype]
    growth = math.expm1(terms * math.log1p(2.0 ** (-form.fraction - 1)))
    return np.maximum(np.abs(exact), form.normal_min) * growth


def resize_bilinear(largest: float, dtype: str) -> float:
    """RESIZE, bilinear: by ``largest``, the largest magnitude of the whole input."""
    return max(float(absolute(np.float64(largest), 20.0, dtype)), RESIZE_SHARE * largest)


def cast(exact: Float, dtype: str) -> Float:
    """CAST of an exact number to a float: 1 ULP toward zero, half a ULP away from it.

    This is the distance to the next number toward zero: that one is always allowed, and the
    one on the other side where it lies no farther, thus at half a ULP or less. 0 where the
    number is representable.
    """
    unit = ulp_size(exact, dtype)
    with np.errstate(invalid="ignore"):
        beyond = np.abs(exact) - np.floor(np.abs(exact) / unit) * unit
    return np.where(np.isfinite(exact), beyond, 0.0)


def dot_product_terms(terms: int, accumulator: str, dtype: str, bias: bool) -> int:
    """ksb: the length of the dot product, less what a wider accumulator makes up for.

    ``terms`` is the length of the kernel (KS), ``bias`` whether a bias that is not all
    zero is added.
    """
    spare = (FORMATS[accumulator].fraction - FORMATS[dtype].fraction) / 2
    return math.ceil(terms / math.pow(2.0, spare)) + int(bias)


def dot_product_unit(magnitude: Float, dtype: str) -> Float:
    """u: half a unit in the last place of ``magnitude`` (B, the operator on absolute values).

    0 where that is 0, which demands an exact 0.
    """
    form = FORMATS[dtype]
    unit = np.maximum(magnitude * 2.0 ** (-1 - form.fraction), form.normal_min)
    return np.where(magnitude == 0, 0.0, unit)


def dot_product(
    magnitude: Float, ksb: int, dtype: str, version: str = "1.0.2", *, operands: str | None = None
) -> Float:
    """CONV*, MATMUL, AVG_POOL2D, REDUCE_SUM: 2 ksb units; infinite where the sum may overflow.

    ``operands`` is the operands' dtype, where that is not the result's.
    """
    form = FORMATS[dtype]
    limit = DOT_PRODUCT_LIMIT[version][operands or dtype] * ksb
    overflows = magnitude * (1 + limit * 2.0 ** (-1 - form.fraction)) > form.normal_max
    return np.where(overflows, np.inf, limit * dot_product_unit(magnitude, dtype))


def dot_product_variance(
    actual: NDArray[Any], exact: Float, error: Float, ksb: int, version: str, operands: str
) -> float:
    """The share used of the allowed sum of squared errors, 1.6 ksb for each of the T results.

    ``error`` is the bound of ``dot_product``, which fixes the units: 2 ksb of them (6 ksb in
    the draft for operands of fp32). Elements without a finite bound, or whose exact result is not
    finite, count as exact, as the specification has it.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        units = DOT_PRODUCT_LIMIT[version][operands] * ksb * (actual.astype(np.float64) - exact) / error
    judged = units[np.isfinite(error) & np.isfinite(exact) & (error > 0)]
    return float(np.sum(judged**2)) / (DOT_PRODUCT_VARIANCE * ksb * max(actual.size, 1))


def version_of(graph_version: str) -> str:
    """The version of the table that holds for a graph: the draft's from 1.1 on."""
    return "1.0.2" if graph_version.startswith("1.0") else "1.1-draft"
