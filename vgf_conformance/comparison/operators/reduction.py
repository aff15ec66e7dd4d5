"""Reductions along an axis, except the sum (a dot product), and pooling by maximum."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.operators.base import Array, Bounded, Call, operator, spread
from vgf_conformance.comparison.operators.windows import windows


def _choice(call: Call, reduce: Callable[[Array], Array]) -> Bounded:
    """An operator that gives one of its elements, the same for all larger operands."""
    value = reduce(call.constant(0))
    return call.result(value, spread(reduce, value, call.inputs[0]))


def _reducer(maximum: bool, mode: str) -> np.ufunc:
    if mode == "IGNORE":
        return np.fmax if maximum else np.fmin
    return np.maximum if maximum else np.minimum


@operator("REDUCE_MAX", "REDUCE_MIN")
def reduce_extreme(call: Call) -> Bounded:
    """The largest or smallest along an axis."""
    reducer = _reducer(call.name == "REDUCE_MAX", call.attributes["nan_mode"])
    return _choice(
        call, lambda data: np.asarray(reducer.reduce(data, axis=call.attributes["axis"], keepdims=True))
    )


@operator("REDUCE_ALL", "REDUCE_ANY")
def reduce_bool(call: Call) -> Bounded:
    """Conjunction and disjunction along an axis: those of the surely and the possibly true."""
    reducer = np.logical_and if call.name == "REDUCE_ALL" else np.logical_or
    operand, axis = call.inputs[0], call.attributes["axis"]
    value, flipped = (
        np.asarray(reducer.reduce(data, axis=axis, keepdims=True))
        for data in (operand.value, np.where(operand.error > 0, ~operand.value, operand.value))
    )
    surely = reducer.reduce(operand.value & (operand.error == 0), axis=axis, keepdims=True)
    possibly = reducer.reduce(operand.value | (operand.error > 0), axis=axis, keepdims=True)
    return call.result(value, ((surely != possibly) | (value != flipped)).astype(np.float64))


@operator("REDUCE_PRODUCT")
def reduce_product(call: Call) -> Bounded:
    """The product along an axis."""
    operand, axis = call.inputs[0], call.attributes["axis"]
    value = np.prod(operand.value, axis=axis, keepdims=True)
    own = bounds.reduce_product(value, operand.value.shape[axis], call.dtype)
    if operand.exact:
        return call.result(value, own)
    # prod(|x| + e) - prod(|x|) bounds every product within the intervals.
    sizes = np.abs(operand.value)
    error = np.prod(sizes + operand.error, axis=axis, keepdims=True) - np.prod(
        sizes, axis=axis, keepdims=True
    )
    return call.result(value, error + own)


@operator("ARGMAX")
def argmax(call: Call) -> Bounded:
    """The first index of the largest; uncertain as far as the runners-up reach."""
    operand, axis = call.inputs[0], call.attributes["axis"]
    value = _first_largest(operand.value, axis, call.attributes["nan_mode"])
    if operand.exact:
        return call.result(value)
    low = np.take_along_axis(operand.low, np.expand_dims(value, axis), axis)
    candidates = operand.high >= low
    away = np.abs(_positions(operand.value, axis) - np.expand_dims(value, axis))
    return call.result(value, np.max(np.where(candidates, away, 0), axis=axis).astype(np.float64))


def _first_largest(data: Array, axis: int, mode: str) -> Array:
    if mode == "IGNORE" and data.dtype == np.float64:
        data = np.where(np.isnan(data), -np.inf, data)
    # numpy takes the first NaN for the largest, as PROPAGATE wants it.
    return np.asarray(np.argmax(data, axis=axis))


def _positions(data: Array, axis: int) -> Array:
    shape = [1] * data.ndim
    shape[axis] = -1
    return np.arange(data.shape[axis]).reshape(shape)


@operator("MAX_POOL2D")
def max_pool2d(call: Call) -> Bounded:
    """The largest in each window of an NHWC tensor; padding never wins."""
    kernel, stride, pad = (call.attributes[name] for name in ("kernel", "stride", "pad"))
    return _max_pool(call, kernel, stride, pad)


@operator("MAX_POOL2D_ADAPTIVE")
def max_pool2d_adaptive(call: Call) -> Bounded:
    """The same with a window that is an operand (TOSA 1.1's draft)."""
    kernel, stride, pad = ([int(size) for size in call.constant(index)] for index in (1, 2, 3))
    return _max_pool(call, kernel, stride, pad)


def _max_pool(call: Call, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> Bounded:
    reducer = _reducer(True, call.attributes["nan_mode"])

    def pool(data: Array) -> Array:
        least = -np.inf if data.dtype == np.float64 else np.iinfo(np.int64).min
        taps = windows(data, kernel, stride, (1, 1), pad, call.shape[1:3], fill=least)
        return functools.reduce(reducer, (tap for _, tap, _ in taps))

    return _choice(call, pool)
