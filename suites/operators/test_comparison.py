"""Comparison, logic, selection by a mask, and bitwise operators: the answers are exact.

Covered: broadcasting, equal values among the compared, int32 operands, booleans as inputs and as
outputs, NaN and infinities in FP. A quantised comparison answers for the quantised values: the
operands lie on a grid of quarters, so that equal stays equal.
"""

import torch

from vgf_conformance.cases.case import FLOATING, FLOATING_ONLY, INTEGER, INTEGER_ONLY, operator, sample
from vgf_conformance.cases.inputs import booleans, integers, normal, special_values, values

#: Below, at and above each other; both span the same range and so are given one scale.
LEFT = values([-2.0, -0.5, 0.0, 0.25, 1.0, 2.0])
RIGHT = values([2.0, -0.5, 0.25, 0.0, 1.0, -2.0])
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

ge = operator("aten.ge.Tensor", torch.ge, [sample("some_equal", LEFT, RIGHT)], budget=None)

lt = operator("aten.lt.Tensor", torch.lt, [sample("some_equal", LEFT, RIGHT)], budget=None)

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
