"""Operators that are dot products: convolutions, MATMUL, sums and averages.

All are bilinear maps f(x, w), computed in fp64. An error then passes as
f(E_x, |w|) + f(|x| + E_x, E_w), and the operator's own bound follows from
f(|x|, |w|): see "Dot product accuracy requirements" in the specification.
Integer products of the supported dtypes stay below 2^53, so fp64 is exact for them.
Where operands are whole numbers and the bound on absolute values is representable, nothing
is ever rounded, and nothing may differ: the tolerance is 0, where the specification's own
is blind to a dropped product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.operators.base import Array, Bounded, Call, Float, operator
from vgf_conformance.comparison.operators.integer import scaled_average
from vgf_conformance.comparison.operators.windows import windows

#: f(x, w, extra): ``extra`` multiplies the zeros of the padding too, as the bound does and a device may:
#: an infinite weight then spoils the results that it meets only in the padding.
Bilinear = Callable[[Float, Float, bool], Float]


@dataclass(frozen=True)
class DotProduct:
    """The parts of a dot product operator: ``terms`` is KS, ``accumulator`` a dtype name.

    ``bias`` is broadcast to the output; ``local`` says that the bound follows each
    element's own operands rather than the largest of the input.
    """

    function: Bilinear
    data: Bounded
    weight: Bounded
    bias: Bounded | None
    terms: int
    accumulator: str
    local: bool

    def value(self) -> Float:
        """The exact result."""
        total = self.function(self.data.value.astype(np.float64), self.weight.value.astype(np.float64), False)
        return total if self.bias is None else total + self.bias.value

    def carried(self) -> Float | float:
        """The operands' errors at the result."""
        sizes = (np.abs(item.value.astype(np.float64)) for item in (self.data, self.weight))
        data, weight = sizes
        error: Float | float = 0.0 if self.bias is None else self.bias.error
        if not self.data.exact:
            error = error + self.function(self.data.error, weight, False)
        if not self.weight.exact:
            error = error + self.function(data + self.data.error, self.weight.error, False)
        return error

    def magnitude(self, dtype: str) -> Float:
        """B: the operator on absolute values, each at least the smallest normal number."""
        least = bounds.FORMATS[dtype].normal_min
        data = np.maximum(np.abs(self.data.value) + self.data.error, least)
        if not self.local:
            # NaN spoils the results that it meets, not every result's bound.
            data = np.full_like(data, np.fmax.reduce(data, axis=None, initial=least))
        weight = np.maximum(np.abs(self.weight.value) + self.weight.error, least)
        total = self.function(data, weight, True)
        return total if self.bias is None else total + np.maximum(np.abs(self.bias.value), least)

    def whole(self, dtype: str) -> NDArray[np.bool_]:
        """Where sums of whole numbers stay so small that each is exact, in whatever order they are added."""
        operands = [self.data, self.weight, *([] if self.bias is None else [self.bias])]
        if not all(item.exact and np.array_equal(item.value, np.rint(item.value)) for item in operands):
            return np.zeros(1, np.bool_)
        total = self.function(np.abs(self.data.value), np.abs(self.weight.value), False)
        total = total if self.bias is None else total + np.abs(self.bias.value)
        fraction = min(bounds.FORMATS[name].fraction for name in (self.accumulator, dtype))
        return np.asarray(total <= 2.0 ** (fraction + 1), np.bool_)

    def ksb(self, dtype: str) -> int:
        """The length of the dot product as the bound counts it."""
        bias = self.bias is not None and bool(np.any(self.bias.value))
        return bounds.dot_product_terms(self.terms, self.accumulator, dtype, bias)


#: TOSA operator name -> its parts.
DOT_PRODUCTS: dict[str, Callable[[Call], DotProduct]] = {}


def _parts(name: str) -> Callable[[Callable[[Call], DotProduct]], Callable[[Call], DotProduct]]:
    def enter(function: Callable[[Call], DotProduct]) -> Callable[[Call], DotProduct]:
        DOT_PRODUCTS[name] = function
        return function

    return enter


def _shifted(item: Bounded, zero_point: int) -> Bounded:
    return Bounded(item.value - zero_point, item.error, item.dtype)


def _convolution(call: Call, function: Bilinear, terms: int) -> DotProduct:
    data, weight, bias = call.inputs[:3]
    if not call.floating:
        data, weight = _shifted(data, call.scalar(3)), _shifted(weight, call.scalar(4))
    accumulator, local = call.attributes["acc_type"], bool(call.attributes["local_bound"])
    return DotProduct(function, data, weight, bias, terms, accumulator, local)


@_parts("CONV2D")
@_parts("CONV3D")
def convolution(call: Call) -> DotProduct:
    """[N, spatial..., IC] with weights [OC, kernel..., IC]."""
    kernel = call.inputs[1].value.shape[1:-1]
    stride, dilation, pad = (call.attributes[name] for name in ("stride", "dilation", "pad"))

    def function(data: Float, weight: Float, extra: bool) -> Float:
        total = np.zeros(call.shape)
        for position, tap, inside in windows(data, kernel, stride, dilation, pad, call.shape[1:-1]):
            products = tap @ np.moveaxis(weight, 0, -1)[position]
            total += products if extra else np.where(inside, products, 0.0)
        return total

    return _convolution(call, function, math.prod(call.inputs[1].value.shape[1:]))


