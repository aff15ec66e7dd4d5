"""Matrix products, with weights and between two inputs.

Covered: vectors to batches of matrices, transposed operands, odd and long sizes; exact data (whole
numbers whose sums are all representable, so that no tolerance hides a slip) in float32, float16 and
bfloat16, special values and both ends of the range; int8 and int4 weights, int16 activations.
"""

import math

import torch
from torch import nn

from vgf_conformance.cases.case import (
    COMBINED,
    FLOATING_ONLY,
    INTEGER,
    NARROW,
    SEPARATE,
    layer,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import integers, normal, sparse, stacked, values
from vgf_conformance.cases.weights import with_whole_weights

linear = layer(
    "aten.linear.default",
    nn.Linear,
    [
        sample("rank2", normal(53, 7), args=(7, 5), configurations=COMBINED),
        sample("rank3_no_bias", normal(2, 3, 8), args=(8, 4), bias=False),
        sample("rank1", normal(6), args=(6, 3), configurations=FLOATING_ONLY),
    ],
)

mm = operator(
    "aten.mm.default",
    torch.mm,
    [
        sample("rank2", normal(43, 17), normal(17, 35)),
        sample("transposed", normal(3, 7), normal(7, 5, transposed=True), configurations=FLOATING_ONLY),
        sample(
            "exact",
            integers(3, 33, low=-8, high=9, dtype=torch.float32),
            integers(33, 5, low=-8, high=9, dtype=torch.float32),
            configurations=FLOATING_ONLY,
        ),
    ],
)

bmm = operator("aten.bmm.default", torch.bmm, [sample("rank3", normal(2, 3, 5), normal(2, 5, 4))])

matmul = operator(
    "aten.bmm.default",
    torch.matmul,
    [
        sample("heads", normal(1, 2, 3, 4), normal(1, 2, 4, 3)),
        sample("broadcast", normal(2, 3, 4), normal(4, 5), configurations=FLOATING_ONLY),
    ],
)

addmm = operator(
    "aten.addmm.default",
    torch.addmm,
    [
        sample("row", normal(35), normal(43, 17), normal(17, 35)),
        sample(
            "scaled",
            normal(3, 5),
            normal(3, 7),
            normal(7, 5),
            alpha=2.0,
            beta=0.5,
            configurations=FLOATING_ONLY,
        ),
    ],
)

# Shapes and layouts.

linear_shapes = layer(
    "aten.linear.default",
    nn.Linear,
    [
        sample("long", normal(2, 1030), args=(1030, 3), configurations=SEPARATE),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

bmm_shapes = operator(
    "aten.bmm.default",
    torch.bmm,
    [
        sample("odd", normal(3, 17, 65), normal(3, 65, 33)),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

matmul_shapes = operator(
    "aten.matmul.default",
    torch.matmul,
    [
        sample("matrices", normal(3, 7), normal(7, 5)),
        sample("matrix_and_vector", normal(3, 7), normal(7), configurations=FLOATING_ONLY),
        sample("batches", normal(2, 3, 4, 5), normal(2, 3, 5, 2)),
        sample("batch_broadcast", normal(2, 1, 3, 4), normal(3, 4, 2), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# Two vectors give a tensor of rank 0.
dot = operator(
    "aten.matmul.default",
    torch.matmul,
    [sample("vectors", normal(7), normal(7))],
    tier="nightly",
    configurations=SEPARATE,
    delegated=False,
)

# Exact data: whole numbers whose products and partial sums are representable, so that nothing may differ.

#: 4608 products of at most 32 * 32 in float32, 33 of 7 * 7 or 2048 ones in float16 and 33 of 2 * 2 in
#: bfloat16, which hold sums up to 2^24, 2^11 and 2^8.
mm_exact = operator(
    "aten.mm.default",
    torch.mm,
    [
        sample(
            "long_float32",
            integers(2, 4608, low=-32, high=33, dtype=torch.float32),
            integers(4608, 3, low=-32, high=33, dtype=torch.float32),
        ),
        sample(
            "float16",
            integers(3, 33, low=-7, high=8, dtype=torch.float16),
            integers(33, 5, low=-7, high=8, dtype=torch.float16),
        ),
        sample(
            "ones_float16",
            values([1.0] * 2 * 2048, 2, 2048, dtype=torch.float16),
            values([1.0] * 2048, 2048, 1, dtype=torch.float16),
        ),
        sample(
            "bfloat16",
            integers(3, 33, low=-2, high=3, dtype=torch.bfloat16),
            integers(33, 5, low=-2, high=3, dtype=torch.bfloat16),
            configurations=NARROW[torch.bfloat16],
        ),
        # So many of them are 0 that about 1150 and 100 products count.
        sample(
            "long_float16",
            sparse(2, 4608, share=0.5, dtype=torch.float16),
            sparse(4608, 3, share=0.5, dtype=torch.float16),
        ),
        sample(
            "long_bfloat16",
            sparse(2, 4608, share=0.15, dtype=torch.bfloat16),
            sparse(4608, 3, share=0.15, dtype=torch.bfloat16),
            configurations=NARROW[torch.bfloat16],
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

bmm_exact = operator(
    "aten.bmm.default",
    torch.bmm,
    [
        sample(
            "float32",
            integers(3, 5, 65, low=-8, high=9, dtype=torch.float32),
            integers(3, 65, 7, low=-8, high=9, dtype=torch.float32),
        ),
        sample(
            "float16",
            integers(3, 5, 65, low=-5, high=6, dtype=torch.float16),
            integers(3, 65, 7, low=-5, high=6, dtype=torch.float16),
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

linear_exact = layer(
    "aten.linear.default",
    lambda inputs, outputs, limit, dtype: with_whole_weights(nn.Linear(inputs, outputs), limit).to(dtype),
    [
        sample(
            "float32",
            integers(3, 128, low=-16, high=17, dtype=torch.float32),
            args=(128, 5, 16, torch.float32),
        ),
        sample(
            "float16", integers(3, 128, low=-3, high=4, dtype=torch.float16), args=(128, 5, 3, torch.float16)
        ),
        sample(
            "bfloat16",
            integers(3, 128, low=-1, high=2, dtype=torch.bfloat16),
            args=(128, 5, 1, torch.bfloat16),
            configurations=NARROW[torch.bfloat16],
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Values.

#: One row each: an infinity, infinities of both signs, a NaN, the largest number twice, zeros.
ROWS = values(
    [
        *[math.inf, 1.0, 1.0],
        *[math.inf, -math.inf, 1.0],
        *[math.nan, 0.0, 0.0],
        *[3.4028234663852886e38, 3.4028234663852886e38, 0.0],
        *[0.0, -0.0, 0.0],
    ],
    5,
    3,
)

mm_special = operator(
    "aten.mm.default",
    torch.mm,
    [
        sample("not_numbers_by_ones", ROWS, values([1.0] * 6, 3, 2)),
        # An infinity times zero is NaN.
        sample("not_numbers_by_zeros", ROWS, values([0.0] * 6, 3, 2)),
        sample("cancelling", values([1e8, 1.0, -1e8], 1, 3), values([1.0, 1.0, 1.0], 3, 1)),
        sample("denormals", stacked(normal(3, 7, scale=1e-39), normal(3, 7)), values([1.0] * 14, 7, 2)),
        sample("large", normal(3, 7, scale=1e18), normal(7, 2, scale=1e18)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

bmm_special = operator(
    "aten.bmm.default",
    torch.bmm,
    [
        sample(
            "not_numbers",
            values([math.inf, 1.0, 1.0, math.nan, -math.inf, 0.0, 2.0, 2.0], 2, 2, 2),
            values([1.0] * 8, 2, 2, 2),
        )
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

addmm_special = operator(
    "aten.addmm.default",
    torch.addmm,
    [
        sample(
            "not_numbers",
            values([math.inf, -math.inf]),
            values([math.inf, 1.0, math.nan, 0.0, 2.0, 3.0], 3, 2),
            values([1.0] * 4, 2, 2),
        )
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

linear_special = layer(
    "aten.linear.default",
    nn.Linear,
    [sample("not_numbers", ROWS, args=(3, 4)), sample("large", normal(3, 7, scale=1e30), args=(7, 4))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Types and schemes beside float32 and int8.

linear_a8w4 = quantised(linear, "a8w4", "rank2", "rank3_no_bias")
linear_a16w8 = quantised(linear, "a16w8", "rank2")

# TOSA has products of int8 alone, not of int32.
mm_int32 = operator(
    "aten.mm.default",
    torch.mm,
    [sample("small", integers(3, 5, low=-9, high=10), integers(5, 2, low=-9, high=10))],
    tier="nightly",
    configurations=INTEGER,
    delegated=False,
)
