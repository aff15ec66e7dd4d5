"""How far one array lies from another: measures, not judgements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison.bounds import FORMATS, ulp_size
from vgf_conformance.formats.tosa import storage
from vgf_conformance.results.record import Metrics

#: Upper ends of the histogram's bins, in ULP or LSB: [0], (0, 0.5], (0.5, 1], (1, 2] ...; one open bin more.
HISTOGRAM_EDGES: tuple[float, ...] = (0.0, 0.5, *(2.0**power for power in range(21)))

Float = NDArray[np.float64]


def measure(actual: NDArray[Any], expected: NDArray[Any], dtype: str, lsb: float | None = None) -> Metrics:
    """Measure ``actual`` against ``expected``, two arrays of one shape.

    ``dtype`` (a numpy name) is the format that ULPs are counted in; ``expected`` may be
    wider, and counts as infinite where it would overflow. ``lsb`` is the size of a
    quantisation step in the arrays' units; for integers it is 1 unless given. NaN,
    infinities and the sign of zero are compared by position; the other metrics take
    the finite pairs. Raises ValueError where the shapes differ.
    """
    if actual.shape != expected.shape:
        raise ValueError(f"shape {actual.shape} against {expected.shape}")
    if dtype == "bool":
        return _measure_bool(actual.astype(np.bool_), expected.astype(np.bool_))
    first, second = actual.astype(np.float64), _in_range(expected.astype(np.float64), dtype)
    mismatch, finite = _class_mismatch(first, second), np.isfinite(first) & np.isfinite(second)
    differing = mismatch | (finite & (first != second))
    error = _errors(first, second)
    left, right, gaps = first[finite], second[finite], error[finite]
    zero_signs = (first == 0) & (second == 0) & (np.signbit(first) != np.signbit(second))
    step = lsb if lsb is not None or dtype in FORMATS else 1.0
    metrics = Metrics(
        elements=actual.size,
        differing=int(np.count_nonzero(differing)),
        max_abs=_largest(gaps),
        max_rel=_largest(gaps[right != 0] / np.abs(right[right != 0])),
        max_ulp=_largest(gaps / ulp_size(right, dtype)) if dtype in FORMATS else None,
        max_lsb=None if step is None else _largest(gaps / step),
        sqnr_db=sqnr(left, right),
        cosine=_cosine(left, right),
        nonfinite_mismatches=int(np.count_nonzero(mismatch)),
        zero_sign_mismatches=int(np.count_nonzero(zero_signs)),
    )
    return _with_worst(metrics, np.where(differing, error, -1.0), first, second)


def ulp_apart(first: NDArray[Any], second: NDArray[Any], dtype: str) -> float | None:
    """The largest distance in ULP of two arrays of which neither is the right one; None without finite pairs.

    Each unit is that of the larger of the two, so that a number and a zero are not astronomically far apart.
    """
    one, other = first.astype(np.float64), second.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    one, other = one[finite], other[finite]
    return _largest(np.abs(one - other) / ulp_size(np.maximum(np.abs(one), np.abs(other)), dtype))


def histogram(
    actual: NDArray[Any], expected: NDArray[Any], dtype: str, lsb: float | None = None
) -> tuple[list[int], str]:
    """Count elements by error: one number for each bin of HISTOGRAM_EDGES, and the unit.

    The unit is ``LSB`` for integers, bools and wherever ``lsb`` is given, else ``ULP``.
    NaN against a number, and an infinity against anything else, fall into the last bin.
    """
    second = _in_range(expected.astype(np.float64), dtype)
    errors = _errors(actual.astype(np.float64), second)
    in_steps = lsb is not None or dtype not in FORMATS
    with np.errstate(invalid="ignore"):
        scaled = errors / (lsb or 1.0) if in_steps else errors / ulp_size(second, dtype)
    scaled = np.where(np.isfinite(errors), scaled, np.inf)
    bins = np.searchsorted(HISTOGRAM_EDGES, scaled.reshape(-1))
    counts = np.bincount(bins, minlength=len(HISTOGRAM_EDGES) + 1)
    return [int(count) for count in counts], "LSB" if in_steps else "ULP"


def same_class(actual: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether, element by element, NaN meets NaN, an infinity its like and a number a number."""
    first, second = actual.astype(np.float64), expected.astype(np.float64)
    infinite = np.isinf(first) | np.isinf(second)
    return np.where(infinite, first == second, np.isnan(first) == np.isnan(second))


def sqnr(actual: Float, expected: Float) -> float | None:
    """Signal to noise in decibels: 10 log10(sum expected^2 / sum (actual - expected)^2).

    Infinite where the two are equal, minus infinity where all signal is zero, None for no elements.
    """
    if not expected.size:
        return None
    # Scaled first, so that the squares of large and small fp32 numbers stay in range.
    scale = float(max(np.abs(actual).max(), np.abs(expected).max())) or 1.0
    noise = float(np.sum((actual / scale - expected / scale) ** 2))
    signal = float(np.sum((expected / scale) ** 2))
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf


def _measure_bool(actual: NDArray[np.bool_], expected: NDArray[np.bool_]) -> Metrics:
    differing = actual != expected
    metrics = Metrics(elements=actual.size, differing=int(np.count_nonzero(differing)))
    return _with_worst(metrics, np.where(differing, 1.0, -1.0), actual, expected)


def _in_range(expected: Float, dtype: str) -> Float:
    """``expected`` with infinities where it rounds to one in ``dtype``."""
    if dtype not in FORMATS:
        return expected
    with np.errstate(over="ignore"):
        overflown = np.isinf(expected.astype(storage(dtype)).astype(np.float64))
    return np.where(overflown, np.copysign(np.inf, expected), expected)


def _class_mismatch(actual: Float, expected: Float) -> NDArray[np.bool_]:
    """Where one is NaN and the other is not, or one is an infinity that the other is not."""
    infinite = (np.isinf(actual) | np.isinf(expected)) & (actual != expected)
    return np.asarray((np.isnan(actual) != np.isnan(expected)) | (infinite & ~np.isnan(actual)), np.bool_)


def _errors(actual: Float, expected: Float) -> Float:
    """|actual - expected|, infinite where the classes differ, 0 where both are one infinity or NaN."""
    with np.errstate(invalid="ignore"):
        gaps = np.abs(actual - expected)
    gaps = np.where(np.isnan(gaps), 0.0, gaps)
    return np.where(_class_mismatch(actual, expected), np.inf, gaps)


def _largest(values: Float) -> float | None:
    return float(values.max()) if values.size else None


def _cosine(actual: Float, expected: Float) -> float | None:
    """The cosine of the angle between the two as vectors, None where one is zero."""
    normalised: list[Float] = []
    for vector in (actual, expected):
        largest = np.abs(vector).max(initial=0.0)
        if largest == 0:
            return None
        normalised.append((vector / largest) / np.linalg.norm(vector / largest))
    return min(float(np.dot(normalised[0], normalised[1])), 1.0)


def _with_worst(metrics: Metrics, error: Float, actual: NDArray[Any], expected: NDArray[Any]) -> Metrics:
    """Add where ``error`` is largest, unless nothing differs."""
    if metrics.differing:
        index = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(error)), error.shape))
        metrics.worst_index = index
        metrics.worst_actual, metrics.worst_expected = float(actual[index]), float(expected[index])
    return metrics