@_parts("DEPTHWISE_CONV2D")
def depthwise(call: Call) -> DotProduct:
    """[N, H, W, C] with weights [KH, KW, C, M]; output channel c * M + m."""
    kernel = call.inputs[1].value.shape[:2]
    stride, dilation, pad = (call.attributes[name] for name in ("stride", "dilation", "pad"))

    def function(data: Float, weight: Float, extra: bool) -> Float:
        total = np.zeros(call.shape)
        for position, tap, inside in windows(data, kernel, stride, dilation, pad, call.shape[1:3]):
            products = (tap[..., None] * weight[position]).reshape(call.shape)
            total += products if extra else np.where(inside, products, 0.0)
        return total

    return _convolution(call, function, math.prod(kernel))


@_parts("TRANSPOSE_CONV2D")
def transpose_convolution(call: Call) -> DotProduct:
    """[N, IH, IW, IC] with weights [OC, KH, KW, IC]: each input pixel adds a kernel to the output."""
    _, height, width, terms = call.inputs[1].value.shape
    (stride_y, stride_x), (top, _, left, _) = call.attributes["stride"], call.attributes["out_pad"]

    def function(data: Float, weight: Float, extra: bool) -> Float:
        batch, rows, columns, _ = data.shape
        # The canvas holds every pixel that any input reaches; out_pad moves the output's frame over it.
        canvas = np.zeros(
            (batch, (rows - 1) * stride_y + height, (columns - 1) * stride_x + width, call.shape[-1])
        )
        for y in range(height):
            for x in range(width):
                reached = canvas[:, y : y + (rows - 1) * stride_y + 1 : stride_y]
                reached[:, :, x : x + (columns - 1) * stride_x + 1 : stride_x] += data @ weight[:, y, x].T
        return _framed(canvas, top, left, call.shape)

    return _convolution(call, function, height * width * terms)


def _framed(canvas: Float, top: int, left: int, shape: tuple[int, ...]) -> Float:
    """The window of ``shape`` whose corner lies at (-top, -left) of the canvas, zero outside it."""
    frame = np.pad(canvas, ((0, 0), (max(top, 0), shape[1]), (max(left, 0), shape[2]), (0, 0)))
    y, x = max(-top, 0), max(-left, 0)
    return np.asarray(frame[:, y : y + shape[1], x : x + shape[2]])


@_parts("MATMUL")
def matmul(call: Call) -> DotProduct:
    """[N, H, C] with [N, C, W]."""
    first, second = call.inputs[:2]

    def function(data: Float, weight: Float, extra: bool) -> Float:
        return np.asarray(np.matmul(data, weight))

    if not call.floating:
        first, second = _shifted(first, call.scalar(2)), _shifted(second, call.scalar(3))
    return DotProduct(function, first, second, None, first.value.shape[-1], call.dtype, local=True)


_ONE = Bounded(np.ones(()), np.zeros(()), "float32")


@_parts("REDUCE_SUM")
def reduce_sum(call: Call) -> DotProduct:
    """The sum along an axis; bf16 is added up in fp32 (REDUCE_SUM: "Supported data types", acc_t)."""
    axis = call.attributes["axis"]
    accumulator = "float32" if call.dtype == "bfloat16" else call.dtype

    def function(data: Float, weight: Float, extra: bool) -> Float:
        return np.asarray(np.sum(data, axis=axis, keepdims=True) * weight)

    terms = call.inputs[0].value.shape[axis]
    return DotProduct(function, call.inputs[0], _ONE, None, terms, accumulator, local=True)


@_parts("AVG_POOL2D")
def average(call: Call) -> DotProduct:
    """The mean of each window of an NHWC tensor; padding does not count."""
    counts = _window_sums(call, np.ones(call.inputs[0].value.shape))

    def function(data: Float, weight: Float, extra: bool) -> Float:
        return _window_sums(call, data) / counts * weight

    accumulator, terms = call.attributes["acc_type"], math.prod(call.attributes["kernel"])
    return DotProduct(function, call.inputs[0], _ONE, None, terms, accumulator, local=True)


def _window_sums(call: Call, data: Array) -> Float:
    kernel, stride, pad = (call.attributes[name] for name in ("kernel", "stride", "pad"))
    total = np.zeros(call.shape)
    for _, tap, _ in windows(data, kernel, stride, (1, 1), pad, call.shape[1:3]):
        total += tap
    return total


@operator("CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D", "MATMUL", "REDUCE_SUM")
def dot_product(call: Call) -> Bounded:
    """Any of the dot products: carried errors, and in floats the operator's own."""
    parts = DOT_PRODUCTS[call.name](call)
    value, carried = parts.value(), parts.carried()
    if not call.floating:
        return call.result(value, carried)
    magnitude, ksb = parts.magnitude(call.dtype), parts.ksb(call.dtype)
    own = bounds.dot_product(magnitude, ksb, call.dtype, call.version, operands=call.inputs[0].dtype)
    if call.name != "AVG_POOL2D":
        own = np.where(parts.whole(call.dtype), 0.0, own)
    # An infinite operand makes an infinite result, whatever the order; a product of infinity and a zero of
    # the padding, which may be added, makes the magnitude NaN.
    own = np.where(np.isinf(value) & ~np.isnan(magnitude), 0.0, own)
    return call.result(value, carried + own)


@operator("AVG_POOL2D")
def average_pool(call: Call) -> Bounded:
    """The mean of each window: a dot product in floats, a scaled sum in integers."""
    if call.floating:
        return dot_product(call)
    shifted = _shifted(call.inputs[0], call.scalar(1))
    counts = _window_sums(call, np.ones(shifted.value.shape)).astype(np.int64)
    sums = Bounded(
        _window_sums(call, shifted.value).astype(np.int64), _window_sums(call, shifted.error), "int32"
    )
    return scaled_average(call, sums, counts)
