"""Comparison, logic, selection by a mask, and bitwise operators: the answers are exact.

Covered: broadcasting on both sides and across ranks, ranks 0 to 6, equal values among the compared,
int32 operands and their extremes, int8 and int16 where TOSA has them, booleans as inputs and as
outputs, NaN, infinities, denormals and neighbouring numbers in FP, float16, bfloat16 and a16w8. A
quantised comparison answers for the quantised values: the operands lie on a grid of quarters, so
that equal stays equal.
"""

import math

import torch

from vgf_conformance.cases.case import (
    FLOATING,
    FLOATING_ONLY,
    INTEGER,
    INTEGER_ONLY,
    QUANTISED,
    SEPARATE,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import booleans, integers, normal, special_values, values

#: Below, at and above each other; both span the same range and so are given one scale.
LEFT = values([-2.0, -0.5, 0.0, 0.25, 1.0, 2.0])
RIGHT = values([2.0, -0.5, 0.25, 0.0, 1.0, -2.0])
#: All within two codes of int8 of each other, on either side, so that each rounding tells.
CLOSE = sample(
    "close",
    values([3.0 * math.sin(number) for number in range(1029)], 7, 147),
    values([3.0 * math.sin(number) + 0.05 * math.sin(7 * number) for number in range(1029)], 7, 147),
    configurations=QUANTISED,
)
SMALL = integers(4, 6, low=-3, high=4)

eq = operator(
    "aten.eq.Tensor",
    torch.eq,
    [
        sample("some_equal", LEFT, RIGHT),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
        sample("int32", SMALL, integers(6, low=-3, high=4), configurations=INTEGER_ONLY),
    ],
    budget=None,
)

ne = operator("aten.ne.Tensor", torch.ne, [sample("some_equal", LEFT, RIGHT)], budget=None)

# The backend has no NOT_EQUAL for integers: the node stays on the CPU, in every profile.
ne_int32 = operator(
    "aten.ne.Tensor",
    torch.ne,
    [sample("some_equal", SMALL, integers(6, low=-3, high=4))],
    configurations=(("FP+INT", "none"),),
    delegated=False,
    budget=None,
)

gt = operator(
    "aten.gt.Tensor",
    torch.gt,
    [
        sample("some_equal", LEFT, RIGHT),
        sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    ],
    budget=None,
)

gt_scalar = operator("aten.gt.Scalar", torch.gt, [sample("zero", LEFT, other=0.0)], budget=None)

ge = operator("aten.ge.Tensor", torch.ge, [sample("some_equal", LEFT, RIGHT), CLOSE], budget=None)

lt = operator("aten.lt.Tensor", torch.lt, [sample("some_equal", LEFT, RIGHT), CLOSE], budget=None)

le = operator("aten.le.Tensor", torch.le, [sample("some_equal", LEFT, RIGHT)], budget=None)

logical_and = operator(
    "aten.logical_and.default",
    torch.logical_and,
    [
        sample("broadcast", booleans(3, 6), booleans(3, 1)),
        # One operand has fewer dimensions: lowering must give it the missing ones.
        sample("broadcast_rank", booleans(3, 6), booleans(6), configurations=INTEGER_ONLY),
    ],
    configurations=INTEGER,
)

logical_or = operator(
    "aten.logical_or.default",
    torch.logical_or,
    [sample("broadcast", booleans(3, 6), booleans(3, 1))],
    configurations=INTEGER,
)

logical_xor = operator(
    "aten.logical_xor.default",
    torch.logical_xor,
    [sample("broadcast", booleans(3, 6), booleans(3, 1))],
    configurations=INTEGER,
)

logical_not = operator(
    "aten.logical_not.default", torch.logical_not, [sample("rank2", booleans(3, 6))], configurations=INTEGER
)

bitwise_and = operator(
    "aten.bitwise_and.Tensor",
    torch.bitwise_and,
    [sample("int32", integers(9, low=-1000, high=1000), integers(9, low=-1000, high=1000))],
    configurations=INTEGER_ONLY,
)

bitwise_or = operator(
    "aten.bitwise_or.Tensor",
    torch.bitwise_or,
    [sample("int32", integers(9, low=-1000, high=1000), integers(9, low=-1000, high=1000))],
    configurations=INTEGER_ONLY,
)

bitwise_xor = operator(
    "aten.bitwise_xor.Tensor",
    torch.bitwise_xor,
    [sample("int32", integers(9, low=-1000, high=1000), integers(9, low=-1000, high=1000))],
    configurations=INTEGER_ONLY,
)

bitwise_not = operator(
    "aten.bitwise_not.default",
    torch.bitwise_not,
    [sample("int32", integers(9, low=-1000, high=1000))],
    configurations=INTEGER_ONLY,
)

where = operator(
    "aten.where.self",
    torch.where,
    [
        sample("broadcast_mask", booleans(3, 1), normal(3, 5), normal(3, 5)),
        sample("special", booleans(11), special_values(), normal(11), configurations=FLOATING_ONLY),
    ],
    configurations=FLOATING,
)

masked_fill = operator(
    "aten.masked_fill.Scalar",
    torch.masked_fill,
    [sample("by_input", normal(3, 5), booleans(3, 5), value=-1.0)],
)

eq_scalar = operator(
    "aten.eq.Scalar",
    torch.eq,
    [
        sample("quarter", LEFT, other=0.25),
        sample("special", special_values(), other=1.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    budget=None,
)

ne_scalar = operator(
    "aten.ne.Scalar",
    torch.ne,
    [
        sample("quarter", LEFT, other=0.25),
        sample("special", special_values(), other=1.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    budget=None,
)

ge_scalar = operator(
    "aten.ge.Scalar",
    torch.ge,
    [
        sample("quarter", LEFT, other=0.25),
        sample("special", special_values(), other=1.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    budget=None,
)

lt_scalar = operator(
    "aten.lt.Scalar",
    torch.lt,
    [
        sample("quarter", LEFT, other=0.25),
        sample("special", special_values(), other=1.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    budget=None,
)

le_scalar = operator(
    "aten.le.Scalar",
    torch.le,
    [
        sample("quarter", LEFT, other=0.25),
        sample("special", special_values(), other=1.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    budget=None,
)

bitwise_and_scalar = operator(
    "aten.bitwise_and.Scalar",
    torch.ops.aten.bitwise_and.Scalar,
    [
        # Bits of both halves, in numbers of both signs.
        sample("int32", integers(9, low=-1000, high=1000), other=0x5A, configurations=INTEGER_ONLY),
        sample("boolean", booleans(9), other=True),
    ],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_and_boolean = operator(
    "aten.bitwise_and.Tensor",
    torch.bitwise_and,
    [sample("broadcast", booleans(3, 6), booleans(3, 1))],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_or_scalar = operator(
    "aten.bitwise_or.Scalar",
    torch.ops.aten.bitwise_or.Scalar,
    [
        # Bits of both halves, in numbers of both signs.
        sample("int32", integers(9, low=-1000, high=1000), other=0x5A, configurations=INTEGER_ONLY),
        sample("boolean", booleans(9), other=True),
    ],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_or_boolean = operator(
    "aten.bitwise_or.Tensor",
    torch.bitwise_or,
    [sample("broadcast", booleans(3, 6), booleans(3, 1))],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_xor_scalar = operator(
    "aten.bitwise_xor.Scalar",
    torch.ops.aten.bitwise_xor.Scalar,
    [
        # Bits of both halves, in numbers of both signs.
        sample("int32", integers(9, low=-1000, high=1000), other=0x5A, configurations=INTEGER_ONLY),
        sample("boolean", booleans(9), other=True),
    ],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_xor_boolean = operator(
    "aten.bitwise_xor.Tensor",
    torch.bitwise_xor,
    [sample("broadcast", booleans(3, 6), booleans(3, 1))],
    tier="nightly",
    configurations=INTEGER,
)

bitwise_not_boolean = operator(
    "aten.bitwise_not.default",
    torch.bitwise_not,
    [sample("rank2", booleans(3, 6))],
    tier="nightly",
    configurations=INTEGER,
)

# What every comparison has to get right beyond its first sample: one list for all of them, because
# each is lowered in a way of its own (less-than by exchanged operands, unequal by a negation).

INT = (("INT", "none"),)
LEAST, GREATEST = -(2**31), 2**31 - 1

COMPARED = [
    sample("special_pairs", special_values(), special_values(column=True), configurations=FLOATING_ONLY),
    # 1 beside its two neighbours in float32, and two whole numbers where float32 still has all.
    sample(
        "neighbouring",
        values([1.0, 1.0, 1.0, 16777215.0]),
        values([1.0 + 2.0**-23, 1.0 - 2.0**-24, 1.0, 16777214.0]),
        configurations=FLOATING_ONLY,
    ),
    sample(
        "rank0",
        integers(low=1, high=2, dtype=torch.float32),
        integers(low=1, high=2, dtype=torch.float32),
        configurations=FLOATING_ONLY,
    ),
    # Each operand is widened; the equal ones are on the diagonal.
    sample(
        "broadcast_both",
        values([-1.0, 0.0, 1.0], 3, 1),
        values([-1.0, 0.0, 1.0], 1, 3),
        configurations=SEPARATE,
    ),
    sample(
        "rank6_by_rank1",
        integers(1, 2, 1, 2, 1, 3, low=-1, high=2, dtype=torch.float32),
        values([0.0, 1.0, -1.0]),
        configurations=FLOATING_ONLY,
    ),
    # As float32 the greatest and its neighbour would be equal.
    sample(
        "int32_extremes",
        values([LEAST, LEAST, -1, 0, GREATEST, GREATEST, 1], dtype=torch.int32),
        values([GREATEST, LEAST, 0, -1, GREATEST - 1, GREATEST, 1], dtype=torch.int32),
        configurations=INT,
    ),
    sample(
        "int32_broadcast_rank",
        integers(2, 3, 4, low=-1, high=2),
        integers(4, low=-1, high=2),
        configurations=INT,
    ),
    sample(
        "int8",
        values([-128, 127, -128, 0], dtype=torch.int8),
        values([127, 127, -128, -1], dtype=torch.int8),
        configurations=INT,
    ),
]

eq_edges = operator("aten.eq.Tensor", torch.eq, COMPARED, tier="nightly", budget=None)
gt_edges = operator("aten.gt.Tensor", torch.gt, COMPARED, tier="nightly", budget=None)
#: For those that are lowered to one of the two above.
ESSENTIAL = [item for item in COMPARED if item.name in ("special_pairs", "int32_extremes")]
ge_edges = operator("aten.ge.Tensor", torch.ge, ESSENTIAL, tier="nightly", budget=None)
lt_edges = operator("aten.lt.Tensor", torch.lt, ESSENTIAL, tier="nightly", budget=None)
le_edges = operator("aten.le.Tensor", torch.le, ESSENTIAL, tier="nightly", budget=None)
ne_edges = operator(
    "aten.ne.Tensor",
    torch.ne,
    [item for item in COMPARED if not item.name.startswith("int")],
    tier="nightly",
    budget=None,
)
ne_int32_edges = operator(
    "aten.ne.Tensor",
    torch.ne,
    [item for item in COMPARED if item.name == "int32_extremes"],
    tier="nightly",
    delegated=False,
    budget=None,
)

#: The number compared with: a whole one for floats, infinity, NaN (equal to nothing), an extreme int32.
WITH_NUMBER = [
    sample("integer_for_floats", LEFT, other=1, configurations=SEPARATE),
    sample("special_infinity", special_values(), other=math.inf, configurations=FLOATING_ONLY),
    sample("special_nan", special_values(), other=math.nan, configurations=FLOATING_ONLY),
    sample(
        "int32_greatest",
        values([LEAST, 0, GREATEST - 1, GREATEST], dtype=torch.int32),
        other=GREATEST,
        configurations=INT,
    ),
]

eq_scalar_edges = operator("aten.eq.Scalar", torch.eq, WITH_NUMBER, tier="nightly", budget=None)
gt_scalar_edges = operator("aten.gt.Scalar", torch.gt, WITH_NUMBER, tier="nightly", budget=None)
WITH_NAN = [item for item in WITH_NUMBER if item.name == "special_nan"]
ne_scalar_edges = operator("aten.ne.Scalar", torch.ne, WITH_NAN, tier="nightly", budget=None)
ge_scalar_edges = operator("aten.ge.Scalar", torch.ge, WITH_NAN, tier="nightly", budget=None)
lt_scalar_edges = operator("aten.lt.Scalar", torch.lt, WITH_NAN, tier="nightly", budget=None)
le_scalar_edges = operator("aten.le.Scalar", torch.le, WITH_NAN, tier="nightly", budget=None)

# The promoted type is float32, in which the halves lie between the integers: left to the CPU in FP.
gt_half_of_int32 = operator(
    "aten.gt.Scalar",
    torch.gt,
    [sample("half", values([-1, 0, 1, 2], dtype=torch.int32), other=0.5)],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
    budget=None,
)
eq_half_of_int32 = operator(
    "aten.eq.Scalar",
    torch.eq,
    [sample("half", values([-1, 0, 1, 2], dtype=torch.int32), other=0.5)],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
    budget=None,
)

# Truth of numbers: PyTorch takes any but zero as true, NaN too.

NUMBERS = values([0.0, -0.0, 1.0, -2.5, 0.0, 3.0])
TRUTHS = [
    sample("rank0", booleans(), booleans()),
    sample("rank5_by_rank5", booleans(1, 2, 1, 3, 1), booleans(2, 1, 2, 1, 2)),
    # Claimed for float32 and int8: lowered as they are, or left to the CPU.
    sample("numbers", NUMBERS, values([1.0, 0.0, 0.0, 2.0, -1.0, 0.5]), configurations=SEPARATE),
    sample(
        "int8_numbers",
        values([0, -128, 127, 0], dtype=torch.int8),
        values([0, 0, 1, 2], dtype=torch.int8),
        configurations=INT,
    ),
]

logical_and_edges = operator(
    "aten.logical_and.default",
    torch.logical_and,
    TRUTHS,
    configurations=INT,
    tier="nightly",
    budget=None,
)
logical_or_edges = operator(
    "aten.logical_or.default",
    torch.logical_or,
    TRUTHS[2:],
    configurations=INT,
    tier="nightly",
    budget=None,
)
logical_xor_edges = operator(
    "aten.logical_xor.default",
    torch.logical_xor,
    TRUTHS[2:],
    configurations=INT,
    tier="nightly",
    budget=None,
)
logical_not_edges = operator(
    "aten.logical_not.default",
    torch.logical_not,
    [
        sample("rank0", booleans()),
        sample("numbers", NUMBERS, configurations=SEPARATE),
        sample("special_numbers", special_values(), configurations=FLOATING_ONLY),
        sample("int8_numbers", values([0, -128, 127, 1], dtype=torch.int8), configurations=INT),
    ],
    configurations=INT,
    tier="nightly",
    budget=None,
)

BITS = [
    sample(
        "int32_extremes",
        values([LEAST, LEAST, GREATEST, -1, 0], dtype=torch.int32),
        values([GREATEST, -1, 0x55555555, 0x2AAAAAAA, -1], dtype=torch.int32),
    ),
    sample(
        "int8_extremes",
        values([-128, -128, 127, -1, 0], dtype=torch.int8),
        values([127, -1, 0x55, 0x2A, -1], dtype=torch.int8),
    ),
    sample(
        "int16_extremes",
        values([-32768, -32768, 32767, -1, 0], dtype=torch.int16),
        values([32767, -1, 0x5555, 0x2AAA, -1], dtype=torch.int16),
        configurations=INT,
    ),
    sample("rank3_by_rank1", integers(2, 1, 3, low=-99, high=99), integers(3, low=-99, high=99)),
    sample("rank0", integers(low=-99, high=99), integers(low=-99, high=99), configurations=INT),
]

bitwise_and_edges = operator(
    "aten.bitwise_and.Tensor", torch.bitwise_and, BITS, configurations=INT, tier="nightly"
)
bitwise_or_edges = operator(
    "aten.bitwise_or.Tensor", torch.bitwise_or, BITS[:3], configurations=INT, tier="nightly"
)
bitwise_xor_edges = operator(
    "aten.bitwise_xor.Tensor", torch.bitwise_xor, BITS[:3], configurations=INT, tier="nightly"
)
bitwise_not_edges = operator(
    "aten.bitwise_not.default",
    torch.bitwise_not,
    [
        sample("int32_extremes", values([LEAST, GREATEST, -1, 0], dtype=torch.int32)),
        sample("int8_extremes", values([-128, 127, -1, 0], dtype=torch.int8)),
        sample("int16_extremes", values([-32768, 32767, -1, 0], dtype=torch.int16), configurations=INT),
    ],
    configurations=INT,
    tier="nightly",
)

#: Bits of one half of an int8 alone.
BITS_OF_INT8 = sample("int8", values([-128, 127, -1, 0, 0x3C], dtype=torch.int8), other=0x5A)
bitwise_and_int8 = operator(
    "aten.bitwise_and.Scalar",
    torch.ops.aten.bitwise_and.Scalar,
    [BITS_OF_INT8],
    configurations=INT,
    tier="nightly",
)
bitwise_or_int8 = operator(
    "aten.bitwise_or.Scalar",
    torch.ops.aten.bitwise_or.Scalar,
    [BITS_OF_INT8],
    configurations=INT,
    tier="nightly",
)
bitwise_xor_int8 = operator(
    "aten.bitwise_xor.Scalar",
    torch.ops.aten.bitwise_xor.Scalar,
    [BITS_OF_INT8],
    configurations=INT,
    tier="nightly",
)

where_edges = operator(
    "aten.where.self",
    torch.where,
    [
        # The mask is the widest in one, the narrowest in the other.
        sample("broadcast_values", booleans(3, 5), normal(5), normal(3, 1), configurations=SEPARATE),
        sample("rank0_mask", booleans(), normal(2, 3), normal(2, 3), configurations=FLOATING_ONLY),
        sample(
            "rank5", booleans(1, 2, 1, 2, 3), normal(2, 1, 2, 1, 3), normal(3), configurations=FLOATING_ONLY
        ),
        sample(
            "unlike_ranges",
            booleans(4, 6),
            normal(4, 6, scale=50.0),
            normal(4, 6),
            configurations=SEPARATE,
        ),
        # What is not chosen must not show: no arithmetic on the mask.
        sample(
            "special_both",
            values([0, 1], 2, 1, dtype=torch.bool),
            special_values(),
            values([math.nan, -math.inf, math.inf, -0.0, 0.0, 1e-40, -1e-40, 1.0, 2.0, 3.0, 4.0]),
            configurations=FLOATING_ONLY,
        ),
        sample(
            "int32_extremes",
            values([0, 1, 0, 1], dtype=torch.bool),
            values([LEAST, LEAST, 1, GREATEST], dtype=torch.int32),
            values([GREATEST, 0, LEAST, 1], dtype=torch.int32),
            configurations=INT,
        ),
        sample("boolean_values", booleans(3, 4), booleans(3, 4), booleans(4), configurations=INT),
    ],
    tier="nightly",
)

#: Subnormal numbers, then ordinary ones: where a device may flush, faults do not show.
TINY = values([1e-40, -1e-40, 2.0**-149, 0.0, *[0.5, -0.75, 1.5, -2.0, 0.25, 3.0]])

# The usual cure for NaN, and a rectifier by choice: the mask is computed from the data.
nan_to_zero = operator(
    "aten.where.self",
    lambda tensor: torch.where(torch.isnan(tensor), torch.zeros_like(tensor), tensor),
    [sample("special", special_values()), sample("denormal", TINY)],
    tier="nightly",
    configurations=FLOATING_ONLY,
)
where_positive = operator(
    "aten.where.self",
    lambda tensor: torch.where(tensor > 0, tensor, torch.zeros_like(tensor)),
    [
        sample("special", special_values(), configurations=FLOATING_ONLY),
        sample("denormal", TINY, configurations=FLOATING_ONLY),
        sample("both_signs", normal(3, 7)),
    ],
    tier="nightly",
)

isnan = operator(
    "aten.isnan.default",
    torch.isnan,
    [
        sample("special", special_values()),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
    delegated=False,
)
isinf = operator(
    "aten.isinf.default",
    torch.isinf,
    [
        sample("special", special_values()),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
    delegated=False,
)

masked_fill_edges = operator(
    "aten.masked_fill.Scalar",
    torch.masked_fill,
    [
        sample("broadcast_mask", normal(2, 3, 4), booleans(3, 1), value=0.5, configurations=FLOATING_ONLY),
        # Outside the range of the data, which must then be widened.
        sample("far_value", normal(3, 5), booleans(3, 5), value=-20.0, configurations=SEPARATE),
        sample("minus_infinity", normal(3, 5), booleans(3, 5), value=-math.inf, configurations=FLOATING_ONLY),
        sample("nan", normal(3, 5), booleans(3, 5), value=math.nan, configurations=FLOATING_ONLY),
        sample("special_kept", special_values(), booleans(2, 11), value=1.0, configurations=FLOATING_ONLY),
        sample(
            "int32_extreme", integers(3, 4, low=-9, high=9), booleans(3, 4), value=LEAST, configurations=INT
        ),
        sample("rank0", normal(), booleans(), value=2.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

# Narrow types, and int16 activations.

eq_narrow = narrow(eq_edges, "special_pairs")
ne_narrow = narrow(ne_edges, "special_pairs")
where_narrow = narrow(where_edges, "special_both")
masked_fill_narrow = narrow(masked_fill_edges, "minus_infinity")

eq_a16w8 = quantised(eq, "a16w8", "some_equal")
gt_a16w8 = quantised(gt, "a16w8", "some_equal")
ge_a16w8 = quantised(ge, "a16w8", "some_equal")
lt_a16w8 = quantised(lt, "a16w8", "some_equal")
le_a16w8 = quantised(le, "a16w8", "some_equal")
eq_scalar_a16w8 = quantised(eq_scalar, "a16w8", "quarter")
gt_scalar_a16w8 = quantised(gt_scalar, "a16w8", "zero")
ge_scalar_a16w8 = quantised(ge_scalar, "a16w8", "quarter")
lt_scalar_a16w8 = quantised(lt_scalar, "a16w8", "quarter")
le_scalar_a16w8 = quantised(le_scalar, "a16w8", "quarter")
where_a16w8 = quantised(where_edges, "a16w8", "unlike_ranges")
