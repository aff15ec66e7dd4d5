"""Multipliers and shifts against the scales that they stand for, and scales against the program's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.rescales import check_rescales, nearest
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, TosaTensor
from vgf_conformance.vocabulary import Finding, Stage


def messages(
    scales: list[float],
    numbers: list[tuple[int, int]] | None = None,
    *,
    bits: int = 31,
    parameters: tuple[tuple[float, ...], ...] = (),
) -> list[str]:
    """What is said of a RESCALE that is to multiply by ``scales`` and has these multipliers and shifts."""
    numbers = [nearest(Fraction(scale), bits) for scale in scales] if numbers is None else numbers
    multipliers, shifts = np.array(numbers).T
    tensors = {
        "x": TosaTensor("x", (1,), "int32"),
        "m": TosaTensor("m", multipliers.shape, "int32", multipliers),
        "s": TosaTensor("s", shifts.shape, "int8", shifts),
        "y": TosaTensor("y", (1,), "int8"),
    }
    rescale = TosaOperator("RESCALE", {"scale32": bits == 31}, ("x", "m", "s", "x", "y"), ("y",))
    graph = TosaGraph("1.0.0", tensors, (rescale,), ("x",), ("y",))
    delegate = Delegate("delegate 0", b"", b"", (), (), 1, {"y": tuple(scales)}, parameters)
    found = check_rescales(delegate, graph)
    assert all((item.stage, item.finding) == (Stage.LOWER, Finding.WRONG) for item in found)
    return [item.message for item in found]


@pytest.mark.parametrize(
    ("scale", "bits", "numbers"),
    [
        (1.0, 31, (1 << 30, 30)),
        (0.5, 31, (1 << 30, 31)),
        (0.75, 15, (3 << 13, 15)),
        (0.1, 31, (1717986918, 34)),
        # Rounded up it would have a bit more.
        (1.0 - 2.0**-40, 31, (1 << 30, 30)),
        # Beyond the largest shift bits are lost.
        (2.0**-60, 31, (4, 62)),
        (0.0, 31, (0, 62)),
        (2.0**31, 31, (2**31 - 1, 2)),
    ],
)
def test_the_nearest_multiplier_and_shift(scale: float, bits: int, numbers: tuple[int, int]) -> None:
    assert nearest(Fraction(scale), bits) == numbers


@settings(deadline=None)
@given(st.floats(2.0**-30, 2.0**28), st.sampled_from([15, 31]))
def test_no_other_multiplier_with_any_shift_is_nearer(scale: float, bits: int) -> None:
    multiplier, shift = nearest(Fraction(scale), bits)
    error = abs(Fraction(multiplier, 2**shift) - Fraction(scale))
    for other in range(2, 63):
        candidate = min(round(Fraction(scale) * 2**other), 2**bits - 1)
        assert abs(Fraction(candidate, 2**other) - Fraction(scale)) >= error


def test_the_nearest_numbers_are_right_in_any_form() -> None:
    assert messages([0.1, 3.0, 0.75]) == []
    assert messages([0.1], bits=15) == []
    # 0.75 with other shifts is the same number.
    assert messages([0.75], [(3, 2)]) == []


@pytest.mark.parametrize("change", [1, -1, -(1717986918 & 0xFFFF)])
def test_lost_bits_of_a_multiplier_are_seen(change: int) -> None:
    (message,) = messages([0.1], [(1717986918 + change, 34)])
    assert message == (
        f"delegate 0, RESCALE 'y': multiplier {1717986918 + change} and shift 34 stand for "
        f"{(1717986918 + change) / 2**34:.9g}, the scale is 0.1: 1717986918 and 34 are nearer"
    )


def test_a_wrong_channel_is_named() -> None:
    right = [nearest(Fraction(scale), 31) for scale in (0.1, 0.2, 0.3)]
    (message,) = messages([0.1, 0.2, 0.3], [right[0], (right[1][0], right[1][1] + 1), right[2]])
    assert "channel 1: multiplier" in message
    (message,) = messages([0.1, 0.2, 0.3], right[:2])
    assert message.endswith("2 multipliers, 3 scales")


TENSORS = (0.0225, 0.0071, 0.13)
WEIGHTS = (0.0026, 0.0011, 0.0093)
PARAMETERS = (*((scale,) for scale in TENSORS), WEIGHTS)


@pytest.mark.parametrize(
    "scales",
    [
        [TENSORS[0] / TENSORS[1]],
        # Both operands of a sum are brought to twice the larger scale, 20 bits to the left.
        [TENSORS[0] / (2 * TENSORS[2]) * 2**20],
        [1.0],
        [TENSORS[0] * TENSORS[1] / TENSORS[2]],
        [TENSORS[0] * weight / TENSORS[1] for weight in WEIGHTS],
        # In float32, as the backend computes, and a group of a convolution.
        [float(np.float32(TENSORS[0]) * np.float32(weight) / np.float32(TENSORS[1])) for weight in WEIGHTS],
        [TENSORS[0] * weight / TENSORS[1] for weight in WEIGHTS[1:]],
    ],
)
def test_scales_that_follow_from_the_programs(scales: list[float]) -> None:
    assert messages(scales, parameters=PARAMETERS) == []


@pytest.mark.parametrize(
    "scales",
    [
        [TENSORS[0] / TENSORS[1] * (1 + 2.0**-16)],
        [float(np.float16(TENSORS[0])) / TENSORS[1]],
        [TENSORS[0] * weight / TENSORS[1] for weight in reversed(WEIGHTS)],
        [TENSORS[0] * WEIGHTS[0] / TENSORS[1]] * 3,
    ],
)
def test_scales_that_follow_from_none(scales: list[float]) -> None:
    (message,) = messages(scales, parameters=PARAMETERS)
    assert "follows from none of the quantised program's" in message


def test_behind_a_resize_its_numerators_are_divided_by() -> None:
    tensors = {
        "image": TosaTensor("image", (1,), "int8"),
        "scale": TosaTensor("scale", (4,), "shape", np.array([10, 4, 6, 4])),
        "x": TosaTensor("x", (1,), "int32"),
        "m": TosaTensor("m", (1,), "int32", np.array([0])),
        "y": TosaTensor("y", (1,), "int8"),
    }
    operators = (
        TosaOperator("RESIZE", {}, ("image", "scale"), ("x",)),
        TosaOperator("RESCALE", {"scale32": True}, ("x", "m", "m", "x", "y"), ("y",)),
    )
    graph = TosaGraph("1.0.0", tensors, operators, ("image",), ("y",))
    for scale, unexplained in ((1 / 60, 0), (1 / 36, 1)):
        tensors["m"] = TosaTensor("m", (1,), "int32", np.array([nearest(Fraction(scale), 31)[0]]))
        delegate = Delegate("delegate 0", b"", b"", (), (), 1, {"y": (scale,)}, ((0.1,),))
        found = [item for item in check_rescales(delegate, graph) if "follows from none" in item.message]
        assert len(found) == unexplained


def test_what_follows_from_many_scales_by_chance_is_not_asked() -> None:
    many = tuple((1.0 + number / 100,) for number in range(41))
    assert messages([0.123456789], parameters=many) == []
