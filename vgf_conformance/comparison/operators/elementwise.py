"""Elementwise operators on floats, and those that floats, integers and bools share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.operators.base import (
    RANGES,
    Array,
    Bounded,
    Call,
    Float,
    distance,
    operator,
    product,
    spread,
)


def _rounded(call: Call, value: Array, error: Array) -> Bounded:
    """A sum, difference or product: exact in integers, correctly rounded in floats."""
    own = bounds.arithmetic(value, call.dtype) if call.dtype in bounds.FORMATS else 0.0
    return call.result(value, error + own)


@operator("ADD")
def add(call: Call) -> Bounded:
    """a + b."""
    first, second = call.inputs
    return _rounded(call, first.value + second.value, first.error + second.error)


@operator("SUB")
def sub(call: Call) -> Bounded:
    """a - b."""
    first, second = call.inputs
    return _rounded(call, first.value - second.value, first.error + second.error)


@operator("MUL")
def mul(call: Call) -> Bounded:
    """a * b; int32 products are shifted right, rounding half up."""
    first, second = call.inputs[:2]
    value = first.value * second.value
    error = product(second.error, first.value) + product(first.error, second.value)
    error = error + product(first.error, second.error)
    shift = call.scalar(2)
    if shift == 0 or call.floating:
        return _rounded(call, value, error)
    inexact = np.where(error > 0, 1.0, 0.0)
    return call.result((value + (1 << (shift - 1))) >> shift, error / 2.0**shift + inexact)


def _rsqrt(operand: Array) -> Array:
    return 1.0 / np.sqrt(operand)


def _sigmoid(operand: Array) -> Array:
    # Without overflow on either side.
    small = np.exp(-np.abs(operand))
    return np.asarray(np.where(operand >= 0, 1.0, small) / (1.0 + small))


_erf = np.vectorize(math.erf, otypes=[np.float64])


#: Functions of one float that are monotone over their whole domain.
_MONOTONE: dict[str, Callable[[Array], Any]] = {
    "EXP": np.exp,
    "LOG": np.log,
    "SIGMOID": _sigmoid,
    "TANH": np.tanh,
    "ERF": _erf,
    "RSQRT": _rsqrt,
}


@operator(*_MONOTONE)
def monotone(call: Call) -> Bounded:
    """EXP, LOG, SIGMOID, TANH, ERF, RSQRT: the interval's ends give the extremes."""
    function, operand = _MONOTONE[call.name], call.inputs[0]
    value = function(operand.value)
    return call.result(value, spread(function, value, operand) + _own(call, function))


def _own(call: Call, function: Callable[[Array], Any]) -> Float:
    """The operator's own bound, the largest over the middle and the ends of the operand's interval.

    0 where the operand or the result is infinite: there the formulas set no limit (EXP's error grows
    with |x|), but the specification's tables of special values say what the result is.
    """
    operand, bound = call.inputs[0], bounds.UNARY[call.name]
    points = [operand.value] if operand.exact else [operand.value, operand.low, operand.high]
    results = [function(point) for point in points]
    largest = np.fmax.reduce(
        [bound(result, point, call.dtype) for result, point in zip(results, points, strict=True)]
    )
    infinite = np.isinf(operand.value) | np.isinf(results[0])
    return np.where(infinite & (operand.error == 0), 0.0, largest)


@operator("RECIPROCAL")
def reciprocal(call: Call) -> Bounded:
    """1 / a; unbounded where the operand may have either sign."""
    operand = call.inputs[0]
    value = 1.0 / operand.value
    around_zero = (operand.low <= 0) & (operand.high >= 0) & (operand.error > 0)
    error = spread(np.reciprocal, value, operand) + _own(call, np.reciprocal)
    return call.result(value, np.where(around_zero, np.inf, error))


@operator("SIN", "COS")
def sine(call: Call) -> Bounded:
    """sin a, cos a: no steeper than 1."""
    function: Callable[[Array], Any] = np.sin if call.name == "SIN" else np.cos
    value = function(call.constant(0))
    return call.result(value, np.minimum(call.inputs[0].error, 2.0) + _own(call, function))


@operator("POW")
def power(call: Call) -> Bounded:
    """a^b for a >= 0: monotone in each of the two; where either is 0 the result is 1 or 0, without error."""
    base, exponent = call.inputs
    value = np.power(base.value, exponent.value)
    own = bounds.power(value, base.value, exponent.value, call.dtype)
    for operand in (base, exponent):
        own = np.where((operand.value == 0) & (operand.error == 0), 0.0, own)
    return call.result(value, spread(np.power, value, base, exponent) + own)


