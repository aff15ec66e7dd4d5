"""Is a rewritten program still the same? Both are run in fp64, so that only what the rewriting did is left.

The elements of an output may differ by what rounding a program's constants to its own dtype does, and NaN and
infinities, which a quantised program has no codes for, may become numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.comparison.lowering import describe_wrong
from vgf_conformance.comparison.metrics import measure
from vgf_conformance.comparison.signal import PEER_MARGIN_DB, noise_share, signal_budget
from vgf_conformance.results.record import Comparison
from vgf_conformance.vocabulary import Stage

Array = NDArray[Any]

#: What constants may add that are made in the program's dtype, in ULP of the tensor's largest element.
_CONSTANTS_ULP = 16


def judge_rewritten(
    pair: str, number: int, actual: Array, exact: Array, native: Array, slack: float = 0.0
) -> Comparison:
    """Judge output ``number`` of a rewritten program, at the stage ``quantise``.

    ``actual`` and ``exact`` are what it and the original give in fp64, ``native`` is what the original gives
    in the dtype that the user sees. ``slack`` is what rounding in fp64 may leave where all cancels, in the
    output's units.
    """
    if actual.shape != exact.shape:
        message = f"output {number} has the shape {list(actual.shape)}, should be {list(exact.shape)}"
        return Comparison(pair, Stage.QUANTISE, number, False, "shape", None, message=message)
    dtype = str(native.dtype)
    if dtype not in FORMATS:
        right, rule = np.asarray(actual == exact), "exact"
    else:
        right = _right(actual.astype(np.float64), exact.astype(np.float64), native, dtype, slack)
        rule = f"{_CONSTANTS_ULP} ULP of the largest element, sqnr >= {signal_budget(dtype):.4g} dB"
    return judged_elements(pair, number, rule, actual, exact, right, dtype)


def judged_elements(
    pair: str, number: int, rule: str, actual: Array, exact: Array, right: NDArray[np.bool_], dtype: str
) -> Comparison:
    """The comparison of output ``number``, whose elements are ``right`` or not, at the stage ``quantise``."""
    metrics = measure(actual, exact, dtype)
    metrics.wrong = int(np.count_nonzero(~right))
    return Comparison(
        pair=pair,
        stage=Stage.QUANTISE,
        output=number,
        passed=bool(right.all()),
        rule=rule,
        metrics=metrics,
        message="" if right.all() else describe_wrong(f"output {number}", actual, exact, right),
    )


def _right(actual: Array, exact: Array, native: Array, dtype: str, slack: float) -> NDArray[np.bool_]:
    """Which elements are right."""
    finite = np.isfinite(exact)
    magnitude = np.abs(exact, where=finite, out=np.zeros(exact.shape))
    largest = float(magnitude.max(initial=0.0))
    with np.errstate(invalid="ignore"):
        gap = np.abs(actual - exact)
        rounding = np.abs(native.astype(np.float64) - exact)
    # A second good implementation may round worse than eager by the margin that noise has.
    peer = float(rounding[finite & np.isfinite(rounding)].max(initial=0.0)) * 10 ** (PEER_MARGIN_DB / 20)
    allowed = max(_CONSTANTS_ULP * largest * 2.0 ** -FORMATS[dtype].fraction, peer, slack)
    near = np.isfinite(actual) & (gap <= allowed)
    # An infinity may become the end of a range that holds every number of the tensor.
    replaced = (np.sign(actual) == np.sign(exact)) & (np.abs(actual) >= largest)
    right: NDArray[np.bool_] = np.where(finite, near, np.isnan(exact) | replaced)
    # Where single elements are wrong, these are; else the noise is everywhere.
    noisy = noise_share(actual, exact, native, dtype) > 1 and float(gap[finite].max(initial=0.0)) > slack
    return np.zeros(exact.shape, np.bool_) if noisy and right.all() else right
