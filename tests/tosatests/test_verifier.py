"""tosa-tools' verifier through our wrapper, on values whose bounds are computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from vgf_conformance.tosatests.verifier import Verifier, verifier
from vgf_conformance.vocabulary import UserError


def accepts(
    mode: str, dtype: str, actual: Any, exact: Any, bounds: NDArray[Any] | None = None, **info: Any
) -> bool:
    array = np.asarray(actual)
    tensor = {"mode": mode, "data_type": dtype, "shape": list(array.shape), **info}
    compliance = {"version": "1.1", "tensors": {"out": tensor}}
    return verifier().accepts("out", array, np.asarray(exact), bounds, compliance)


@pytest.mark.parametrize(
    ("dtype", "kind", "fraction"),
    [("FP32", np.float32, 23), ("FP16", np.float16, 10), ("BF16", ml_dtypes.bfloat16, 7)],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_ulp(dtype: str, kind: Any, fraction: int, sign: float) -> None:
    exact = np.array([sign * 1.5], np.float64)
    step = 2.0**-fraction
    for units, expected in [(0, True), (1, True), (-1, True), (2, False), (-2, False)]:
        actual = np.array([sign * (1.5 + units * step)], kind)
        assert accepts("ULP", dtype, actual, exact, ulp_info={"ulp": 1.0}) is expected, units


def test_half_an_ulp_leaves_the_two_neighbours_of_a_tie() -> None:
    exact = np.array([1 + 2.0**-24], np.float64)
    for units, expected in [(0, True), (1, True), (2, False), (-1, False)]:
        actual = np.array([1 + units * 2.0**-23], np.float32)
        assert accepts("ULP", "FP32", actual, exact, ulp_info={"ulp": 0.5}) is expected, units


def test_exp_by_its_absolute_error() -> None:
    # EXP: 2^-23 |R| (3 + 2 |x|); the bounds file holds 2 |x|. At x = 1: 5 units of 2^-23 e.
    exact, bounds = np.array([np.e]), np.array([2.0])
    for units, expected in [(4.9, True), (-4.9, True), (5.3, False), (-5.3, False)]:
        actual = np.array([np.e * (1 + units * 2.0**-23)], np.float32)
        info = {"abs_error_info": {"base_bound": 3}}
        assert accepts("ABS_ERROR", "FP32", actual, exact, bounds, **info) is expected, units


@pytest.mark.parametrize(("share", "expected"), [(0.99, True), (1.06, False)])
def test_dot_product_by_its_largest_error(share: float, expected: bool) -> None:
    # A thousand sums of B = 4 with ksb = 5; one of them off by 2 ksb units of half an ULP of B, which
    # are 20 of the result's own steps.
    exact, bounds = np.ones(1000), np.full(1000, 4.0)
    actual = exact.astype(np.float32)
    actual[7] += share * 2 * 5 * 4.0 * 2.0**-24
    info = {"s": 1, "ksb": 5, "abs_bound": 10, "variance_error_bound": 8.0}
    assert accepts("DOT_PRODUCT", "FP32", actual, exact, bounds, dot_product_info=info) is expected


@pytest.mark.parametrize(("share", "expected"), [(0.98, True), (1.02, False)])
def test_dot_product_by_its_mean_square(share: float, expected: bool) -> None:
    # Every error is allowed by itself; the mean of their squares is 1.6 ksb at sqrt(8) units. fp16, where
    # a unit of B = 4 is 2^-9, so that the errors are numbers of the format.
    exact, bounds = np.zeros(1000), np.full(1000, 4.0)
    actual = np.resize([1.0, -1.0], 1000) * share * np.sqrt(8.0) * 4.0 * 2.0**-11
    info = {"s": 1, "ksb": 5, "abs_bound": 10, "variance_error_bound": 8.0}
    narrow = actual.astype(np.float16)
    assert accepts("DOT_PRODUCT", "FP16", narrow, exact, bounds, dot_product_info=info) is expected


@pytest.mark.parametrize(
    ("dtype", "kind"), [("INT8", np.int8), ("INT16", np.int16), ("INT32", np.int32), ("INT48", np.int64)]
)
def test_integers_are_exact(dtype: str, kind: Any) -> None:
    right = np.array([[1, -2], [3, 4]], kind)
    assert accepts("EXACT", dtype, right, right)
    assert not accepts("EXACT", dtype, right + kind(1), right)


def test_booleans_are_exact() -> None:
    assert accepts("EXACT", "BOOL", np.array([True, False]), np.array([True, False]))
    assert not accepts("EXACT", "BOOL", np.array([True, True]), np.array([True, False]))


def test_nan_meets_nan_and_a_subnormal_may_be_flushed() -> None:
    info: dict[str, Any] = {"ulp_info": {"ulp": 0.5}}
    nan = np.array([np.nan], np.float32)
    assert accepts("ULP", "FP32", nan, np.array([np.nan]), **info)
    assert not accepts("ULP", "FP32", nan, np.array([1.0]), **info)
    assert not accepts("ULP", "FP32", np.array([1.0], np.float32), np.array([np.nan]), **info)
    assert accepts("ULP", "FP32", np.array([0.0], np.float32), np.array([2.0**-130]), **info)
    assert not accepts("ULP", "FP32", np.array([0.0], np.float32), np.array([2.0**-120]), **info)


def test_arrays_need_not_be_in_order() -> None:
    right = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert accepts("EXACT", "INT32", np.asfortranarray(right), right)
    assert not accepts("EXACT", "INT32", right[::-1], right)


def test_an_undescribed_output_is_an_error() -> None:
    with pytest.raises(KeyError):
        verifier().accepts("other", np.zeros(1), np.zeros(1), None, {"version": "1.1", "tensors": {}})


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tosa-tools .* has no verifier library \(none.so\)"):
        Verifier(tmp_path / "none.so")