@operator("FLOOR", "CEIL")
def whole(call: Call) -> Bounded:
    """The next whole number below or above: a jump where the interval holds one."""
    function: Callable[[Array], Any] = np.floor if call.name == "FLOOR" else np.ceil
    value = function(call.constant(0))
    return call.result(value, spread(function, value, call.inputs[0]) + bounds.rounded(value, call.dtype))


@operator("ABS")
def absolute(call: Call) -> Bounded:
    """|a|."""
    return call.result(np.abs(call.constant(0)), call.inputs[0].error)


@operator("NEGATE")
def negate(call: Call) -> Bounded:
    """-a; integers around their zero points, clipped to the dtype."""
    operand = call.inputs[0]
    if call.floating:
        return call.result(-operand.value, operand.error)
    low, high = RANGES[call.dtype]

    def function(value: Array) -> Array:
        return np.clip(call.scalar(2) - (value - call.scalar(1)), low, high)

    value = function(operand.value)
    return call.result(value, spread(function, value, operand))


def larger(first: Array, second: Array, mode: str) -> Array:
    """The maximum under a NaN mode: PROPAGATE gives NaN, IGNORE the other operand."""
    return np.asarray(np.fmax(first, second) if mode == "IGNORE" else np.maximum(first, second))


def smaller(first: Array, second: Array, mode: str) -> Array:
    """The minimum under a NaN mode."""
    return np.asarray(np.fmin(first, second) if mode == "IGNORE" else np.minimum(first, second))


@operator("MAXIMUM", "MINIMUM")
def extreme(call: Call) -> Bounded:
    """The larger or smaller of two."""
    choose = larger if call.name == "MAXIMUM" else smaller

    def function(first: Array, second: Array) -> Array:
        return choose(first, second, call.attributes["nan_mode"])

    value = function(*(operand.value for operand in call.inputs))
    return call.result(value, spread(function, value, *call.inputs))


@operator("CLAMP")
def clamp(call: Call) -> Bounded:
    """a held between two constants; where NaN is ignored it becomes the lower one."""
    mode, low, high = (call.attributes[name] for name in ("nan_mode", "min_val", "max_val"))

    def function(value: Array) -> Array:
        return smaller(larger(value, low, mode), high, mode)

    value = function(call.constant(0))
    return call.result(value, spread(function, value, call.inputs[0]))


_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQUAL": np.equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}


@operator(*_COMPARISONS)
def compare(call: Call) -> Bounded:
    """a = b, a > b, a >= b: uncertain where the intervals meet."""
    first, second = call.inputs
    reach = first.error + second.error
    uncertain = (reach > 0) & (distance(first.value, second.value) <= reach)
    return call.result(_COMPARISONS[call.name](first.value, second.value), uncertain.astype(np.float64))


@operator("SELECT")
def select(call: Call) -> Bounded:
    """a where the condition holds, else b; an uncertain condition may bring the other."""
    condition, first, second = call.inputs
    value = np.where(condition.value, first.value, second.value)
    error = np.where(condition.value, first.error, second.error)
    other = np.where(condition.value, second.error, first.error) + distance(first.value, second.value)
    return call.result(value, np.where(condition.error > 0, np.maximum(error, other), error))


@operator("CAST")
def cast(call: Call) -> Bounded:
    """To bool: not zero. To integer: nearest, ties to even, held in range (from integers: low bits)."""
    operand = call.inputs[0]
    if call.dtype == "bool":
        uncertain = (operand.error > 0) & (np.abs(operand.value.astype(np.float64)) <= operand.error)
        return call.result(operand.value != 0, uncertain.astype(np.float64))
    if call.dtype in bounds.FORMATS:
        value = operand.value.astype(np.float64)
        # What is in error may be rounded from either side.
        own = np.where(operand.error > 0, bounds.ulp(value, 1.0, call.dtype), bounds.cast(value, call.dtype))
        return call.result(value, operand.error + own)
    if not operand.floating:
        return call.result(operand.value.astype(np.int64), operand.error)
    low, high = RANGES[call.dtype]

    def function(value: Array) -> Array:
        return np.clip(np.rint(value), low, high)

    value = function(operand.value)
    # NaN has no integer: TOSA leaves it open, and the reference model gives 0.
    return call.result(np.where(np.isnan(value), 0, value), spread(function, value, operand))
