"""Reductions along one dimension and along several, and the running sum.

Covered: kept and dropped dimensions, ranks 1 to 5, odd lengths, exact data (small integers in
float32, whose sums leave no room for tolerance), booleans, ties in argmax, infinities and NaN.
"""

import math

import torch

from vgf_conformance.cases.case import COMBINED, FLOATING_ONLY, INTEGER, operator, sample
from vgf_conformance.cases.inputs import booleans, integers, normal, special_values, uniform, values

NOT_YET_COVERED = (
    "aten.any.default",
    "aten.any.dims",
    "aten.max.dim",
    "aten.mean.default",
    "aten.min.dim",
    "aten.var.dim",
)

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
        sample("last", normal(3, 7), dim=-1),
        sample("spatial_channels_last", normal(1, 3, 4, 5, channels_last=True), dim=(2, 3), keepdim=True),
    ],
)

amax = operator(
    "aten.amax.default",
    torch.amax,
    [
        sample("last", normal(3, 7), dim=-1),
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
        sample("last", normal(3, 7), dim=-1),
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
    [sample("last", normal(3, 7), dim=-1)],
    configurations=FLOATING_ONLY,
    delegated=False,
    budget=None,
)

var = operator(
    "aten.var.correction",
    torch.var,
    [
        sample("unbiased", normal(3, 7), dim=-1, correction=1),
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
        sample("last", normal(3, 7), dim=-1),
        sample(
            "exact", integers(9, 3, low=-8, high=9, dtype=torch.float32), dim=0, configurations=FLOATING_ONLY
        ),
    ],
)
