"""Outputs named by their content: equal names are equal bits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from vgf_conformance.formats.arrays import npy
from vgf_conformance.results.record import OutputDigest


def digests(arrays: Sequence[NDArray[Any]]) -> list[OutputDigest]:
    """The dtype of each output of a delegate call, and the SHA-256 of it as a ``.npy`` file."""
    return [OutputDigest(array.dtype.name, hashlib.sha256(npy(array)).hexdigest()) for array in arrays]
