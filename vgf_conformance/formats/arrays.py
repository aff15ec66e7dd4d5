"""Arrays as ``.npy`` files, written alike everywhere and read without numpy's pickles."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats.tosa import storage

#: numpy's headers have no more than this unless a field's name is very long.
HEADER_LIMIT = 10_000


def plain(array: NDArray[Any]) -> NDArray[Any]:
    """Narrow floats as plain integers of their width, for what knows numpy's own dtypes only.

    That is numpy's files, and the scenario runner's binding.
    """
    return array.view(f"u{array.dtype.itemsize}") if _foreign(array.dtype) else array


def raw(array: NDArray[Any]) -> NDArray[Any]:
    """Narrow floats as bytes of no type (``V2``, ``V1``): so the reference model knows them."""
    array = np.asarray(array, order="C")
    return array.view(f"V{array.dtype.itemsize}") if _foreign(array.dtype) else array


def _foreign(dtype: np.dtype[Any]) -> bool:
    # 2 is for types of other packages; a copy of numpy's own, as pickling makes one, has 0 and not 1.
    return dtype.isbuiltin == 2


def npy(array: NDArray[Any]) -> bytes:
    """The content of a ``.npy`` file, narrow floats as integers of their width."""
    file = io.BytesIO()
    np.save(file, plain(np.asarray(array, order="C")), allow_pickle=False)
    return file.getvalue()


def read_npy(content: bytes) -> NDArray[Any]:
    """The array of a ``.npy`` file. Raises ValueError where it is none, pickled, or cut short.

    Only as much memory is taken as ``content`` has, whatever its header says.
    """
    shape, fortran, dtype, start = _header(content)
    if dtype.hasobject:
        raise ValueError("holds pickled Python objects, which are never read")
    if dtype.fields or min(shape, default=1) < 0:
        raise ValueError("holds no plain numbers")
    wanted, found = math.prod(shape) * dtype.itemsize, len(content) - start
    if wanted != found:
        raise ValueError(f"holds {found} bytes of data, its header says {wanted}")
    if not wanted:
        return np.zeros(shape, dtype)
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if fortran else "C")


def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran's order, dtype, and where the data begin."""
    file = io.BytesIO(content)
    # Typed by hand: numpy's own stubs of this module are incomplete.
    readers: dict[tuple[int, int], Callable[..., Any]] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
        shape, fortran, dtype = readers[version](file, max_header_size=HEADER_LIMIT)
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("is no .npy file") from error
    return shape, fortran, dtype, file.tell()


def as_dtype(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """``array`` as it was before narrow floats became integers; raises ValueError where it is another."""
    wanted = storage(dtype)
    if array.dtype != plain(np.zeros(0, wanted)).dtype:
        raise ValueError(f"holds {array.dtype}, should be {dtype}")
    return array.view(wanted)
