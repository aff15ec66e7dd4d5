"""Functions that the bounds rest on, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage, special

from vgf_conformance.comparison.operators.elementwise import _MONOTONE
from vgf_conformance.comparison.operators.integer import _neighbours

VALUES = np.concatenate(
    [np.linspace(-40, 40, 4001), [-np.inf, np.inf, np.nan, -0.0, 1e-300, -1e-300, 745.0, -745.0, 1e5, -1e5]]
)


@pytest.mark.parametrize(("name", "theirs"), [("SIGMOID", special.expit), ("ERF", special.erf)])
def test_functions_are_scipys(name: str, theirs: np.ufunc) -> None:
    with np.errstate(all="raise", under="ignore"):
        ours = _MONOTONE[name](VALUES)
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, theirs(VALUES), rtol=1e-15, atol=1e-320)
    assert _MONOTONE[name](np.array(0.5)) == pytest.approx(float(theirs(0.5)), rel=1e-15)
    assert _MONOTONE[name](np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 100, 255, 1000])
def test_the_extreme_of_neighbours(width: int) -> None:
    values = np.random.default_rng(width).integers(-99, 99, 256)
    size = 2 * width + 1
    largest = ndimage.maximum_filter1d(values, size, mode="nearest")
    smallest = ndimage.minimum_filter1d(values, size, mode="nearest")
    np.testing.assert_array_equal(_neighbours(values, width, np.maximum), largest)
    np.testing.assert_array_equal(_neighbours(values, width, np.minimum), smallest)
