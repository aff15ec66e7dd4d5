"""Arithmetic and mathematical functions, element by element.

Covered: broadcasting, ranks 0 to 5, dense and transposed memory, int32 arithmetic, and in FP every
pair of special values (signed zeros, smallest and largest magnitudes, infinities, NaN). Domains
are drawn inside those of the functions, away from poles where a quantised result means nothing.
"""

import torch

from vgf_conformance.cases.case import (
    COMBINED,
    FLOATING_ONLY,
    INTEGER,
    INTEGER_ONLY,
    narrow,
    operator,
    sample,
)
from vgf_conformance.cases.inputs import integers, normal, special_values, uniform, values

add = operator(
    "aten.add.Tensor",
    torch.add,
    [
        sample("same", normal(3, 5), normal(3, 5), configurations=COMBINED),
        sample("broadcast", normal(2, 1, 4), normal(3, 1)),
        sample("transposed", normal(5, 3, transposed=True), normal(5, 3)),
        sample("scaled", normal(3, 5), normal(3, 5), alpha=2),
        sample("rank5", normal(2, 3, 1, 4, 2), normal(1, 3, 2, 4, 1)),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
        sample(
            "int32",
            integers(4, 6, low=-1000, high=1000),
            integers(4, 6, low=-1000, high=1000),
            configurations=INTEGER,
        ),
    ],
)

