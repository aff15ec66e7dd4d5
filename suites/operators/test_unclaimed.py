"""Operators and forms outside of the backend's claims, and outside of a profile: left to the CPU, and right.

Each stands behind a claimed neighbour, a relu, so that the program is partly delegated and runs as a
whole: in FP, and some in INT with the neighbour quantised. Some stand alone as well, where nothing is
left to delegate. An operator that is composed of claimed ones may be delegated all the same.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, Case, Configuration, operator, sample
from vgf_conformance.cases.inputs import (
    Draw,
    booleans,
    integers,
    normal,
    special_values,
    uniform,
    values,
)


def behind_relu(
    name: str,
    function: Callable[..., Any],
    *draws: Draw | object,
    configurations: tuple[Configuration, ...] = FLOATING_ONLY,
    **keywords: Any,
) -> Case:
    """``function`` of a relu: something is delegated, and the operator is not."""
    return operator(
        name,
        lambda tensor, *others, **options: function(torch.relu(tensor), *others, **options),
        [sample("behind_relu", *draws, **keywords)],
        tier="nightly",
        configurations=configurations,
        # The operator's own answer to a quantised input is not what is asked here.
        budget=None,
    )


def alone(
    name: str,
    function: Callable[..., Any],
    *draws: Draw | object,
    configurations: tuple[Configuration, ...] = FLOATING_ONLY,
    **keywords: Any,
) -> Case:
    """``function`` with nothing beside it: the whole program is left to the CPU."""
    return operator(
        name,
        function,
        [sample("alone", *draws, **keywords)],
        tier="nightly",
        configurations=configurations,
        delegated=False,
        budget=None,
    )


def taken(*declaration: Any, **options: Any) -> Case:
    """As ``alone``, of what the backend does not claim and delegates all the same."""
    return replace(alone(*declaration, **options), delegated=True)


def _pair(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, whose two results have names, with a plain tuple of them."""

    def plain(*inputs: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = function(*inputs, **options)
        return first, second

    return plain


#: Two places in each of two rows.
INDEX = values([0, 2, 3, 1], 2, 2, dtype=torch.int64)

# Sorting and selecting.

topk = behind_relu("aten.topk.default", _pair(torch.topk), normal(3, 8), k=3, configurations=SEPARATE)
sort = behind_relu("aten.sort.default", _pair(torch.sort), normal(3, 8), configurations=SEPARATE)
argmin = behind_relu("aten.argmin.default", torch.argmin, normal(3, 7), dim=1, configurations=SEPARATE)
topk_alone = alone("aten.topk.default", _pair(torch.topk), normal(3, 8), k=3)
sort_alone = alone("aten.sort.default", _pair(torch.sort), special_values())
argmin_alone = alone("aten.argmin.default", torch.argmin, integers(9, low=-9, high=9))

# As torch returns it: a tuple with names.
topk_named = alone("aten.topk.default", torch.topk, normal(4, 6), k=2)

# How many results there are depends on the values.

nonzero = behind_relu("aten.nonzero.default", torch.nonzero, normal(3, 5), configurations=SEPARATE)
nonzero_alone = alone("aten.nonzero.default", torch.nonzero, booleans(9))

# Reductions and scattering.

prod = behind_relu("aten.prod.default", torch.prod, uniform(3, 5, low=0.5, high=2.0))
scatter = behind_relu(
    "aten.scatter.src",
    lambda x, index, source: torch.scatter(x, 1, index, source),
    normal(2, 4),
    INDEX,
    normal(2, 2),
    configurations=SEPARATE,
)

scatter_value = behind_relu(
    "aten.scatter.value", lambda x, index: torch.scatter(x, 1, index, -1.5), normal(2, 4), INDEX
)

scatter_add = behind_relu(
    "aten.scatter_add.default",
    lambda x, index, source: torch.scatter_add(x, 1, index, source),
    normal(2, 4),
    INDEX,
    normal(2, 2),
    configurations=SEPARATE,
)

scatter_reduce = behind_relu(
    "aten.scatter_reduce.two",
    lambda x, index, source: torch.scatter_reduce(x, 1, index, source, "amax"),
    normal(2, 4),
    INDEX,
    normal(2, 2),
)

masked_scatter = behind_relu(
    "aten.masked_scatter.default", torch.masked_scatter, normal(6), booleans(6), normal(6)
)

# Distances and transforms.

cdist = behind_relu(
    "aten._cdist_forward.default", torch.cdist, normal(3, 4), normal(5, 4), configurations=SEPARATE
)

pdist = behind_relu("aten._pdist_forward.default", F.pdist, normal(4, 3))
fft = behind_relu(
    "aten._fft_r2c.default",
    lambda x: torch.view_as_real(torch.fft.rfft(x)),
    normal(2, 8),
    configurations=SEPARATE,
)

fft_alone = alone("aten._fft_r2c.default", lambda x: torch.fft.rfft(x).abs(), normal(2, 8))

# Functions element by element.

atan2 = behind_relu("aten.atan2.default", torch.atan2, normal(3, 5), normal(3, 5), configurations=SEPARATE)
fmod = behind_relu("aten.fmod.Tensor", torch.fmod, normal(3, 5), uniform(5, low=0.5, high=2.0))
fmod_scalar = behind_relu("aten.fmod.Scalar", torch.fmod, normal(3, 5), other=0.75)
trunc = behind_relu("aten.trunc.default", torch.trunc, normal(3, 5, scale=4.0), configurations=SEPARATE)
log2 = behind_relu("aten.log2.default", torch.log2, uniform(3, 5, low=0.5, high=4.0))
pow_of_number = behind_relu("aten.pow.Scalar", lambda x: torch.pow(2.0, x), normal(3, 5))
atan2_alone = alone("aten.atan2.default", torch.atan2, special_values(), special_values(column=True))
log2_alone = alone("aten.log2.default", torch.log2, special_values())
trunc_alone = alone(
    "aten.trunc.default", torch.trunc, values([0.5, -0.5, 1.5, -2.7, 8388607.5, -0.0, math.inf, math.nan])
)

fmod_alone = alone(
    "aten.fmod.Tensor", torch.fmod, values([5.0, -5.0, 5.0, 5.5, 1e10]), values([3.0, 3.0, -3.0, 0.0, 3.0])
)

# A comparison and an absolute value tell them: claimed, or left to the CPU.
isnan = alone("aten.isnan.default", torch.isnan, special_values())
isinf = alone("aten.isinf.default", torch.isinf, special_values())
isfinite = taken("aten.isfinite.default", torch.isfinite, special_values())
nan_to_num = alone("aten.nan_to_num.default", torch.nan_to_num, special_values())

# Layers.

max_pool3d = behind_relu(
    "aten.max_pool3d_with_indices.default",
    F.max_pool3d,
    normal(1, 2, 4, 4, 4),
    kernel_size=2,
    configurations=SEPARATE,
)

avg_pool3d = behind_relu("aten.avg_pool3d.default", F.avg_pool3d, normal(1, 2, 4, 4, 4), kernel_size=2)
adaptive_avg_pool3d = behind_relu(
    "aten._adaptive_avg_pool3d.default", F.adaptive_avg_pool3d, normal(1, 2, 4, 4, 4), output_size=2
)

fold = behind_relu("aten.col2im.default", F.fold, normal(1, 8, 4), output_size=(3, 3), kernel_size=2)
reflection_pad = behind_relu(
    "aten.reflection_pad2d.default",
    F.pad,
    normal(1, 2, 4, 5),
    pad=(1, 2, 2, 1),
    mode="reflect",
    configurations=SEPARATE,
)

replication_pad = behind_relu(
    "aten.replication_pad2d.default", F.pad, normal(1, 2, 4, 5), pad=(1, 2, 2, 1), mode="replicate"
)

# Composed of others before the backend sees them.

composed_roll = behind_relu("aten.roll.default", torch.roll, normal(3, 5), shifts=2, dims=1)
composed_rot90 = behind_relu("aten.rot90.default", torch.rot90, normal(3, 5))
composed_softplus = behind_relu("aten.softplus.default", F.softplus, normal(3, 5))
composed_mish = behind_relu("aten.mish.default", F.mish, normal(3, 5))
composed_frac = alone("aten.frac.default", torch.frac, normal(3, 5, scale=4.0))
composed_heaviside = alone("aten.heaviside.default", torch.heaviside, normal(3, 5), values([0.5]))
composed_logaddexp = behind_relu("aten.logaddexp.default", torch.logaddexp, normal(3, 5), normal(3, 5))

# Not in core ATen: the check of the edge program refuses the whole of it, on the CPU or not.

noncore_median = alone("aten.median.dim", _pair(torch.median), normal(3, 7), dim=1)
noncore_mode = alone("aten.mode.default", _pair(torch.mode), values([1, 2, 2]))
noncore_kthvalue = alone("aten.kthvalue.default", _pair(torch.kthvalue), normal(3, 7), k=2)
noncore_searchsorted = alone(
    "aten.searchsorted.Tensor", torch.searchsorted, values([1, 2, 3, 4]), uniform(5, high=5.0)
)

noncore_unique = alone("aten._unique2.default", torch.unique, values([1, 2, 2, 3, 3, 3]))
noncore_bincount = alone("aten.bincount.default", torch.bincount, integers(9, low=0, high=4))
noncore_cumprod = alone("aten.cumprod.default", torch.cumprod, uniform(3, 5, high=2.0), dim=1)
noncore_logcumsumexp = alone("aten.logcumsumexp.default", torch.logcumsumexp, normal(3, 5), dim=1)
noncore_inverse = alone("aten.linalg_inv_ex.default", torch.linalg.inv, values([2.0, 0.0, 0.0, 4.0], 2, 2))
noncore_lgamma = alone("aten.lgamma.default", torch.lgamma, uniform(3, 5, low=0.5, high=4.0))
noncore_erfc = alone("aten.erfc.default", torch.erfc, normal(3, 5))
noncore_hypot = alone("aten.hypot.default", torch.hypot, normal(3, 5), normal(3, 5))
noncore_nextafter = alone("aten.nextafter.default", torch.nextafter, normal(3, 5), normal(3, 5))

# Types that TOSA has not.

INT64 = values([1, 2**40, -3], dtype=torch.int64)
EVERY_PROFILE = (("FP", "none"), ("INT", "none"))

int64_add = alone(
    "aten.add.Tensor", torch.add, INT64, values([5, 6, 7], dtype=torch.int64), configurations=EVERY_PROFILE
)

int64_mul = alone("aten.mul.Tensor", lambda x: x * 2, INT64, configurations=EVERY_PROFILE)

# The sum is int64, and int32 from there on.
int64_then_int32 = alone(
    "aten.add.Tensor",
    lambda x: (x + 1).to(torch.int32) + 1,
    values([5, -5, 7], dtype=torch.int64),
    configurations=EVERY_PROFILE,
)

float64_add = alone(
    "aten.add.Tensor", torch.add, normal(3, 5, dtype=torch.float64), normal(3, 5, dtype=torch.float64)
)

float64_conv = alone(
    "aten.convolution.default",
    F.conv2d,
    normal(1, 2, 5, 5, dtype=torch.float64),
    normal(3, 2, 3, 3, dtype=torch.float64),
)

# Beside float32, which is delegated.
float64_beside = operator(
    "aten.exp.default",
    lambda one, two: (torch.exp(one), torch.exp(two)),
    [sample("float32_and_float64", normal(3, 5), normal(3, 5, dtype=torch.float64))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

complex_mul = alone(
    "aten.mul.Tensor", lambda x: torch.view_as_real(torch.view_as_complex(x) * 2.0), normal(3, 2)
)

uint8_add = alone(
    "aten.add.Tensor",
    torch.add,
    values([250, 5, 0], dtype=torch.uint8),
    values([10, 5, 255], dtype=torch.uint8),
    configurations=EVERY_PROFILE,
)

# Ranks that TOSA has not: its tensors end at 6 dimensions.
rank7_add = alone("aten.add.Tensor", torch.add, normal(1, 2, 1, 2, 1, 2, 2), normal(2))
rank7_permute = alone(
    "aten.permute.default", lambda x: x.permute(6, 5, 4, 3, 2, 1, 0) + 1.0, normal(1, 2, 1, 2, 1, 2, 3)
)

# Outside of a profile: floating point that nobody quantised, in INT, and bfloat16 without its extension.

UNQUANTISED = (("INT", "none"),)

add_in_int = alone("aten.add.Tensor", torch.add, normal(3, 5), normal(3, 5), configurations=UNQUANTISED)
sin_in_int = alone("aten.sin.default", torch.sin, normal(3, 5), configurations=UNQUANTISED)
exp_in_int = alone("aten.exp.default", torch.exp, normal(3, 5), configurations=UNQUANTISED)
softmax_in_int = alone("aten._softmax.default", F.softmax, normal(3, 5), dim=-1, configurations=UNQUANTISED)
mm_in_int = alone("aten.mm.default", torch.mm, normal(3, 5), normal(5, 2), configurations=UNQUANTISED)
conv2d_in_int = alone(
    "aten.convolution.default",
    F.conv2d,
    normal(1, 2, 5, 5),
    normal(3, 2, 3, 3),
    configurations=UNQUANTISED,
)

max_pool2d_in_int = alone(
    "aten.max_pool2d.default", F.max_pool2d, normal(1, 2, 4, 4), kernel_size=2, configurations=UNQUANTISED
)

gelu_in_int = alone("aten.gelu.default", F.gelu, normal(3, 5), configurations=UNQUANTISED)
cast_in_int = alone(
    "aten._to_copy.default", lambda x: x.to(torch.int32), normal(3, 5, scale=9.0), configurations=UNQUANTISED
)

permute_in_int = alone(
    "aten.permute.default", lambda x: x.permute(1, 0).contiguous(), normal(3, 5), configurations=UNQUANTISED
)

add_bfloat16_in_fp = alone(
    "aten.add.Tensor", torch.add, normal(3, 5, dtype=torch.bfloat16), normal(3, 5, dtype=torch.bfloat16)
)

conv2d_bfloat16_in_fp = alone(
    "aten.convolution.default",
    F.conv2d,
    normal(1, 2, 5, 5, dtype=torch.bfloat16),
    normal(3, 2, 3, 3, dtype=torch.bfloat16),
)

int32_floor_divide_in_fp = taken(
    "aten.floor_divide.default",
    torch.floor_divide,
    values([7, -7, 7, -7], dtype=torch.int32),
    values([2, 2, -2, -2], dtype=torch.int32),
)

int32_bitwise_in_fp = alone(
    "aten.bitwise_and.Tensor",
    torch.bitwise_and,
    values([12, -1, 0], dtype=torch.int32),
    values([10, 255, 7], dtype=torch.int32),
)

# int16 activations in a profile without the extension for them.
a16w8_in_int = taken(
    "aten.add.Tensor", torch.add, normal(3, 5), normal(3, 5), configurations=(("INT", "a16w8"),)
)
