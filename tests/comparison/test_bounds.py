"""The table of bounds: known numbers, and values just inside and just outside."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from vgf_conformance.comparison import bounds

EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
NUMPY = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
FLOATS = list(EPS)


def one(value: float) -> bounds.Float:
    return np.array([value])


def passes(actual: float, exact: float, error: float, dtype: str = "float32") -> bool:
    return bool(bounds.within(np.array([actual], NUMPY[dtype]), one(exact), one(error), dtype)[0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_ulp(dtype: str) -> None:
    assert bounds.ulp(one(1.0), 1, dtype) == EPS[dtype]
    assert bounds.ulp(one(-1.999), 1, dtype) == EPS[dtype]
    assert bounds.ulp(one(2.0), 0.5, dtype) == EPS[dtype]
    assert bounds.ulp(one(0.0), 1, dtype) == 0
    assert bounds.ulp(one(math.inf), 1, dtype) == 0
    least = bounds.FORMATS[dtype].normal_min
    assert bounds.ulp(one(least / 8), 1, dtype) == least * EPS[dtype]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sign", [1, -1])
def test_just_inside_and_just_outside(dtype: str, sign: int) -> None:
    exact, error = sign * 1.5, 2 * EPS[dtype]
    for steps, expected in [(-3, False), (-2, True), (0, True), (2, True), (3, False)]:
        assert passes(exact + steps * EPS[dtype], exact, error, dtype) is expected


def test_nan_must_meet_nan() -> None:
    assert passes(math.nan, math.nan, 0)
    assert not passes(1.0, math.nan, math.inf)
    assert not passes(math.nan, 1.0, 0.5)
    assert passes(math.nan, 1.0, math.inf)


def test_flush_to_zero() -> None:
    least = 2.0**-126
    assert passes(0.0, least / 2, 0)
    assert passes(-0.0, -least / 2, 0)
    assert not passes(0.0, least, 0)
    assert passes(0.0, least, least / 4)


def test_overflow() -> None:
    largest = float(np.finfo(np.float16).max)
    assert passes(math.inf, largest, 16, "float16")
    assert passes(largest, largest + 8, 16, "float16")
    assert not passes(largest, largest + 32, 16, "float16")
    assert passes(math.inf, largest + 32, 16, "float16")
    assert not passes(-math.inf, largest + 32, 16, "float16")
    assert not passes(math.inf, largest - 64, 16, "float16")


def test_headroom() -> None:
    exact, error = np.array([1.0, 1.0, 0.0]), np.array([0.5, 0.25, 0.0])
    assert bounds.headroom(np.array([1.25, 1.125, 0.0]), exact, error, "float32") == 0.5
    assert bounds.headroom(np.array([1.0, 1.0, 1.0]), exact, error, "float32") == math.inf
    assert bounds.headroom(np.array([]), np.array([]), np.array([]), "float32") == 0


@pytest.mark.parametrize(
    ("name", "operand", "result", "unit"),
    [
        ("RECIPROCAL", 1.0, 1.0, 1),
        ("RSQRT", 1.0, 1.0, 2),
        ("ERF", 9.0, 1.0, 5),
        ("EXP", 0.0, 1.0, 3),
        ("LOG", math.e, 1.0, 5),
        ("LOG", 1.0, 0.0, 0.5),
        ("SIGMOID", 0.0, 0.5, 1),
        ("TANH", 0.0, 0.0, 0.5),
    ],
)
def test_known_numbers_in_units_of_two_to_the_minus_23(
    name: str, operand: float, result: float, unit: float
) -> None:
    bound = bounds.UNARY[name](one(result), one(operand), "float32")
    assert bound == pytest.approx(unit * EPS["float32"])


def test_narrow_formats_have_one_unit_less_in_the_exponential() -> None:
    assert bounds.exp(one(1.0), one(0.0), "float16") == EPS["float16"]


def test_sine_and_cosine_keep_half_the_bits() -> None:
    # 23 / 2 is truncated toward zero, 7 / 2 too.
    assert bounds.cos(one(1.0), one(0.0), "float32") == 2.0**-11
    assert bounds.cos(one(1.0), one(1.0), "bfloat16") == 2 * 2.0**-3
    assert bounds.sin(one(1.0), one(1.0), "float16") == 2 * 2.0**-5
    assert bounds.sin(one(0.0), one(0.0), "float32") == math.pi * 2.0**-126


def test_the_exponential_of_minus_infinity_is_zero() -> None:
    assert bounds.exp(one(0.0), one(-math.inf), "float32") == 0


def test_rounded_results_that_are_representable_have_no_choice() -> None:
    assert bounds.rounded(one(3.0), "float16") == 0
    assert bounds.rounded(one(2049.0), "float16") == 1
    assert bounds.rounded(one(0.0), "float16") == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_a_cast_truncates_or_rounds_to_the_nearest(sign: int) -> None:
    def allowed(exact: float) -> list[float]:
        error = float(bounds.cast(one(exact), "bfloat16")[0])
        near = [254.0, 255.0, 256.0, 258.0, 260.0, 262.0]
        return [value for value in near if passes(sign * value, exact, error, "bfloat16")]

    # bf16 steps by 2 here. Half a unit away from zero is still allowed, more is not.
    assert allowed(sign * 259.0) == [258.0, 260.0]
    assert allowed(sign * 258.75) == [258.0]
    assert allowed(sign * 259.25) == [258.0, 260.0]
    assert allowed(sign * 258.0) == [258.0]
    assert bounds.cast(one(0.0), "bfloat16") == 0
    assert bounds.cast(one(math.inf), "bfloat16") == 0


def test_bfloat16_sums_may_be_truncated() -> None:
    assert bounds.arithmetic(one(257.0), "bfloat16") == 2
    assert bounds.arithmetic(one(2049.0), "float16") == 1


def test_power_at_its_corners() -> None:
    exact = bounds.power(np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([0.0, 2.0]), "float32")
    assert np.isfinite(exact).all()
    assert bounds.power(one(8.0), one(2.0), one(3.0), "float32")[0] < 8 * 20 * EPS["float32"]


def test_product_and_resize() -> None:
    assert bounds.reduce_product(one(1.0), 1, "float16")[0] == pytest.approx(2.0**-11)
    assert bounds.resize_bilinear(100.0, "float32") == pytest.approx(0.6)
    assert bounds.resize_bilinear(100.0, "bfloat16") == pytest.approx(20 * 100 * 2.0**-7)


def test_dot_products() -> None:
    assert bounds.dot_product_terms(9, "float32", "float32", bias=True) == 10
    assert bounds.dot_product_terms(4608, "float32", "float16", bias=False) == 51
    assert bounds.dot_product_terms(4608, "float16", "float16", bias=True) == 4609
    bound = bounds.dot_product(one(4.0), 10, "float32")
    assert bound == 20 * 4 * 2.0**-24
    assert bounds.dot_product(one(4.0), 10, "float32", "1.1-draft") == 3 * bound
    assert bounds.dot_product(one(0.0), 10, "float32") == 0
    assert bounds.dot_product(one(1e39), 10, "float32") == math.inf


def test_the_sum_of_squares_is_stricter_than_the_bound() -> None:
    exact, ksb = np.full(100, 1.0), 8
    error = bounds.dot_product(np.full(100, 1.0), ksb, "float32")
    # Every element at 0.9 of its bound: each within, all together not.
    actual = exact + 0.9 * error
    assert bounds.within(actual, exact, error, "float32").all()
    assert bounds.dot_product_variance(actual, exact, error, ksb, "1.0.2", "float32") > 1
    share = bounds.dot_product_variance(exact + 0.1 * error, exact, error, ksb, "1.0.2", "float32")
    assert share == pytest.approx(0.01 * 4 * ksb / 1.6)