sub = operator(
    "aten.sub.Tensor",
    torch.sub,
    [
        sample("same", normal(3, 5), normal(3, 5)),
        sample("broadcast", normal(7), normal(2, 3, 7), configurations=FLOATING_ONLY),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
)

mul = operator(
    "aten.mul.Tensor",
    torch.mul,
    [
        sample("same", normal(3, 5), normal(3, 5)),
        sample("broadcast", normal(2, 3, 1, 1), normal(3, 4, 5), configurations=FLOATING_ONLY),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
        # Products stay inside 31 bits; what overflow means is not a smoke question.
        sample(
            "int32",
            integers(9, low=-1000, high=1000),
            integers(9, low=-1000, high=1000),
            configurations=INTEGER,
        ),
    ],
)

div = operator(
    "aten.div.Tensor",
    torch.div,
    [
        sample("same", normal(3, 5), uniform(3, 5, low=0.5, high=2.0)),
        sample(
            "broadcast", normal(2, 3, 4), uniform(3, 1, low=-2.0, high=-0.5), configurations=FLOATING_ONLY
        ),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
)

div_floor = operator(
    "aten.div.Tensor_mode",
    torch.div,
    # Quotients of both signs: floor and truncation differ below zero.
    [sample("signs", normal(2, 6, scale=4.0), uniform(6, low=0.5, high=2.0), rounding_mode="floor")],
    # A quantised quotient near an integer falls to either side.
    configurations=FLOATING_ONLY,
)

neg = operator(
    "aten.neg.default",
    torch.neg,
    [
        sample("rank3", normal(2, 3, 5)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

abs = operator(
    "aten.abs.default",
    torch.abs,
    [
        sample("rank2", normal(3, 7)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
        # In FP as well: TOSA's ABS has no int32 there, and lowering must leave the node to the CPU.
        sample("int32", integers(2, 9, low=-1000, high=1000), configurations=INTEGER),
    ],
)

pow_scalar = operator(
    "aten.pow.Tensor_Scalar",
    torch.pow,
    [
        sample("square", normal(3, 5), exponent=2),
        sample("fractional", uniform(3, 5, low=0.1, high=2.0), exponent=1.5),
    ],
)

pow_tensor = operator(
    "aten.pow.Tensor_Tensor",
    torch.pow,
    [sample("broadcast", uniform(2, 5, low=0.5, high=2.0), normal(5))],
    # The quantizer does not mark it, so that in INT it stays on the CPU.
    configurations=FLOATING_ONLY,
)

sqrt = operator(
    "aten.sqrt.default",
    torch.sqrt,
    [
        sample("rank4", uniform(1, 2, 3, 4, low=0.01, high=4.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

rsqrt = operator(
    "aten.rsqrt.default",
    torch.rsqrt,
    [
        sample("rank2", uniform(3, 7, low=0.25, high=4.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

reciprocal = operator(
    "aten.reciprocal.default",
    torch.reciprocal,
    [
        sample("rank2", uniform(3, 7, low=0.25, high=4.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

exp = operator(
    "aten.exp.default",
    torch.exp,
    [
        sample("rank1", normal(17)),
        sample("rank0", normal(), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

log = operator(
    "aten.log.default",
    torch.log,
    [
        sample("rank2", uniform(3, 7, low=0.1, high=10.0)),
        # Around 1, where the result is small and its relative error is not bounded.
        sample("near_one", uniform(3, 7, low=0.99, high=1.01), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

maximum = operator(
    "aten.maximum.default",
    torch.maximum,
    [
        sample("broadcast", normal(2, 1, 5), normal(3, 1)),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
)

minimum = operator(
    "aten.minimum.default",
    torch.minimum,
    [
        sample("broadcast", normal(2, 1, 5), normal(3, 1)),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
)

floor = operator("aten.floor.default", torch.floor, [sample("rank2", normal(3, 7, scale=4.0))])

ceil = operator("aten.ceil.default", torch.ceil, [sample("rank2", normal(3, 7, scale=4.0))])

round = operator(
    "aten.round.default",
    torch.round,
    [
        sample("rank2", normal(3, 7, scale=4.0)),
        # Halves go to the even neighbour.
        sample("halves", values([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]), configurations=FLOATING_ONLY),
    ],
)

sign = operator("aten.sign.default", torch.sign, [sample("mixed", values([-2.0, -0.5, 0.0, 0.5, 3.0]))])

sin = operator("aten.sin.default", torch.sin, [sample("two_turns", uniform(3, 7, low=-6.3, high=6.3))])

cos = operator("aten.cos.default", torch.cos, [sample("two_turns", uniform(3, 7, low=-6.3, high=6.3))])

erf = operator("aten.erf.default", torch.erf, [sample("rank2", normal(3, 7))])

remainder = operator(
    "aten.remainder.Tensor",
    torch.remainder,
    # Divisors of both signs: the remainder takes theirs.
    [sample("signs", normal(2, 6, scale=4.0), values([1.5, -1.5, 2.0, -2.0, 3.0, -3.0]))],
    # A quantised remainder jumps by a whole divisor where the quotient is near an integer.
    configurations=FLOATING_ONLY,
)

tan = operator(
    "aten.tan.default",
    torch.tan,
    [
        sample("one_branch", uniform(3, 7, low=-1.2, high=1.2)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

asin = operator(
    "aten.asin.default",
    torch.asin,
    [
        sample("inside", uniform(3, 7, low=-0.95, high=0.95)),
        sample("ends", values([-1.0, -0.5, 0.0, 0.5, 1.0]), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

acos = operator(
    "aten.acos.default",
    torch.acos,
    [
        sample("inside", uniform(3, 7, low=-0.95, high=0.95)),
        sample("ends", values([-1.0, -0.5, 0.0, 0.5, 1.0]), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

atan = operator(
    "aten.atan.default",
    torch.atan,
    [
        sample("rank2", normal(3, 7, scale=3.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

sinh = operator(
    "aten.sinh.default",
    torch.sinh,
    [
        sample("rank2", normal(3, 7)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

cosh = operator(
    "aten.cosh.default",
    torch.cosh,
    [
        sample("rank2", normal(3, 7)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

asinh = operator(
    "aten.asinh.default",
    torch.asinh,
    [
        sample("rank2", normal(3, 7, scale=3.0)),
        # Far below zero x + sqrt(x^2 + 1) loses all its digits.
        sample("far", normal(3, 7, scale=1000.0), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

acosh = operator(
    "aten.acosh.default",
    torch.acosh,
    [
        sample("above_one", uniform(3, 7, low=1.1, high=5.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

atanh = operator(
    "aten.atanh.default",
    torch.atanh,
    [
        sample("inside", uniform(3, 7, low=-0.9, high=0.9)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

erfinv = operator(
    "aten.erfinv.default",
    torch.erfinv,
    [
        sample("inside", uniform(3, 7, low=-0.9, high=0.9)),
        # Both tails, where another polynomial takes over.
        sample("tails", uniform(3, 7, low=0.95, high=0.9999), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

expm1 = operator(
    "aten.expm1.default",
    torch.expm1,
    [
        sample("rank2", normal(3, 7)),
        # exp(x) - 1 would lose most of the digits here.
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

log1p = operator(
    "aten.log1p.default",
    torch.log1p,
    [
        sample("rank2", uniform(3, 7, low=-0.5, high=5.0)),
        # log(1 + x) would lose most of the digits here.
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

log10 = operator(
    "aten.log10.default",
    torch.log10,
    [sample("rank2", uniform(3, 7, low=0.1, high=10.0))],
    tier="nightly",
    # The backend has it as a table only: FP leaves it to the CPU.
    configurations=(("INT", "a8w8-pc"), ("FP+INT", "a8w8-pc")),
)

logit = operator(
    "aten.logit.default",
    torch.logit,
    [
        sample("inside", uniform(3, 7, low=0.1, high=0.9)),
        sample("clamped", uniform(3, 7), eps=0.1, configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

add_scalar = operator(
    "aten.add.Scalar",
    torch.ops.aten.add.Scalar,
    [
        sample("rank2", normal(3, 7), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

sub_scalar = operator(
    "aten.sub.Scalar",
    torch.ops.aten.sub.Scalar,
    [
        sample("rank2", normal(3, 7), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

mul_scalar = operator(
    "aten.mul.Scalar",
    torch.ops.aten.mul.Scalar,
    [
        sample("rank2", normal(3, 7), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

div_scalar = operator(
    "aten.div.Scalar",
    torch.ops.aten.div.Scalar,
    [
        sample("rank2", normal(3, 7), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
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

# The quantizer does not mark it, and what stays in float is not for the INT profile.
pow_tensor_quantised = operator(
    "aten.pow.Tensor_Tensor",
    torch.pow,
    [sample("broadcast", uniform(2, 5, low=0.5, high=2.0), normal(5))],
    tier="nightly",
    configurations=(("INT", "a8w8-pc"),),
    delegated=False,
)

#: Shifted so that bits leave at either end, and not at all.
SHIFTED = values([1, -1, 1000, -1000, 2**31 - 1, -(2**31), 5], dtype=torch.int32)
SHIFTS = values([31, 31, 3, 3, 1, 1, 0], dtype=torch.int32)

bitwise_left_shift = operator(
    "aten.bitwise_left_shift.Tensor",
    torch.bitwise_left_shift,
    [sample("int32", SHIFTED, SHIFTS)],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_right_shift = operator(
    "aten.bitwise_right_shift.Tensor",
    torch.bitwise_right_shift,
    # The sign comes in from the left.
    [sample("int32", SHIFTED, SHIFTS)],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_left_shift_scalar = operator(
    "aten.__lshift__.Scalar",
    lambda tensor, by: tensor << by,
    [sample("int32", SHIFTED, by=3)],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_right_shift_scalar = operator(
    "aten.__rshift__.Scalar",
    lambda tensor, by: tensor >> by,
    [sample("int32", SHIFTED, by=3)],
    tier="nightly",
    configurations=INTEGER,
)

# The operators that are documented for float16 and bfloat16.

add_narrow = narrow(add, "same", "special_pairs")
sub_narrow = narrow(sub, "same", "special_pairs")
mul_narrow = narrow(mul, "same", "special_pairs")
abs_narrow = narrow(abs, "rank2", "special")
pow_scalar_narrow = narrow(pow_scalar, "square", "fractional")
pow_tensor_narrow = narrow(pow_tensor, "broadcast")
reciprocal_narrow = narrow(reciprocal, "rank2", "special")
exp_narrow = narrow(exp, "rank1", "special")
log_narrow = narrow(log, "rank2", "special")
maximum_narrow = narrow(maximum, "broadcast", "special_pairs")
minimum_narrow = narrow(minimum, "broadcast", "special_pairs")
floor_narrow = narrow(floor, "rank2")
ceil_narrow = narrow(ceil, "rank2")
round_narrow = narrow(round, "rank2")
sin_narrow = narrow(sin, "two_turns")
cos_narrow = narrow(cos, "two_turns")
erf_narrow = narrow(erf, "rank2")
erfinv_narrow = narrow(erfinv, "inside")
add_scalar_narrow = narrow(add_scalar, "rank2")
