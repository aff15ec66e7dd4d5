"""Reductions along one dimension and along several, and the running sum.

Covered: kept and dropped dimensions, negative ones, ranks 0 to 6, results of rank 0, dimensions of
size 1, odd and large lengths, exact data (small integers in floating point, whose sums leave no
room for tolerance), transposed and channels_last inputs, booleans, int32 and its extremes, ties in
argmax, NaN, infinities, signed zeros and denormals, float16, bfloat16 and a16w8.
"""

import math

import torch

from vgf_conformance.cases.case import (
    COMBINED,
    FLOATING_ONLY,
    INTEGER,
    INTEGER_ONLY,
    SEPARATE,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import booleans, integers, normal, special_values, uniform, values

sum = operator(
    "aten.sum.dim_IntList",
    torch.sum,
    [
        sample("last", normal(3, 7), dim=-1, configurations=COMBINED),
        sample("two_kept", normal(2, 3, 4, 5), dim=(1, 3), keepdim=True),
        sample("rank5", normal(2, 1, 3, 2, 3), dim=(0, 2, 4), configurations=FLOATING_ONLY),
        sample(
            "exact",
            integers(3, 33, low=-8, high=9, dtype=torch.float32),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
        # Nothing is left of the shape: a result of rank 0.
        sample("to_rank0", normal(3, 5), dim=(0, 1), configurations=FLOATING_ONLY),
        # In FP as well: TOSA's sum has no int32 there, and lowering must leave the node to the CPU.
        sample(
            "int32", integers(3, 9, low=-1000, high=1000), dim=-1, dtype=torch.int32, configurations=INTEGER
        ),
    ],
)

mean = operator(
    "aten.mean.dim",
    torch.mean,
    [
        sample("last", normal(43, 17), dim=-1),
        sample("spatial_channels_last", normal(1, 3, 4, 5, channels_last=True), dim=(2, 3), keepdim=True),
    ],
)

amax = operator(
    "aten.amax.default",
    torch.amax,
    [
        sample("last", normal(43, 17), dim=-1),
        sample("special", special_values(), dim=0, keepdim=True, configurations=FLOATING_ONLY),
        # The least of all values, beyond the lowest finite one.
        sample("infinite", values([-math.inf, -math.inf]), dim=0, keepdim=True, configurations=FLOATING_ONLY),
    ],
)

amin = operator(
    "aten.amin.default",
    torch.amin,
    [
        sample("two_kept", normal(2, 3, 4), dim=(0, 2), keepdim=True),
        sample("infinite", values([math.inf, math.inf]), dim=0, keepdim=True, configurations=FLOATING_ONLY),
    ],
)

# TOSA's ARGMAX answers in int32: the backend takes it where the program asks for no more.
argmax = operator(
    "aten.argmax.default",
    lambda tensor, dim: torch.argmax(tensor, dim).to(torch.int32),
    [
        sample("last", normal(43, 17), dim=-1),
        # PyTorch answers with the first of equal maxima.
        sample("ties", values([1.0, 3.0, 3.0, 2.0, 3.0, 0.0], 2, 3), dim=1),
    ],
    # The quantizer leaves it in float, which the INT profile has not.
    configurations=FLOATING_ONLY,
    # An index has no quantisation loss to keep inside a budget.
    budget=None,
)

argmax_int64 = operator(
    "aten.argmax.default",
    torch.argmax,
    [sample("last", normal(43, 17), dim=-1)],
    configurations=FLOATING_ONLY,
    delegated=False,
    budget=None,
)

var = operator(
    "aten.var.correction",
    torch.var,
    [
        sample("unbiased", normal(43, 17), dim=-1, correction=1),
        sample(
            "biased_two_kept",
            normal(2, 3, 4),
            dim=(1, 2),
            correction=0,
            keepdim=True,
            configurations=FLOATING_ONLY,
        ),
    ],
)

prod = operator(
    "aten.prod.dim_int",
    torch.prod,
    [sample("near_one", uniform(3, 5, low=0.5, high=1.5), dim=1)],
    # TOSA has no integer product.
    configurations=FLOATING_ONLY,
)

any = operator(
    "aten.any.dim",
    torch.any,
    [sample("rows", values([0, 0, 0, 0, 1, 0, 1, 1, 1], 3, 3, dtype=torch.bool), dim=1)],
    configurations=INTEGER,
)

all = operator(
    "aten.all.dim",
    torch.all,
    [
        sample("rows", values([0, 0, 0, 0, 1, 0, 1, 1, 1], 3, 3, dtype=torch.bool), dim=1),
        sample("columns_kept", booleans(2, 5), dim=0, keepdim=True, configurations=FLOATING_ONLY),
    ],
    configurations=INTEGER,
)

cumsum = operator(
    "aten.cumsum.default",
    torch.cumsum,
    [
        sample("last", normal(43, 17), dim=-1),
        sample(
            "exact", integers(9, 3, low=-8, high=9, dtype=torch.float32), dim=0, configurations=FLOATING_ONLY
        ),
    ],
)

mean_all = operator(
    "aten.mean.default",
    torch.mean,
    [sample("rank3", normal(2, 3, 5))],
    tier="nightly",
)

var_dim = operator(
    "aten.var.dim",
    torch.ops.aten.var.dim,
    [
        sample("unbiased", normal(3, 7), dim=[-1], unbiased=True),
        sample(
            "biased_kept",
            normal(2, 3, 4),
            dim=[1, 2],
            unbiased=False,
            keepdim=True,
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
)

# The values alone: their indices are int64, which TOSA has not.
max_dim = operator(
    "aten.max.dim",
    lambda tensor, dim, keepdim=False: torch.max(tensor, dim, keepdim).values,
    [
        sample("last", normal(43, 17), dim=-1),
        sample("special", special_values(), dim=0, keepdim=True, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

min_dim = operator(
    "aten.min.dim",
    lambda tensor, dim, keepdim=False: torch.min(tensor, dim, keepdim).values,
    [
        sample("last", normal(43, 17), dim=-1),
        sample("special", special_values(), dim=0, keepdim=True, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

any_all = operator(
    "aten.any.default",
    torch.any,
    [
        sample("one", values([0, 0, 0, 0, 1, 0], 2, 3, dtype=torch.bool)),
        sample("none", values([0, 0, 0, 0, 0, 0], 2, 3, dtype=torch.bool), configurations=INTEGER_ONLY),
    ],
    tier="nightly",
    configurations=INTEGER,
)

any_dims = operator(
    "aten.any.dims",
    torch.any,
    [sample("two", values([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], 2, 3, 2, dtype=torch.bool), dim=(0, 2))],
    tier="nightly",
    configurations=INTEGER,
)

argmax_int8 = operator(
    "aten.argmax.default",
    lambda tensor, dim: torch.argmax(tensor, dim).to(torch.int32),
    [sample("ties", values([-128, 127, 127, 5, 5, -1], 2, 3, dtype=torch.int8), dim=1)],
    tier="nightly",
    configurations=INTEGER_ONLY,
    budget=None,
)

# The registry has it for INT too; the partitioner then looks at the profile, and declines.
prod_quantised = operator(
    "aten.prod.dim_int",
    torch.prod,
    [sample("near_one", uniform(3, 5, low=0.5, high=1.5), dim=1)],
    tier="nightly",
    configurations=(("INT", "a8w8-pc"),),
    delegated=False,
)

# The operators that are documented for float16 and bfloat16.

sum_narrow = narrow(sum, "last", "exact")
amax_narrow = narrow(amax, "last")
amin_narrow = narrow(amin, "two_kept")
argmax_narrow = narrow(argmax, "last", "ties")
prod_narrow = narrow(prod, "near_one")
max_dim_narrow = narrow(max_dim, "last")
min_dim_narrow = narrow(min_dim, "last")

# Edges of each, beyond its first samples.

INT = (("INT", "none"),)
LEAST, GREATEST = -(2**31), 2**31 - 1

#: Rows that each hold one kind of special value, and one with both infinities: their sum is NaN.
SPECIAL_ROWS = values(
    [
        1.0,
        math.inf,
        2.0,
        -1.0,
        -math.inf,
        2.0,
        1.0,
        math.nan,
        2.0,
        math.inf,
        -math.inf,
        2.0,
        -0.0,
        -0.0,
        -0.0,
    ],
    5,
    3,
)
#: Rows of nothing but one infinity: no finite number is the answer.
INFINITE_ROWS = values([math.inf, math.inf, -math.inf, -math.inf], 2, 2)
#: Signed zeros and denormals, where flushing is allowed, then rows that show the faults it would hide.
TINY_ROWS = values(
    [1e-40, 2e-40, -1e-40, -2e-40, 0.0, -0.0, *[0.5, 1.5, -2.0, 0.75, 3.0, -1.25, 0.3, 1.0]], 7, 2
)

sum_edges = operator(
    "aten.sum.dim_IntList",
    torch.sum,
    [
        sample("special_rows", SPECIAL_ROWS, dim=1, configurations=FLOATING_ONLY),
        sample("denormal_rows", TINY_ROWS, dim=1, configurations=FLOATING_ONLY),
        # Larger than any of the terms by far: the partial sums overflow on the way to a finite result.
        sample(
            "overflow",
            values([3e38, 3e38, -3e38, -3e38, 1.0, 2.0, 3.0, 4.0], 2, 4),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
        sample("size1", normal(3, 1, 2), dim=1, configurations=FLOATING_ONLY),
        sample("rank6", normal(1, 2, 1, 3, 1, 2), dim=(1, 3), configurations=FLOATING_ONLY),
        sample("rank4_negative", normal(2, 3, 4, 5), dim=(-1, -3), configurations=FLOATING_ONLY),
        # 4095 x 8 is far below 2^24.
        sample(
            "exact_4095",
            integers(2, 4095, low=-8, high=9, dtype=torch.float32),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
        sample("ones_1000", values([1.0] * 1000, 1, 1000), dim=1, configurations=SEPARATE),
        sample(
            "int32_kept",
            integers(2, 3, 4, low=-(10**6), high=10**6),
            dim=(0, 2),
            keepdim=True,
            dtype=torch.int32,
            configurations=INT,
        ),
        # The sum of int32 in int32 wraps around.
        sample(
            "int32_wraps",
            values([GREATEST, 1, LEAST, -1, GREATEST, GREATEST], 3, 2, dtype=torch.int32),
            dim=1,
            dtype=torch.int32,
            configurations=INT,
        ),
    ],
    tier="nightly",
)

mean_edges = operator(
    "aten.mean.dim",
    torch.mean,
    [
        sample("special_rows", SPECIAL_ROWS, dim=1, configurations=FLOATING_ONLY),
        sample("denormal_rows", TINY_ROWS, dim=1, configurations=FLOATING_ONLY),
        sample("rank3_negative", normal(2, 5, 7), dim=(-2, -1), configurations=FLOATING_ONLY),
        # 1/1024 and every partial sum are exact.
        sample(
            "exact_1024",
            integers(2, 1024, low=-8, high=9, dtype=torch.float32),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
        # A constant keeps its value: in INT through the reciprocal of a length that is no power of two.
        sample("constant_17", values([0.75] * 51, 3, 17), dim=1, configurations=SEPARATE),
        sample("to_rank0", normal(3, 5), dim=(0, 1), configurations=SEPARATE),
    ],
    tier="nightly",
)

#: For the greatest and the least alike: one list, because lowering shares no code with eager here.
EXTREMES = [
    sample("special_rows", SPECIAL_ROWS, dim=1, configurations=FLOATING_ONLY),
    sample("infinite_rows", INFINITE_ROWS, dim=1, configurations=FLOATING_ONLY),
    sample("denormal_rows", TINY_ROWS, dim=1, configurations=FLOATING_ONLY),
    sample("rank5_negative_kept", normal(2, 1, 3, 2, 3), dim=-2, keepdim=True, configurations=SEPARATE),
    sample("negative_257", uniform(2, 257, low=-2.0, high=-1.0), dim=1, configurations=SEPARATE),
    sample(
        "int32_extremes",
        values([LEAST, LEAST, GREATEST, GREATEST, LEAST, GREATEST], 3, 2, dtype=torch.int32),
        dim=1,
        configurations=INT,
    ),
    sample(
        "int8_extremes", values([-128, -128, 127, 127], 2, 2, dtype=torch.int8), dim=1, configurations=INT
    ),
]
#: For the overloads that are lowered to the same operator.
ESSENTIAL = [item for item in EXTREMES if item.name in ("special_rows", "infinite_rows")]
OVER_SEVERAL = [
    sample("to_rank0", normal(3, 5), dim=(0, 1), configurations=FLOATING_ONLY),
    sample("all_of_size1_to_rank0", normal(1, 1, 1), dim=(0, 1, 2), configurations=FLOATING_ONLY),
]

amax_edges = operator("aten.amax.default", torch.amax, [*EXTREMES, *OVER_SEVERAL], tier="nightly")
amin_edges = operator("aten.amin.default", torch.amin, [*EXTREMES, *OVER_SEVERAL], tier="nightly")
max_dim_edges = operator(
    "aten.max.dim",
    lambda tensor, dim, keepdim=False: torch.max(tensor, dim, keepdim).values,
    ESSENTIAL,
    tier="nightly",
)
min_dim_edges = operator(
    "aten.min.dim",
    lambda tensor, dim, keepdim=False: torch.min(tensor, dim, keepdim).values,
    ESSENTIAL,
    tier="nightly",
)

# The largest and the least of int32 have no overload of their own in the backend.
max_dim_int32 = operator(
    "aten.max.dim",
    lambda tensor, dim: torch.max(tensor, dim).values,
    [sample("extremes", values([LEAST, LEAST, GREATEST, LEAST], 2, 2, dtype=torch.int32), dim=1)],
    configurations=INT,
    tier="nightly",
    delegated=False,
)
min_dim_int32 = operator(
    "aten.min.dim",
    lambda tensor, dim: torch.min(tensor, dim).values,
    [sample("extremes", values([GREATEST, GREATEST, GREATEST, LEAST], 2, 2, dtype=torch.int32), dim=1)],
    configurations=INT,
    tier="nightly",
    delegated=False,
)

argmax_edges = operator(
    "aten.argmax.default",
    lambda tensor, dim, keepdim=False: torch.argmax(tensor, dim, keepdim).to(torch.int32),
    [
        # The first NaN is the greatest.
        sample("special_rows", SPECIAL_ROWS, dim=1),
        sample("infinite_rows", INFINITE_ROWS, dim=1),
        sample("signed_zeros", values([-0.0, 0.0, 0.0, -0.0], 2, 2), dim=1),
        sample("all_equal", values([0.5] * 9), dim=0),
        sample("rank5", normal(2, 1, 3, 2, 3), dim=2),
        sample("first_of_rank4_channels_last", normal(2, 3, 4, 5, channels_last=True), dim=1),
        # Positions beyond what int8 and float16 count to.
        sample("at_3000", values([0.0] * 3000 + [1.0] * 2, 1, 3002), dim=1),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
    budget=None,
)
# The quantizer leaves it in float, which the INT profile has not: documented for int8, left to the CPU.
argmax_quantised = operator(
    "aten.argmax.default",
    lambda tensor, dim: torch.argmax(tensor, dim).to(torch.int32),
    [sample("last", normal(43, 17), dim=-1)],
    configurations=(("INT", "a8w8-pc"),),
    tier="nightly",
    delegated=False,
    budget=None,
)
argmax_int8_edges = operator(
    "aten.argmax.default",
    lambda tensor, dim: torch.argmax(tensor, dim).to(torch.int32),
    [
        sample("all_least", values([-128] * 6, 2, 3, dtype=torch.int8), dim=1),
        sample("rank4", integers(2, 3, 2, 2, low=-128, high=128, dtype=torch.int8), dim=-3),
    ],
    configurations=INT,
    tier="nightly",
    budget=None,
)

prod_edges = operator(
    "aten.prod.dim_int",
    torch.prod,
    [
        sample("special_rows", SPECIAL_ROWS, dim=1),
        # Zero times infinity is NaN; two negative zeros make a positive one.
        sample("zero_by_infinity", values([0.0, math.inf, -0.0, -0.0], 2, 2), dim=1),
        sample("overflow_and_underflow", values([1e30, 1e30, 1e-30, 1e-30], 2, 2), dim=1),
        sample("exact_powers_of_two", values([2.0, -2.0, 0.5, 4.0, 0.25, -1.0], 2, 3), dim=1),
        sample("rank4_negative_kept", uniform(2, 3, 2, 2, low=0.5, high=1.5), dim=-3, keepdim=True),
        sample("rank1_to_rank0", uniform(5, low=0.5, high=1.5), dim=0),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

var_edges = operator(
    "aten.var.correction",
    torch.var,
    [
        sample("special_rows", SPECIAL_ROWS, dim=1, correction=1, configurations=FLOATING_ONLY),
        sample("constant", values([0.75] * 14, 2, 7), dim=1, correction=1, configurations=FLOATING_ONLY),
        # The mean is far larger than the deviation from it, and exact.
        sample(
            "far_from_zero",
            values([4096.0, 4097.0, 4098.0, 4099.0, 4100.0], 1, 5),
            dim=1,
            correction=1,
            configurations=FLOATING_ONLY,
        ),
        # Division by no degree of freedom: NaN.
        sample("one_element_unbiased", normal(3, 1), dim=1, correction=1, configurations=FLOATING_ONLY),
        sample("correction2", normal(3, 7), dim=1, correction=2, configurations=FLOATING_ONLY),
        sample("rank3_outer_and_inner", normal(3, 5, 4), dim=(0, 2), correction=0, configurations=SEPARATE),
        sample(
            "negative_kept", normal(2, 5, 3), dim=-2, correction=1, keepdim=True, configurations=FLOATING_ONLY
        ),
    ],
    tier="nightly",
)
std = operator(
    "aten.var.correction",
    torch.std,
    [sample("unbiased", normal(3, 5, 4), dim=1, configurations=FLOATING_ONLY)],
    tier="nightly",
)

ROWS = [0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0, 0]
TRUTHS = [
    sample("rank5_negative_kept", values(ROWS, 1, 2, 1, 3, 2, dtype=torch.bool), dim=-2, keepdim=True),
    sample("long_row_of_zeros", values([0] * 257, 1, 257, dtype=torch.bool), dim=1, configurations=INT),
    sample("rank1_to_rank0", values([0, 1, 0], 3, dtype=torch.bool), dim=0, configurations=INT),
]
any_edges = operator("aten.any.dim", torch.any, TRUTHS, configurations=INT, tier="nightly")
all_edges = operator("aten.all.dim", torch.all, TRUTHS, configurations=INT, tier="nightly")

#: Numbers, of which any but zero is true, NaN too; claimed for float32 and for int8.
NUMBERS = values([0.0, -0.0, 0.0, 1.0, math.nan, -2.0], 3, 2)
any_of_numbers = operator(
    "aten.any.dim",
    torch.any,
    [
        sample("special", NUMBERS, dim=1, configurations=FLOATING_ONLY),
        sample("quantised", normal(3, 5), dim=1, configurations=(("INT", "a8w8-pc"),)),
        sample("int32", integers(3, 4, low=0, high=2), dim=1, configurations=INT),
    ],
    tier="nightly",
    budget=None,
)
any_dims_of_numbers = operator(
    "aten.any.dims",
    torch.any,
    [
        sample("special", NUMBERS, dim=(0, 1), keepdim=True, configurations=FLOATING_ONLY),
        sample("quantised", normal(3, 5), dim=(0, 1), keepdim=True, configurations=(("INT", "a8w8-pc"),)),
    ],
    tier="nightly",
    budget=None,
)
any_all_of_numbers = operator(
    "aten.any.default",
    torch.any,
    [
        sample("special", NUMBERS, configurations=FLOATING_ONLY),
        sample("quantised", normal(3, 5), configurations=(("INT", "a8w8-pc"),)),
    ],
    tier="nightly",
    budget=None,
)
all_of_numbers = operator(
    "aten.all.dim",
    torch.all,
    [sample("special", NUMBERS, dim=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
    budget=None,
)
# A mask of the program itself: the reduction's input is no input of the delegate.
any_positive = operator(
    "aten.any.dim",
    lambda tensor, dim: torch.any(tensor > 0, dim),
    [sample("rows", normal(3, 4), dim=1, configurations=SEPARATE)],
    tier="nightly",
    budget=None,
)
all_positive = operator(
    "aten.all.dim",
    lambda tensor, dim: torch.all(tensor > 0, dim),
    [sample("rows", normal(3, 4), dim=1, configurations=SEPARATE)],
    tier="nightly",
    budget=None,
)
all_all = operator(
    "aten.all.default",
    torch.all,
    [
        sample("one", values([1, 1, 1, 1, 0, 1], 2, 3, dtype=torch.bool)),
        sample("rank1", values([1, 1, 1], 3, dtype=torch.bool), configurations=INT),
    ],
    tier="nightly",
    configurations=INT,
)

# Everything to one number, by the overloads without dimensions.
sum_all = operator(
    "aten.sum.default",
    torch.sum,
    [
        sample("rank2", normal(2, 3), configurations=SEPARATE),
    ],
    tier="nightly",
)
amax_all = operator(
    "aten.amax.default", torch.amax, [sample("rank2", normal(2, 3))], configurations=SEPARATE, tier="nightly"
)
# Left to the CPU: whole reductions by these names, a sum in int64, an argmax that keeps its dimension.
max_all = operator(
    "aten.max.default",
    torch.max,
    [sample("rank2", normal(2, 3))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)
prod_all = operator(
    "aten.prod.default",
    torch.prod,
    [sample("rank2", uniform(2, 3, low=0.5, high=1.5))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)
sum_of_booleans = operator(
    "aten.sum.default",
    torch.sum,
    [sample("rank1", values([1, 0, 1], 3, dtype=torch.bool))],
    configurations=INT,
    tier="nightly",
    delegated=False,
)
argmax_kept = operator(
    "aten.argmax.default",
    lambda tensor, dim: torch.argmax(tensor, dim, keepdim=True).to(torch.int32),
    [sample("rank2", normal(2, 3), dim=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
    budget=None,
)

cumsum_edges = operator(
    "aten.cumsum.default",
    torch.cumsum,
    [
        # NaN and infinity go on to the end of their row, and no further.
        sample("special_rows", SPECIAL_ROWS, dim=1, configurations=FLOATING_ONLY),
        sample(
            "exact_300",
            integers(1, 300, low=-8, high=9, dtype=torch.float32),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
        sample("normal_300", normal(1, 300), dim=1, configurations=FLOATING_ONLY),
        sample("rank1", normal(7), dim=0, configurations=FLOATING_ONLY),
        # Memory order (1, 2, 0).
        sample("transposed", normal(4, 2, 3, transposed=True), dim=2, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

sum_narrow_edges = narrow(sum_edges, "special_rows")
mean_narrow = narrow(mean_edges, "rank3_negative")
amax_narrow_edges = narrow(amax_edges, "special_rows")
amin_narrow_edges = narrow(amin_edges, "infinite_rows")
prod_narrow_edges = narrow(prod_edges, "exact_powers_of_two")

# The sum of the row is beyond float16, its mean is not; eager sums in float32.
mean_float16 = operator(
    "aten.mean.dim",
    torch.mean,
    [
        sample("sum_overflows", uniform(2, 64, low=1000.0, high=2000.0, dtype=torch.float16), dim=-1),
        sample("two_largest", values([60000.0, 60000.0, 1.0, 3.0], 2, 2, dtype=torch.float16), dim=-1),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
# 2047 is the last odd number of float16: one more term of 2 is rounded.
sum_float16 = operator(
    "aten.sum.dim_IntList",
    torch.sum,
    [
        sample("exact_to_2048", values([1.0] * 2048, 1, 2048, dtype=torch.float16), dim=-1),
        sample("infinity", values([60000.0, 60000.0, -60000.0, 1.0], 2, 2, dtype=torch.float16), dim=-1),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

amax_a16w8 = quantised(amax_edges, "a16w8", "negative_257")
amin_a16w8 = quantised(amin_edges, "a16w8", "negative_257")
