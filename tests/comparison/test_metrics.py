"""Measures on values whose errors are known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vgf_conformance.comparison.metrics import HISTOGRAM_EDGES, histogram, measure, ulp_apart


def test_equal() -> None:
    data = np.array([1.0, math.nan, -math.inf], np.float32)
    metrics = measure(data, data, "float32")
    assert (metrics.differing, metrics.max_abs, metrics.max_ulp, metrics.sqnr_db) == (0, 0, 0, math.inf)
    assert metrics.worst_index is None
    assert metrics.cosine == pytest.approx(1)


def test_ulp_against_a_wider_expectation() -> None:
    metrics = measure(np.array([[1.0, 2.0]], np.float32), np.array([[1 + 2.0**-24, 2.0]]), "float32")
    assert metrics.max_ulp == 0.5
    assert metrics.worst_index == (0, 0)
    assert metrics.max_lsb is None


def test_ulp_apart_counts_at_the_larger_of_both() -> None:
    one, zero = np.array([1.0, math.nan], np.float32), np.array([0.0, 1.0], np.float32)
    assert ulp_apart(one, zero, "float32") == ulp_apart(zero, one, "float32") == 2.0**23
    assert ulp_apart(one[1:], zero[1:], "float32") is None


def test_an_expectation_beyond_the_range_is_infinite() -> None:
    metrics = measure(np.array([math.inf], np.float16), np.array([1e6]), "float16")
    assert (metrics.differing, metrics.nonfinite_mismatches) == (0, 0)


def test_classes_are_compared_by_position() -> None:
    actual = np.array([math.nan, math.inf, 1.0, math.inf, -0.0], np.float32)
    expected = np.array([1.0, -math.inf, math.nan, math.inf, 0.0], np.float32)
    metrics = measure(actual, expected, "float32")
    assert (metrics.nonfinite_mismatches, metrics.differing, metrics.zero_sign_mismatches) == (3, 3, 1)
    assert metrics.worst_index == (0,)
    assert histogram(actual, expected, "float32")[0][-1] == 3


def test_integers() -> None:
    metrics = measure(np.array([-128, 3], np.int8), np.array([127, 3], np.int8), "int8")
    assert (metrics.max_abs, metrics.max_lsb, metrics.max_ulp) == (255, 255, None)
    assert (metrics.worst_actual, metrics.worst_expected) == (-128, 127)


def test_dequantised() -> None:
    metrics = measure(np.array([0.5, 0.25]), np.array([0.25, 0.25]), "float32", lsb=0.125)
    assert metrics.max_lsb == 2


def test_bools() -> None:
    metrics = measure(np.array([True, False]), np.array([True, True]), "bool")
    assert (metrics.differing, metrics.max_abs, metrics.worst_index) == (1, None, (1,))


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_shapes_without_axes_or_elements(shape: tuple[int, ...], dtype: str) -> None:
    first, second = np.zeros(shape, dtype), np.ones(shape, dtype)
    metrics = measure(first, second, dtype)
    assert metrics.differing == metrics.elements == first.size
    assert metrics.worst_index == (() if shape == () else None)
    assert sum(histogram(first, second, dtype)[0]) == first.size


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="shape"):
        measure(np.zeros(2), np.zeros(3), "float32")


def test_histogram() -> None:
    expected = np.zeros(6, np.int32)
    counts, unit = histogram(np.array([0, 1, 1, 2, 3, 2**30], np.int32), expected, "int32")
    assert (unit, len(counts)) == ("LSB", len(HISTOGRAM_EDGES) + 1)
    assert (counts[0], counts[2], counts[3], counts[4], counts[-1]) == (1, 2, 1, 1, 1)


def test_signal_to_noise() -> None:
    metrics = measure(np.array([1.1, 1.0]), np.array([1.0, 1.0]), "float32")
    assert metrics.sqnr_db == pytest.approx(10 * math.log10(2 / 0.01))
    assert measure(np.array([1.0]), np.array([0.0]), "float32").sqnr_db == -math.inf
    assert measure(np.array([1e38]), np.array([-1e38]), "float32").cosine == pytest.approx(-1)
