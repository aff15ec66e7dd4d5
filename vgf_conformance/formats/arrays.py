"""Arrays as ``.npy`` files, written alike everywhere and read without numpy's pickles."""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats.tosa import storage
from vgf_conformance.untrusted import Malformed

#: Bytes that a header may have, axes that an array may have (numpy's own limit, in the oldest version
#: that is supported), and elements that an empty array would have but for its empty axes.
HEADER_LIMIT = 10_000
RANK_LIMIT = 32
EMPTY_LIMIT = 1 << 40

_ENTRY = re.compile(r"""'(\w+)'\s*:\s*('[^']*'|True|False|\([^()]*\)|\[[^\]]*\])\s*(?:,\s*|$)""")
#: Bools, integers and floats. Bytes of no type are how numpy writes narrow floats, which it does not know.
_NUMBERS = re.compile(r"'(?:[|<>=]b1|[|<>=][iu][1248]|[<>=]f[248]|[|<>=]V[12])'")
_SHAPE = re.compile(r"\(\s*(?:\d{1,19}\s*(?:,\s*|(?=\))))*\)")


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
    """The array of a ``.npy`` file. Raises Malformed where it is none, holds no numbers, or is cut short.

    Only as much memory is taken as ``content`` has, whatever its header says.
    """
    header = _header(content)
    wanted, found = math.prod(header.shape) * header.dtype.itemsize, len(content) - header.end
    if wanted != found:
        raise Malformed(f"holds {found} bytes of data, its header says {wanted}")
    if not wanted:
        return np.zeros(header.shape, header.dtype)
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    return np.frombuffer(content, header.dtype, offset=header.end).reshape(header.shape, order=order)


@dataclass(frozen=True)
class _Header:
    """What a file says of its data, which begin at byte ``end``."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    end: int


def _header(content: bytes) -> _Header:
    """Read a header as numpy writes one: a dict in Python's notation, which is never evaluated."""
    start = {b"\1\0": 10, b"\2\0": 12}.get(content[6:8])
    if content[:6] != b"\x93NUMPY" or start is None or len(content) < start:
        raise Malformed("is no .npy file")
    length = int.from_bytes(content[8:start], "little")
    if length > HEADER_LIMIT or start + length > len(content):
        raise Malformed(f"is no .npy file: a header of {length} bytes")
    fields = _fields(content[start : start + length].decode("latin-1"))
    if fields.keys() != {"descr", "fortran_order", "shape"}:
        raise Malformed("is no .npy file: its header is none that numpy writes")
    shape = _shape(fields["shape"])
    return _Header(shape, fields["fortran_order"] == "True", _dtype(fields["descr"]), start + length)


def _fields(header: str) -> dict[str, str]:
    """The entries of the dict, each as it is written; none where it is no such dict."""
    body = header.strip()
    if not (body.startswith("{") and body.endswith("}")):
        return {}
    body, place, found = body[1:-1].strip(), 0, {}
    while place < len(body):
        entry = _ENTRY.match(body, place)
        if entry is None or entry[1] in found:
            return {}
        found[entry[1]], place = entry[2], entry.end()
    return found


def _dtype(text: str) -> np.dtype[Any]:
    if text in ("'|O'", "'O'"):
        raise Malformed("holds pickled Python objects, which are never read")
    if not _NUMBERS.fullmatch(text):
        raise Malformed("holds no plain numbers")
    return np.dtype(text[1:-1])


def _shape(text: str) -> tuple[int, ...]:
    if not _SHAPE.fullmatch(text):
        raise Malformed("is no .npy file: its shape is none")
    shape = tuple(int(size) for size in text[1:-1].split(",") if size.strip())
    if len(shape) > RANK_LIMIT:
        raise Malformed(f"has {len(shape)} axes, where {RANK_LIMIT} are the most")
    # numpy counts the bytes of an empty array as if it had one element along each empty axis.
    if not math.prod(shape) and math.prod(size or 1 for size in shape) > EMPTY_LIMIT:
        raise Malformed(f"is empty, with axes that no array has: {list(shape)}")
    return shape


def as_dtype(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """``array`` as it was before narrow floats became integers; raises Malformed where it is another."""
    wanted = storage(dtype)
    if array.dtype != plain(np.zeros(0, wanted)).dtype:
        raise Malformed(f"holds {array.dtype}, should be {dtype}")
    return array.view(wanted)
