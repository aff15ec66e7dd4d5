"""Reductions along one dimension and along several, and the running sum.

Covered: kept and dropped dimensions, ranks 1 to 5, odd lengths, exact data (small integers in
float32, whose sums leave no room for tolerance), booleans, ties in argmax, infinities and NaN.
"""

import math

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
        sample("last", normal(3, 7), dim=-1),
        sample("special", special_values(), dim=0, keepdim=True, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

min_dim = operator(
    "aten.min.dim",
    lambda tensor, dim, keepdim=False: torch.min(tensor, dim, keepdim).values,
    [
        sample("last", normal(3, 7), dim=-1),
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
