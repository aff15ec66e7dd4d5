"""Judges a whole tensor by its signal-to-noise ratio, where no bound says enough.

A propagated bound is a worst case: it grows with depth, and is infinite where an interval reaches a
pole. So two implementations that should be equally good are also held against each other: neither may
have much more noise than the other, both measured against the exact result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.comparison.metrics import sqnr

Array = NDArray[Any]

#: Decibels by which one of two good implementations may be worse than the other: ten times the noise
#: amplitude, for another order of summation and another polynomial.
PEER_MARGIN_DB = 20.0


def signal_budget(dtype: str) -> float:
    """Decibels of SQNR that a graph must keep: 100 dB in fp32.

    Rounding once costs about 6.02 dB (fraction + 1) below the signal: 144 dB in fp32, of
    which 100 dB leave 30 % of the bits to accumulation. The same share of the narrower
    formats' bits gives 100 dB (fraction + 1) / 24: 45.8 dB in fp16, 33.3 dB in bf16.
    About 50 fp32 models were measured: every right one kept 107 dB or more.
    """
    return 100.0 * (FORMATS[dtype].fraction + 1) / 24


def noise_share(actual: Array, exact: Array, peer: Array, dtype: str) -> float:
    """The noise of ``actual`` as a share of what is allowed, in amplitude; at most 1 is good.

    Allowed is what ``signal_budget`` leaves, or PEER_MARGIN_DB more than ``peer`` has. Elements that
    are not finite in all three, and tensors without signal, are for other rules: share 0. So are
    subnormal results that were flushed to zero, as TOSA allows.
    """
    arrays = [array.astype(np.float64) for array in (actual, exact, peer)]
    finite = np.logical_and.reduce([np.isfinite(array) for array in arrays])
    flushed = (arrays[0] == 0) & (np.abs(arrays[1]) < FORMATS[dtype].normal_min)
    ours, right, other = (array[finite & ~flushed] for array in arrays)
    if not right.any():
        return 0.0
    got, theirs = sqnr(ours, right), sqnr(other, right)
    assert got is not None and theirs is not None
    return float(10.0 ** ((min(signal_budget(dtype), theirs - PEER_MARGIN_DB) - got) / 20))
