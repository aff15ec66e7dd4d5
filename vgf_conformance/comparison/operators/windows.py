"""Sliding windows over the spatial axes of a channels-last tensor."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from vgf_conformance.comparison.operators.base import Array


def windows(
    data: Array,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pad: Sequence[int],
    out: Sequence[int],
    fill: float = 0,
) -> Iterator[tuple[tuple[int, ...], Array, Array]]:
    """For each position in the kernel, what of ``data`` lies under it for all outputs.

    ``data`` is [N, spatial axes..., C]; ``pad`` is (before, after) for each spatial axis;
    each item is the position, an array [N, out..., C], and whether that lies within the
    data rather than the padding, as a bool array [1, out..., 1].
    """
    widths = [(0, 0), *zip(pad[::2], pad[1::2], strict=True), (0, 0)]
    padded = np.pad(data, widths, constant_values=fill)
    inside = np.pad(np.ones((1, *data.shape[1:-1], 1), np.bool_), widths)
    for position in itertools.product(*map(range, kernel)):
        starts = [place * step for place, step in zip(position, dilation, strict=True)]
        box = [
            slice(start, start + (count - 1) * step + 1, step)
            for start, count, step in zip(starts, out, stride, strict=True)
        ]
        yield position, padded[tuple([slice(None), *box])], inside[tuple([slice(None), *box])]
