"""Tells written outputs from unwritten ones, and repeatable runs from unrepeatable ones.

Before each of two runs every output buffer is filled with a sentinel byte, another one
each time: an element that still holds the first sentinel after the first run and the
second after the second was never written. (Downloading a buffer that nothing wrote gives
no error from Vulkan.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.targets.base import Array, Outputs

SENTINELS = (0xA5, 0x5A)


def filled(shape: tuple[int, ...], dtype: np.dtype[np.generic], sentinel: int) -> Array:
    """An array whose every byte is ``sentinel``."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.full(nbytes, sentinel, np.uint8).view(dtype).reshape(shape)


def compare_runs(first: list[Array], second: list[Array]) -> Outputs:
    """Judge two runs whose outputs were filled with SENTINELS; the first run's arrays are kept."""
    outputs = Outputs(first)
    if len(first) != len(second):
        outputs.unrepeatable = list(range(max(len(first), len(second))))
        return outputs
    for index, (one, two) in enumerate(zip(first, second, strict=True)):
        if one.shape != two.shape or one.dtype != two.dtype:
            outputs.unrepeatable.append(index)
            continue
        bytes_one, bytes_two = _element_bytes(one), _element_bytes(two)
        untouched = (bytes_one == SENTINELS[0]).all(1) & (bytes_two == SENTINELS[1]).all(1)
        if untouched.any():
            outputs.unwritten[index] = int(untouched.sum())
        if (bytes_one != bytes_two).any(1)[~untouched].any():
            outputs.unrepeatable.append(index)
    return outputs


def _element_bytes(array: Array) -> NDArray[np.uint8]:
    contiguous = np.ascontiguousarray(array)
    return contiguous.view(np.uint8).reshape(contiguous.size, contiguous.dtype.itemsize)
