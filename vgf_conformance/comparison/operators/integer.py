"""Integer operators, bit for bit as the specification's pseudocode has them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.operators.base import (
    RANGES,
    Array,
    Bounded,
    Call,
    Float,
    operator,
)


def apply_scale(value: Array, multiplier: Array, shift: Array, *, double_round: bool = False) -> Array:
    """apply_scale_32 and apply_scale_16: value * multiplier / 2^shift, rounded half up.

    ``double_round`` rounds once more at bit 30, away from zero, where the shift is above 31.
    """
    rounding = np.left_shift(np.int64(1), shift.astype(np.int64) - 1)
    if double_round:
        rounding = rounding + np.where(shift > 31, np.where(value >= 0, 1 << 30, -(1 << 30)), 0)
    return np.right_shift(value * multiplier + rounding, shift)


def unsigned(value: Array, dtype: str) -> Array:
    """Stored values of ``dtype`` read as unsigned."""
    return value & ((1 << int(dtype.removeprefix("int"))) - 1)


@operator("RESCALE")
def rescale(call: Call) -> Bounded:
    """(a - input_zp) * multiplier / 2^shift + output_zp, held in the dtype's range.

    Error: how far the result moves within the operand's error, and what INEXACT_ROUND allows.
    """
    operand, attributes = call.inputs[0], call.attributes
    multiplier, shift = (call.constant(index) for index in (1, 2))
    if not attributes["per_channel"]:
        # One number, not a vector of one: the operand may have no axes.
        multiplier, shift = multiplier[0], shift[0]
    value, zero = operand.value, call.inputs[3].value.reshape(-1)[0]
    if attributes["input_unsigned"]:
        value, zero = unsigned(value, operand.dtype), unsigned(zero, operand.dtype)
    offset = call.inputs[4].value.reshape(-1)[0]
    low, high = RANGES[call.dtype]
    if attributes["output_unsigned"]:
        offset, low, high = unsigned(offset, call.dtype), 0, high - low
    value = value - zero
    double_round = attributes["rounding_mode"] == "DOUBLE_ROUND"
    scaled = apply_scale(value, multiplier, shift, double_round=double_round) + offset
    scale = multiplier / 2.0**shift
    lossy = (multiplier & ((np.int64(1) << shift) - 1)) != 0
    reach = np.where(
        lossy,
        _rounded(value * scale, operand.error * scale, scaled - offset),
        operand.error * scale,
    )
    if attributes["rounding_mode"] == "INEXACT_ROUND":
        reach = np.maximum(reach, operand.error * scale + _inexact(value * scale, scaled, offset))
    result = np.clip(scaled, low, high)
    return call.result(result, _clipped(result, scaled, reach, low, high))


def _inexact(exact: Float, scaled: Array, offset: int) -> Float:
    """How far INEXACT_ROUND may lie from ``scaled`` (RESCALE's precision requirements).

    A conforming result lies between ceil(r - E + zp) and floor(r + E + zp).
    """
    slack = 0.5 + (3 * np.abs(exact) + np.abs(exact + offset)) * 2.0**-24
    lowest, highest = np.ceil(exact - slack + offset), np.floor(exact + slack + offset)
    return np.asarray(np.maximum(np.abs(lowest - scaled), np.abs(highest - scaled)), np.float64)


def _rounded(exact: Float, error: Float, result: Array) -> Float:
    """How far rounding ``exact`` +- ``error`` to an integer may end from ``result``."""
    lowest, highest = np.ceil(exact - error - 0.5), np.floor(exact + error + 0.5)
    farthest = np.maximum(np.abs(lowest - result), np.abs(highest - result))
    return np.where(error > 0, farthest, 0.0)


def _clipped(result: Array, middle: Array, reach: Float, low: int, high: int) -> Float:
    """The part of ``middle`` +- ``reach`` that clipping to [low, high] leaves."""
    ends = (np.clip(middle + sign * reach, low, high) for sign in (-1, 1))
    return np.asarray(np.maximum(*(np.abs(end - result) for end in ends)), np.float64)


def scaled_average(call: Call, sums: Bounded, counts: Array) -> Bounded:
    """AVG_POOL2D on integers: sums * reciprocal_scale(count) + output_zp, clipped."""
    # reciprocal_scale: 2^k is the count rounded up to a power of two.
    k = np.ceil(np.log2(counts)).astype(np.int64)
    multiplier, shift = (((1 << 30) + 1) << k) // counts, 30 + k
    offset = call.scalar(2)
    scaled = apply_scale(sums.value, multiplier, shift) + offset
    reach = np.where(
        counts > 1,
        _rounded(sums.value / counts, sums.error / counts, scaled - offset),
        sums.error / counts,
    )
    low, high = RANGES[call.dtype]
    result = np.clip(scaled, low, high)
    return call.result(result, _clipped(result, scaled, reach, low, high))


@operator("TABLE")
def table(call: Call) -> Bounded:
    """A function by its table: 256 entries for int8, 513 interpolated points for int16.

    Error: the farthest that the table goes within the operand's interval.
    """
    operand, entries = call.inputs[0], call.constant(1)
    low, high = RANGES[operand.dtype]
    function = entries if operand.dtype == "int8" else _interpolated(entries)
    index = operand.value - low
    reach = np.minimum(np.ceil(operand.error), high - low).astype(np.int64)
    error = np.zeros(index.shape)
    for width in np.unique(reach[reach > 0]):
        largest, smallest = (_neighbours(function, int(width), pick) for pick in (np.maximum, np.minimum))
        farthest = np.maximum(largest - function, function - smallest)
        error = np.where(reach == width, farthest[index], error)
    return call.result(function[index], error)


def _neighbours(values: Array, width: int, pick: Callable[[Array, Array], Array]) -> Array:
    """The extreme, as ``pick`` has it, of each value's neighbours up to ``width`` away."""
    found, span = np.pad(values, width, mode="edge"), 1
    # Windows twice as wide, made of two, until two that overlap make the one that is wanted.
    while 2 * span <= 2 * width + 1:
        found, span = pick(found[:-span], found[span:]), 2 * span
    rest = 2 * width + 1 - span
    return pick(found[: values.size], found[rest : rest + values.size])


def _interpolated(entries: Array) -> Array:
    """apply_lookup_s for every int16: nine bits of index, seven of fraction, result in 1/128."""
    position: Array = np.arange(2**16)
    index, fraction = position >> 7, position & 127
    return np.asarray((entries[index] << 7) + (entries[index + 1] - entries[index]) * fraction)


@operator("ARITHMETIC_RIGHT_SHIFT")
def arithmetic_right_shift(call: Call) -> Bounded:
    """a >> b with the sign kept; ``round`` adds the last bit shifted out."""
    operand, shift = call.inputs[0], call.constant(1)
    value = operand.value >> shift
    if call.attributes["round"]:
        value = value + np.where(shift > 0, (operand.value >> np.maximum(shift - 1, 0)) & 1, 0)
    error = operand.error / 2.0**shift + np.where(operand.error > 0, 1.0, 0.0)
    return call.result(value, _unless(call.inputs[1], error))


@operator("INTDIV")
def intdiv(call: Call) -> Bounded:
    """a / b toward zero."""
    operand, divisor = call.inputs
    quotient = np.abs(operand.value) // np.maximum(np.abs(divisor.value), 1)
    value = quotient * np.sign(operand.value) * np.sign(divisor.value)
    error = operand.error / np.maximum(np.abs(divisor.value), 1) + np.where(operand.error > 0, 1.0, 0.0)
    return call.result(value, _unless(divisor, error))


def _unless(steering: Bounded, error: Float | float) -> Float:
    """``error``, but infinite where an operand that steers bits is uncertain."""
    return np.where(steering.error > 0, np.inf, error)


def _logical_right_shift(value: Array, shift: Array) -> Array:
    return (value & 0xFFFFFFFF) >> shift


def _leading_zeros(value: Array) -> Array:
    # frexp's exponent is the number of bits of a positive integer, 0 of zero.
    return 32 - np.frexp((value & 0xFFFFFFFF).astype(np.float64))[1]


_BITWISE: dict[str, Callable[..., Array]] = {
    "BITWISE_AND": np.bitwise_and,
    "BITWISE_OR": np.bitwise_or,
    "BITWISE_XOR": np.bitwise_xor,
    "BITWISE_NOT": np.bitwise_not,
    "LOGICAL_LEFT_SHIFT": np.left_shift,
    "LOGICAL_RIGHT_SHIFT": _logical_right_shift,
    "CLZ": _leading_zeros,
}


@operator(*_BITWISE)
def bitwise(call: Call) -> Bounded:
    """Bits: an uncertain operand leaves nothing certain."""
    masks = [operand.value for operand in call.inputs]
    if call.name == "LOGICAL_RIGHT_SHIFT":
        masks[0] = unsigned(masks[0], call.dtype)
    uncertain = sum(np.where(operand.error > 0, np.inf, 0.0) for operand in call.inputs)
    return call.result(_BITWISE[call.name](*masks), uncertain)


_LOGICAL: dict[str, Callable[..., Array]] = {
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "LOGICAL_XOR": np.logical_xor,
    "LOGICAL_NOT": np.logical_not,
}


@operator(*_LOGICAL)
def logical(call: Call) -> Bounded:
    """Bools: uncertain where flipping an uncertain operand flips the result."""
    function = _LOGICAL[call.name]
    value = function(*(operand.value for operand in call.inputs))
    uncertain = np.zeros(value.shape, np.bool_)
    choices = [
        (operand.value, np.where(operand.error > 0, ~operand.value, operand.value)) for operand in call.inputs
    ]
    for corner in np.array(np.meshgrid(*[[0, 1]] * len(choices))).T.reshape(-1, len(choices)):
        uncertain |= function(*(pair[end] for pair, end in zip(choices, corner, strict=True))) != value
    return call.result(value, uncertain.astype(np.float64))


@operator("RESIZE")
def resize(call: Call) -> Bounded:
    """NHWC, nearest or bilinear at the positions of scale (n/d), offset and border.

    Integers: bilinear results carry the factor scale_y_n * scale_x_n. Errors are
    interpolated as the values are; floats add the operator's own bound.
    """
    operand = call.inputs[0]
    scale = [int(number) for number in call.constant(1)]
    offset = [int(number) for number in call.constant(2)]
    rows = _positions(operand.value.shape[1], call.shape[1], scale[0], scale[1], offset[0])
    columns = _positions(operand.value.shape[2], call.shape[2], scale[2], scale[3], offset[1])
    if call.attributes["mode"] == "NEAREST":
        (top, bottom, dy), (left, right, dx) = rows, columns
        picked = np.where(2 * dy >= scale[0], bottom, top)[:, None], np.where(2 * dx >= scale[2], right, left)
        row, column = picked
        return call.result(operand.value[:, row, column], operand.error[:, row, column])
    units = (1.0, 1.0) if call.floating else (float(scale[0]), float(scale[2]))
    weights = rows[2] / scale[0] * units[0], columns[2] / scale[2] * units[1]
    value, error = (
        _blend(_blend(data, rows, weights[0], units[0], 1), columns, weights[1], units[1], 2)
        for data in (operand.value.astype(np.float64), operand.error)
    )
    if call.floating:
        # NaN spoils the results that it meets, not every result's bound.
        largest = float(np.fmax.reduce(np.abs(operand.value), axis=None, initial=0.0))
        error = error + bounds.resize_bilinear(largest, call.dtype)
    else:
        value = np.rint(value)
    return call.result(value, error)


Positions = tuple[Array, Array, Array]


def _positions(size: int, out: int, numerator: int, denominator: int, offset: int) -> Positions:
    """For each output: the input before it, the one after it, and the distance in 1/numerator."""
    place = np.arange(out) * denominator + offset
    before = place // numerator
    return np.maximum(before, 0), np.minimum(before + 1, size - 1), place - before * numerator


def _blend(data: Float, places: Positions, weight: Float, unit: float, axis: int) -> Float:
    shape = [1] * data.ndim
    shape[axis] = -1
    share = weight.reshape(shape)
    before, after = (np.take(data, place, axis) for place in places[:2])
    return before * (unit - share) + after * share
