"""Rounding to whole numbers, and divisions that round: floor and truncated quotients, remainders.

Covered: ties of both signs, numbers that are whole already, the neighbours of a half and of 2^23, signed
zeros, infinities and NaN; quotients and divisors of both signs, int32 extremes, floating-point divisions
whose quotient is whole.
"""

import math

import torch

from vgf_conformance.cases.case import (
    FLOATING_ONLY,
    INTEGER,
    INTEGER_ONLY,
    QUANTISED,
    narrow,
    operator,
    sample,
)
from vgf_conformance.cases.inputs import normal, ramp, special_values, uniform, values

div_floor = operator(
    "aten.div.Tensor_mode",
    torch.div,
    # Quotients of both signs: floor and truncation differ below zero.
    [sample("signs", normal(2, 6, scale=4.0), uniform(6, low=0.5, high=2.0), rounding_mode="floor")],
    # A quantised quotient near an integer falls to either side.
    configurations=FLOATING_ONLY,
)

floor = operator("aten.floor.default", torch.floor, [sample("rank2", ramp(7, 147, low=-9.0, high=9.0))])

ceil = operator("aten.ceil.default", torch.ceil, [sample("rank2", ramp(7, 147, low=-9.0, high=9.0))])

round = operator(
    "aten.round.default",
    torch.round,
    [
        sample("rank2", normal(3, 7, scale=4.0), configurations=FLOATING_ONLY),
        sample("every_code", ramp(7, 147, low=-9.0, high=9.0), configurations=QUANTISED),
        # Halves go to the even neighbour.
        sample("halves", values([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]), configurations=FLOATING_ONLY),
    ],
)

sign = operator("aten.sign.default", torch.sign, [sample("mixed", values([-2.0, -0.5, 0.0, 0.5, 3.0]))])

remainder = operator(
    "aten.remainder.Tensor",
    torch.remainder,
    # Divisors of both signs: the remainder takes theirs.
    [sample("signs", normal(2, 6, scale=4.0), values([1.5, -1.5, 2.0, -2.0, 3.0, -3.0]))],
    # A quantised remainder jumps by a whole divisor where the quotient is near an integer.
    configurations=FLOATING_ONLY,
)

remainder_scalar = operator(
    "aten.remainder.Scalar",
    torch.remainder,
    [
        sample("positive", normal(2, 6, scale=4.0), other=1.5),
        sample("negative", normal(2, 6, scale=4.0), other=-1.5),
    ],
    tier="nightly",
    # As for two tensors.
    configurations=FLOATING_ONLY,
)

floor_divide = operator(
    "aten.floor_divide.default",
    torch.floor_divide,
    [sample("signs", normal(2, 6, scale=4.0), uniform(6, low=0.5, high=2.0))],
    tier="nightly",
    # As div_floor.
    configurations=FLOATING_ONLY,
)

#: Dividends and divisors of both signs, with and without a remainder.
DIVIDENDS = values([7, 7, -7, -7, 6, -6, 0, 1000000], dtype=torch.int32)

DIVISORS = values([2, -2, 2, -2, 3, 3, 5, 7], dtype=torch.int32)

div_int32 = operator(
    "aten.div.Tensor_mode",
    torch.div,
    [
        sample("floor", DIVIDENDS, DIVISORS, rounding_mode="floor"),
        sample("trunc", DIVIDENDS, DIVISORS, rounding_mode="trunc"),
    ],
    tier="nightly",
    configurations=INTEGER_ONLY,
)

remainder_int32 = operator(
    "aten.remainder.Tensor",
    torch.remainder,
    [sample("signs", DIVIDENDS, DIVISORS)],
    tier="nightly",
    configurations=INTEGER_ONLY,
)

remainder_scalar_int32 = operator(
    "aten.remainder.Scalar",
    torch.remainder,
    [
        sample("positive", DIVIDENDS, other=3),
        sample("negative", DIVIDENDS, other=-3),
    ],
    tier="nightly",
    configurations=INTEGER_ONLY,
)

# The operators that are documented for float16 and bfloat16.

floor_narrow = narrow(floor, "rank2")
ceil_narrow = narrow(ceil, "rank2")
round_narrow = narrow(round, "rank2")

# Ties, whole numbers, and the neighbours of a half and of 2^23, from where on there are no fractions.

#: 0.49999997 is the largest number below a half: adding a half rounds it up to 1.
FRACTIONS = [
    sample("special", special_values()),
    sample("ties", values([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5, -3.5])),
    sample("below_half", values([0.49999997, -0.49999997, 0.50000006, -0.50000006])),
    sample("whole", values([-3.0, -1.0, 0.0, -0.0, 1.0, 2.0, 1000.0])),
    sample("large", values([4194303.5, 8388607.5, 8388608.0, 8388609.0, -8388609.0, 1e10])),
    sample("tiny", values([1e-30, -1e-30, 1e-40, -1e-40])),
]

round_values = operator(
    "aten.round.default", torch.round, FRACTIONS, tier="nightly", configurations=FLOATING_ONLY
)

