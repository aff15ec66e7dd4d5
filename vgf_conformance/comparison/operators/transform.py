"""FFT2D and RFFT2D: dot products of the input with sines and cosines, two outputs each.

TOSA 1.0.2, FFT2D and RFFT2D: "Precision requirements" hold each output to the dot product
accuracy requirements, with KS = 2 H W for FFT2D, whose results have two products for each
element, and H W for RFFT2D.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.operators.base import Array, Bounded, Call, Float, operator

#: Cosines, sines and the places where a sine is zero by definition, indexed [y, x, ox].
_Row = tuple[Float, Float, Array]


@operator("FFT2D")
def fft2d(call: Call) -> Bounded:
    """[N, H, W] real and imaginary; ``inverse`` turns the other way and does not divide."""
    sign = -1.0 if call.attributes["inverse"] else 1.0

    def weights(row: _Row) -> list[tuple[Float, Array]]:
        cosines, sines, never = row[0], sign * row[1], np.zeros_like(row[2])
        first, second = (cosines, sines) if call.output == 0 else (-sines, cosines)
        return [(first, never), (second, never)]

    return _products(call, weights)


@operator("RFFT2D")
def rfft2d(call: Call) -> Bounded:
    """[N, H, W] real to [N, H, W / 2 + 1] real and imaginary.

    The imaginary sum leaves out the terms whose sine is zero by definition, so that an
    infinite input does not spoil it there.
    """

    def weights(row: _Row) -> list[tuple[Float, Array]]:
        cosines, sines, zero = row
        return [(cosines, np.zeros_like(zero)) if call.output == 0 else (-sines, zero)]

    return _products(call, weights)


def _row(call: Call, row: int) -> _Row:
    """The weights of output row ``row``: cos and sin of 2 pi (y row / H + x ox / W)."""
    _, height, width = call.inputs[0].value.shape
    # Reduced to one turn before it is rounded.
    y = np.arange(height)[:, None, None] * row % height
    x = np.arange(width)[:, None] * np.arange(call.shape[2]) % width
    angle = 2 * math.pi * (y / height + x / width)
    return np.cos(angle), np.sin(angle), (2 * y % height == 0) & (2 * x % width == 0)


def _products(call: Call, weights: Callable[[_Row], list[tuple[Float, Array]]]) -> Bounded:
    least = bounds.FORMATS[call.dtype].normal_min
    value, carried, magnitude = (np.zeros(call.shape) for _ in range(3))
    for row in range(call.shape[1]):
        for operand, (weight, left_out) in zip(call.inputs, weights(_row(call, row)), strict=True):
            size = np.maximum(np.abs(operand.value) + operand.error, least)
            if not call.attributes["local_bound"]:
                size = np.full_like(size, np.fmax.reduce(size, axis=None, initial=least))
            value[:, row] += _sum(operand.value, weight, left_out)
            if not operand.exact:
                carried[:, row] += _sum(operand.error, np.abs(weight), left_out)
            magnitude[:, row] += _sum(size, np.maximum(np.abs(weight), least), left_out)
    own = bounds.dot_product(magnitude, transform_terms(call), call.dtype, call.version)
    own = np.where(np.isinf(value) & ~np.isnan(magnitude), 0.0, own)
    return call.result(value, carried + own)


def transform_terms(call: Call) -> int:
    """ksb: the number of products in each result."""
    terms = len(call.inputs) * math.prod(call.inputs[0].value.shape[1:])
    return bounds.dot_product_terms(terms, call.dtype, call.dtype, bias=False)


def _sum(data: Array, weight: Float, left_out: Array) -> Float:
    products = np.where(left_out, 0.0, data[..., None] * weight)
    return np.asarray(products.sum(axis=(1, 2)))
