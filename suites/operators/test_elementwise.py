"""Arithmetic, element by element.

Covered: broadcasting, ranks 0 to 6, size-1 dimensions and none at all, dense, transposed and channels_last
memory, tensors and scalars, in-place forms, neutral elements; int32 arithmetic with its extremes and its
overflow; in FP every pair of special values (signed zeros, smallest and largest magnitudes, infinities,
NaN), denormals, overflow, and sums and products that lose digits. Domains are drawn inside those of the
functions, away from poles where a quantised result means nothing.
"""

import math

import torch

from vgf_conformance.cases.case import (
    COMBINED,
    EXTENDED,
    FLOATING_ONLY,
    INTEGER,
    INTEGER_ONLY,
    QUANTISED,
    SEPARATE,
    layer,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import booleans, integers, normal, ramp, special_values, uniform, values


class _Scale(torch.nn.Module):
    """A product with a parameter."""

    def __init__(self, factor: torch.Tensor) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(factor)

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        """The product."""
        return tensor * self.factor


add = operator(
    "aten.add.Tensor",
    torch.add,
    [
        sample("same", normal(13, 45), normal(13, 45), configurations=COMBINED),
        sample("broadcast", normal(2, 1, 44), normal(31, 1)),
        sample("transposed", normal(5, 3, transposed=True), normal(5, 3)),
        sample("scaled", normal(3, 5), normal(3, 5), alpha=2),
        sample("rank5", normal(2, 3, 1, 4, 2), normal(1, 3, 2, 4, 1)),
        # A quantised range has to hold zero, wherever the values lie.
        sample(
            "far_from_zero",
            uniform(3, 5, low=3.0, high=4.0),
            uniform(3, 5, low=-4.0, high=-3.0),
            configurations=QUANTISED,
        ),
        sample("int16_activations", normal(3, 5), normal(3, 5), configurations=EXTENDED["a16w8"]),
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
        sample("same", normal(13, 45), normal(13, 45)),
        sample("broadcast", normal(7), normal(2, 3, 7), configurations=FLOATING_ONLY),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
)

mul = operator(
    "aten.mul.Tensor",
    torch.mul,
    [
        sample("same", normal(13, 45), normal(13, 45)),
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
        sample("same", normal(13, 45), uniform(13, 45, low=0.5, high=2.0)),
        sample(
            "broadcast", normal(2, 3, 4), uniform(3, 1, low=-2.0, high=-0.5), configurations=FLOATING_ONLY
        ),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
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
        sample("rank2", ramp(7, 147, low=-3.0, high=2.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
        # In FP as well: TOSA's ABS has no int32 there, and lowering must leave the node to the CPU.
        sample("int32", integers(2, 9, low=-1000, high=1000), configurations=INTEGER),
    ],
)

maximum = operator(
    "aten.maximum.default",
    torch.maximum,
    [
        sample("broadcast", normal(2, 1, 155), normal(103, 1)),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
)

minimum = operator(
    "aten.minimum.default",
    torch.minimum,
    [
        sample("broadcast", normal(2, 1, 155), normal(103, 1)),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
)

add_scalar = operator(
    "aten.add.Scalar",
    torch.ops.aten.add.Scalar,
    [
        sample("rank2", ramp(7, 147, low=-4.0, high=4.0), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

sub_scalar = operator(
    "aten.sub.Scalar",
    torch.ops.aten.sub.Scalar,
    [
        sample("rank2", ramp(7, 147, low=-4.0, high=4.0), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

mul_scalar = operator(
    "aten.mul.Scalar",
    torch.ops.aten.mul.Scalar,
    [
        sample("rank2", ramp(7, 147, low=-4.0, high=4.0), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

div_scalar = operator(
    "aten.div.Scalar",
    torch.ops.aten.div.Scalar,
    [
        sample("rank2", ramp(7, 147, low=-4.0, high=4.0), other=-1.5),
        sample("special", special_values(), other=-1.5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
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

maximum_narrow = narrow(maximum, "broadcast", "special_pairs")

minimum_narrow = narrow(minimum, "broadcast", "special_pairs")

add_scalar_narrow = narrow(add_scalar, "rank2")

# Shapes, layouts and forms.

#: Two operands that broadcast against each other in every way, and in rank 6.
BROADCAST = [
    sample("rank0", normal(), normal(), configurations=FLOATING_ONLY),
    sample("rank1_to_rank3", normal(2, 3, 4), normal(4), configurations=FLOATING_ONLY),
    sample("rank6", normal(1, 2, 1, 3, 2, 2), normal(2, 1, 2, 1, 2, 1)),
    sample("channels_last_and_dense", normal(1, 3, 4, 5, channels_last=True), normal(1, 3, 4, 5)),
    # More elements than 2^16, and none of the counts a power of two.
    sample("long", normal(70001), normal(70001), configurations=FLOATING_ONLY),
]

#: No elements: nothing to compute, and still a tensor of the right shape.
EMPTY = sample("empty", normal(0, 3), normal(0, 3), configurations=FLOATING_ONLY)

add_shapes = operator(
    "aten.add.Tensor", torch.add, [*BROADCAST, EMPTY], tier="nightly", configurations=SEPARATE
)

mul_shapes = operator(
    "aten.mul.Tensor",
    torch.mul,
    [item for item in BROADCAST if item.name in ("rank1_to_rank3", "rank6")],
    tier="nightly",
    configurations=SEPARATE,
)

add_forms = operator(
    "aten.add.Tensor",
    lambda left, right, **options: left.clone().add_(right, **options),
    [
        sample("in_place", normal(3, 5), normal(5)),
        sample(
            "in_place_int32",
            integers(7, low=-1000, high=1000),
            integers(7, low=-1000, high=1000),
            alpha=-3,
            configurations=INTEGER_ONLY,
        ),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

div_forms = operator(
    "aten.div.Tensor",
    lambda left, right: left.clone().div_(right),
    [
        sample("in_place", normal(3, 5), uniform(5, low=0.5, high=2.0)),
        sample("by_a_small_negative_number", normal(2, 20), -0.01),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

rsub_scalar = operator(
    "aten.rsub.Scalar",
    torch.rsub,
    [
        sample("rank2", normal(3, 7), other=1.5),
        sample("scaled", normal(3, 7), other=1.5, alpha=2.0, configurations=FLOATING_ONLY),
        sample("special", special_values(), other=1.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# Two types meet: the wider one is the result's.
add_mixed = operator(
    "aten.add.Tensor",
    torch.add,
    [
        sample("float16_and_float32", normal(2, 3, dtype=torch.float16), normal(2, 3)),
        sample("int32_and_float32", integers(2, 3, low=-9, high=9), normal(2, 3)),
        sample("bool_and_float32", booleans(2, 3), normal(2, 3)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Neutral and absorbing elements, which a compiler may not fold where a NaN or an infinity comes in.

#: What is left of it tells whether the operation was made.
NOT_NUMBERS = values([math.inf, -math.inf, math.nan, 1.0, -0.0, 0.0])

mul_by_number = operator(
    "aten.mul.Tensor",
    lambda x, by: x * by,
    [
        sample("one", NOT_NUMBERS, by=1.0),
        # An infinity times zero is NaN, and so is NaN.
        sample("zero", NOT_NUMBERS, by=0.0),
        sample("minus_one", NOT_NUMBERS, by=-1.0),
        sample("infinity", NOT_NUMBERS, by=math.inf),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# The factor is a parameter of zeros.
mul_by_zeros = layer(
    "aten.mul.Tensor",
    lambda: _Scale(torch.zeros(6)),
    [sample("not_numbers", NOT_NUMBERS)],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Beside another output, so that a delegate exists in which the identity has nothing to compute.
mul_by_one_beside_exp = operator(
    "aten.mul.Tensor",
    lambda x: (x * 1.0, torch.exp(x)),
    [sample("signed_zeros", values([0.0, -0.0, 1.0]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

add_number = operator(
    "aten.add.Tensor",
    lambda x, number: x + number,
    [
        sample("zero", NOT_NUMBERS, number=0.0),
        # -0 + -0 is -0: the only neutral element.
        sample("minus_zero", NOT_NUMBERS, number=-0.0),
        sample("infinity", NOT_NUMBERS, number=math.inf),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

add_zero_beside_exp = operator(
    "aten.add.Tensor",
    lambda x: (x + 0.0, torch.exp(x)),
    [sample("signed_zeros", values([0.0, -0.0, 1.0]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

sub_number = operator(
    "aten.sub.Tensor",
    lambda x, number: x - number,
    [sample("zero", NOT_NUMBERS, number=0.0), sample("infinity", NOT_NUMBERS, number=math.inf)],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

sub_zero_beside_exp = operator(
    "aten.sub.Tensor",
    lambda x: (x - 0.0, torch.exp(x)),
    [sample("signed_zeros", values([0.0, -0.0, 1.0]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# x - x is 0 for numbers alone.
sub_itself = operator(
    "aten.sub.Tensor",
    lambda x: x - x,
    [sample("not_numbers", NOT_NUMBERS), sample("rank2", normal(3, 5))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

div_by_number = operator(
    "aten.div.Tensor",
    lambda x, number: x / number,
    [
        sample("one", NOT_NUMBERS, number=1.0),
        # By the sign of the dividend, and NaN for 0 / 0.
        sample("zero", NOT_NUMBERS, number=0.0),
        sample("infinity", NOT_NUMBERS, number=math.inf),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

div_by_one_beside_exp = operator(
    "aten.div.Tensor",
    lambda x: (x / 1.0, torch.exp(x)),
    [sample("signed_zeros", values([0.0, -0.0, 1.0]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Values where digits or ranges end.

#: The smallest normal number and its neighbour below, a subnormal in the middle, and the smallest; then
#: ordinary numbers: where a device may flush, faults do not show.
DENORMALS = values(
    [
        2**-126,
        2**-126 - 2**-149,
        1e-40,
        2**-149,
        -1e-40,
        -(2**-149),
        *[0.5, -0.75, 1.5, -2.0, 0.3, 3.0, -1.25, 4.0],
    ]
)

add_values = operator(
    "aten.add.Tensor",
    torch.add,
    [
        sample("denormals", DENORMALS, DENORMALS),
        # Past the largest number, and to within half a step of it, which rounds back.
        sample(
            "overflow",
            values([3.4028234663852886e38, -3.4028234663852886e38, 3.4028234663852886e38]),
            values([3.4028234663852886e38, -3.4028234663852886e38, 1e31]),
        ),
        # Ties to even at 2^24, where the step is 2; a sum that cancels to the last digit.
        sample("ties", values([2.0**24, 2.0**24 + 2, 1.0, -1.0]), values([1.0, 1.0, -(1.0 - 2**-24), 1.0])),
        sample("near_zero", normal(3, 5, scale=1e-30), normal(3, 5, scale=1e-30)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

mul_values = operator(
    "aten.mul.Tensor",
    torch.mul,
    [
        sample("denormals", DENORMALS, values([1.0, 2.0, 1.0, 1.0, -1.0, 0.5, *[1.0, 3.0] * 4])),
        # Results below the smallest normal number, and below half of the smallest subnormal one.
        sample("underflow", values([1e-20, 1e-25, -1e-30]), values([1e-20, 1e-20, 1e-30])),
        sample("overflow", values([1e20, -1e20, 2.0]), values([1e20, 1e20, 3e38])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

div_values = operator(
    "aten.div.Tensor",
    torch.div,
    [
        # 1 over a subnormal overflows before the product with the dividend makes it small again.
        sample("denormals", values([1e-40, 1e-39, 1.0]), values([1e-40, -1e-39, 1e-40])),
        # The reciprocal of the divisor is a subnormal.
        sample("large", values([1e38, -3e38, 2e38]), values([2e38, 3e38, 3e38])),
        # Quotients that are whole, and exact in any correct division.
        sample("whole", values([6.0, 49.0, -35.0, 100.0]), values([3.0, 7.0, 5.0, -10.0])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

maximum_values = operator(
    "aten.maximum.default",
    torch.maximum,
    [
        sample("denormals", DENORMALS, values([0.0, 0.0, 2e-40, -0.0, 0.0, 0.0, *[1.0, -3.0] * 4])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

neg_values = operator(
    "aten.neg.default",
    torch.neg,
    [sample("denormals", DENORMALS)],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

abs_values = operator(
    "aten.abs.default",
    torch.abs,
    [sample("denormals", DENORMALS)],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Products past float16's 65504 and below its smallest subnormal, 6e-8.
mul_float16 = operator(
    "aten.mul.Tensor",
    lambda x: x * x,
    [sample("overflow_and_underflow", values([300.0, 200.0, 255.9, 1e-7, -1e-4], dtype=torch.float16))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Integers.

LARGEST, SMALLEST = 2**31 - 1, -(2**31)

#: Both ends of int32 with what takes them past it, and across the middle.
ENDS = values([LARGEST, SMALLEST, LARGEST, SMALLEST, 0, -1, 7, 100000], dtype=torch.int32)
STEPS = values([1, -1, LARGEST, SMALLEST, SMALLEST, LARGEST, -7, 100000], dtype=torch.int32)

add_int32 = operator(
    "aten.add.Tensor",
    torch.add,
    [
        # Eager wraps.
        sample("extremes", ENDS, STEPS),
        sample("number", ENDS, other=3),
    ],
    tier="nightly",
    configurations=INTEGER[:2],
)

sub_int32 = operator(
    "aten.sub.Tensor",
    torch.sub,
    [
        sample("extremes", ENDS, STEPS),
    ],
    tier="nightly",
    configurations=INTEGER[:2],
)

mul_int32 = operator(
    "aten.mul.Tensor",
    torch.mul,
    [
        sample("extremes", ENDS, STEPS),
        # 2^62 and its like: the low 32 bits of a product of 64.
        sample(
            "overflow",
            values([2**31 - 1, 65536, 46341], dtype=torch.int32),
            values([2, 65536, 46341], dtype=torch.int32),
        ),
    ],
    tier="nightly",
    configurations=INTEGER[:2],
)

neg_int32 = operator(
    "aten.neg.default", torch.neg, [sample("extremes", ENDS)], tier="nightly", configurations=INTEGER[:2]
)

abs_int32 = operator(
    "aten.abs.default", torch.abs, [sample("extremes", ENDS)], tier="nightly", configurations=INTEGER[:2]
)

maximum_int32 = operator(
    "aten.maximum.default",
    torch.maximum,
    [sample("extremes", ENDS, STEPS)],
    tier="nightly",
    configurations=INTEGER[:2],
)

# Both halves of the division are cast: the quotient is a float.
div_true_int32 = operator(
    "aten.div.Tensor",
    torch.div,
    [sample("signs", values([7, -7, 1, 0], dtype=torch.int32), values([2, 2, 3, 5], dtype=torch.int32))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# TOSA has no arithmetic of int8 and int16: exact, or left to the CPU.

#: Sums, differences and products within the type and past it.
INT8 = [values([5, 6, 127, -128, -1], dtype=torch.int8), values([1, -1, 1, -1, -128], dtype=torch.int8)]
INT16 = [values([5, 6, 32767, -32768], dtype=torch.int16), values([1, -1, 1, -1], dtype=torch.int16)]
NARROW_INTEGERS = [sample("int8", *INT8), sample("int16", *INT16)]

add_narrow_integers = operator(
    "aten.add.Tensor", torch.add, NARROW_INTEGERS, tier="nightly", configurations=INTEGER[:2], delegated=False
)

mul_narrow_integers = operator(
    "aten.mul.Tensor", torch.mul, NARROW_INTEGERS, tier="nightly", configurations=INTEGER[:2], delegated=False
)

maximum_narrow_integers = operator(
    "aten.maximum.default",
    torch.maximum,
    NARROW_INTEGERS,
    tier="nightly",
    configurations=INTEGER_ONLY[:1],
    delegated=False,
)

abs_narrow_integers = operator(
    "aten.abs.default",
    torch.abs,
    [sample("int8", INT8[0]), sample("int16", INT16[0])],
    tier="nightly",
    configurations=INTEGER_ONLY[:1],
    delegated=False,
)

neg_narrow_integers = operator(
    "aten.neg.default",
    torch.neg,
    [sample("int8", INT8[0]), sample("int16", INT16[0])],
    tier="nightly",
    configurations=INTEGER_ONLY[:1],
)

# Shifts of int8 and of the sign bit.

bitwise_left_shift_int8 = operator(
    "aten.bitwise_left_shift.Tensor",
    torch.bitwise_left_shift,
    [sample("int8", values([1, -1, 100], dtype=torch.int8), values([7, 3, 1], dtype=torch.int8))],
    tier="nightly",
    configurations=INTEGER_ONLY[:1],
)

bitwise_right_shift_int8 = operator(
    "aten.bitwise_right_shift.Tensor",
    torch.bitwise_right_shift,
    [sample("int8", values([1, -1, 100], dtype=torch.int8), values([7, 3, 1], dtype=torch.int8))],
    tier="nightly",
    configurations=INTEGER_ONLY[:1],
)

bitwise_left_shift_scalar_int8 = operator(
    "aten.__lshift__.Scalar",
    lambda x: x << 2,
    [sample("int8", values([1, -1, 100], dtype=torch.int8))],
    tier="nightly",
    configurations=INTEGER_ONLY[:1],
)

bitwise_right_shift_scalar_int8 = operator(
    "aten.__rshift__.Scalar",
    lambda x: x >> 2,
    [sample("int8", values([1, -1, 100], dtype=torch.int8))],
    tier="nightly",
    configurations=INTEGER_ONLY[:1],
)

# int16 activations: the operators that are documented for them.

add_a16w8 = quantised(add, "a16w8", "same", "broadcast")
sub_a16w8 = quantised(sub, "a16w8", "same")
mul_a16w8 = quantised(mul, "a16w8", "same")
neg_a16w8 = quantised(neg, "a16w8", "rank3")
maximum_a16w8 = quantised(maximum, "a16w8", "broadcast")
minimum_a16w8 = quantised(minimum, "a16w8", "broadcast")