floor_values = operator(
    "aten.floor.default", torch.floor, FRACTIONS, tier="nightly", configurations=FLOATING_ONLY
)

ceil_values = operator(
    "aten.ceil.default", torch.ceil, FRACTIONS, tier="nightly", configurations=FLOATING_ONLY
)


round_quantised = operator(
    "aten.round.default",
    torch.round,
    # The scale of the calibrated range is 1/16: halves lie on the int8 grid, and are ties there too.
    [sample("ties", values([-8.0, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 7.9375]))],
    tier="nightly",
    configurations=QUANTISED,
    # The last bit of the scale decides where a tie falls, and eager has no scale.
    budget=None,
)

sign_values = operator(
    "aten.sign.default",
    torch.sign,
    [
        sample("special", special_values()),
        # Ordinary numbers follow: where a device may flush, faults do not show.
        sample("denormals", values([1e-40, -1e-40, 2**-149, -(2**-149), *[0.5, -0.75, 1.5, -2.0, 0.3, 3.0]])),
        sample("rank6", normal(1, 2, 1, 3, 2, 2)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Divisions that round.

#: Both signs, a zero, whole quotients, and what has no quotient.
QUOTIENTS = [
    sample("signs", values([5.0, -5.0, 5.0, -5.0, -0.0]), values([3.0, 3.0, -3.0, -3.0, 3.0])),
    # The quotient is whole, and a reciprocal that is rounded down makes it one less: 6 * (1 / 3).
    sample("whole", values([6.0, 9.0, -21.0, 49.0, 35.0]), values([3.0, 3.0, 7.0, 49.0, 5.0])),
    sample("by_zero", values([5.5, -5.5, 0.0]), values([0.0, 0.0, 0.0])),
    sample("infinities", values([7.0, -7.0, math.inf, math.nan]), values([math.inf, math.inf, 2.0, 2.0])),
]

remainder_values = operator(
    "aten.remainder.Tensor", torch.remainder, QUOTIENTS, tier="nightly", configurations=FLOATING_ONLY
)

floor_divide_values = operator(
    "aten.floor_divide.default",
    torch.floor_divide,
    QUOTIENTS,
    tier="nightly",
    configurations=FLOATING_ONLY,
)

div_trunc_values = operator(
    "aten.div.Tensor_mode",
    lambda left, right: torch.div(left, right, rounding_mode="trunc"),
    QUOTIENTS,
    tier="nightly",
    configurations=FLOATING_ONLY,
)

div_by_number = operator(
    "aten.div.Tensor_mode",
    torch.div,
    [
        sample("floor", normal(2, 20), other=0.7, rounding_mode="floor"),
        sample("trunc", normal(2, 20), other=0.7, rounding_mode="trunc"),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# A quantised quotient near an integer falls to either side, so that quotients are halves here.
div_mode_quantised = operator(
    "aten.div.Tensor_mode",
    torch.div,
    [
        sample("floor", values([-3.0, -1.0, 1.0, 3.0, 5.0, 7.0]), values([2.0]), rounding_mode="floor"),
        sample("trunc", values([-3.0, -1.0, 1.0, 3.0, 5.0, 7.0]), values([2.0]), rounding_mode="trunc"),
    ],
    tier="nightly",
    configurations=QUANTISED,
)

remainder_quantised = operator(
    "aten.remainder.Tensor",
    torch.remainder,
    [sample("signs", values([-3.0, -1.0, 1.0, 3.0, 5.0, 7.0]), values([2.0]))],
    tier="nightly",
    configurations=QUANTISED,
)

remainder_scalar_quantised = operator(
    "aten.remainder.Scalar",
    torch.remainder,
    [sample("signs", values([-3.0, -1.0, 1.0, 3.0, 5.0, 7.0]), other=2.0)],
    tier="nightly",
    configurations=QUANTISED,
)

#: Both ends of int32, with every sign of the other; no -2^31 / -1, which has no quotient.
LARGE_DIVIDENDS = values([2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 16777217], dtype=torch.int32)
LARGE_DIVISORS = values([-3, 5, 2**31 - 1, 2, 2], dtype=torch.int32)

div_int32_extremes = operator(
    "aten.div.Tensor_mode",
    torch.div,
    [
        sample("floor", LARGE_DIVIDENDS, LARGE_DIVISORS, rounding_mode="floor"),
        sample("trunc", LARGE_DIVIDENDS, LARGE_DIVISORS, rounding_mode="trunc"),
    ],
    tier="nightly",
    configurations=INTEGER,
)

floor_divide_int32 = operator(
    "aten.floor_divide.default",
    torch.floor_divide,
    [sample("signs", DIVIDENDS, DIVISORS), sample("extremes", LARGE_DIVIDENDS, LARGE_DIVISORS)],
    tier="nightly",
    configurations=INTEGER,
)

remainder_int32_extremes = operator(
    "aten.remainder.Tensor",
    torch.remainder,
    [sample("signs", LARGE_DIVIDENDS, LARGE_DIVISORS)],
    tier="nightly",
    configurations=INTEGER_ONLY,
)
