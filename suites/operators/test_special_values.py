"""NaN, infinities, signed zeros, the largest and the smallest numbers, where other samples lack them.

Covered: what moves data, under each of its names; windows and products; norms, reductions and softmax.
Special values of all other operators stand beside their other samples.
"""

import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, layer, operator, sample
from vgf_conformance.cases.inputs import Tensor, normal, stacked, values
from vgf_conformance.cases.weights import with_drawn_norms

NUMBERS = (1.0, -2.0, math.inf, -math.inf, math.nan, 0.0, -0.0, 3.4e38, -3.4e38, 1e-39, 0.5, -0.25)


def special(*shape: int) -> Tensor:
    """NUMBERS, again and again."""
    return values([*itertools.islice(itertools.cycle(NUMBERS), math.prod(shape))], *shape)


# What only moves data: negated where a copy alone would not be lowered.

alias_copy = operator(
    "aten.alias_copy.default",
    lambda tensor: -torch.ops.aten.alias_copy.default(tensor),
    [sample("special", special(3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
as_strided_copy = operator(
    "aten.as_strided_copy.default",
    lambda tensor: -torch.as_strided(tensor, (2, 6), (6, 1)),
    [sample("special", special(3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
copy = operator(
    "aten.copy.default",
    lambda tensor, source: tensor - torch.ops.aten.copy.default(tensor, source),
    [sample("special", normal(3, 4), special(3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
detach_copy = operator(
    "aten.detach_copy.default",
    lambda tensor: -torch.ops.aten.detach_copy.default(tensor),
    [sample("special", special(3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
expand_copy = operator(
    "aten.expand_copy.default",
    lambda tensor, size: tensor.expand(size),
    [sample("special", special(1, 3, 4), size=(2, 3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
permute_copy = operator(
    "aten.permute_copy.default",
    torch.permute,
    [sample("special", special(3, 4), dims=(1, 0))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
select_copy = operator(
    "aten.select_copy.int",
    torch.select,
    [sample("special", special(3, 4), dim=0, index=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
slice_copy = operator(
    "aten.slice_copy.Tensor",
    lambda tensor, start: tensor[:, start:],
    [sample("special", special(3, 4), start=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
split_copy = operator(
    "aten.split_copy.Tensor",
    torch.split,
    [sample("special", special(3, 4), split_size_or_sections=3, dim=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
squeeze_every = operator(
    "aten.squeeze.default",
    lambda tensor: -torch.squeeze(tensor),
    [sample("special", special(3, 1, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
squeeze_one = operator(
    "aten.squeeze.dim",
    lambda tensor, dim: -torch.squeeze(tensor, dim),
    [sample("special", special(3, 1, 4), dim=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
squeeze_copy = operator(
    "aten.squeeze_copy.dims",
    lambda tensor, dim: -torch.squeeze(tensor, dim),
    [sample("special", special(3, 1, 4, 1), dim=(1, 3))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
t_copy = operator(
    "aten.t_copy.default",
    lambda tensor: -torch.t(tensor),
    [sample("special", special(3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
unsqueeze = operator(
    "aten.unsqueeze.default",
    lambda tensor, dim: -torch.unsqueeze(tensor, dim),
    [sample("special", special(3, 4), dim=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
unsqueeze_copy = operator(
    "aten.unsqueeze_copy.default",
    lambda tensor, dim: -torch.unsqueeze(tensor, dim),
    [sample("special", special(3, 4), dim=-1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
view_copy = operator(
    "aten.view_copy.default",
    lambda tensor, shape: -torch.reshape(tensor, shape),
    [sample("special", special(3, 4), shape=(2, 6))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
pixel_shuffle = operator(
    "aten.pixel_shuffle.default",
    F.pixel_shuffle,
    [sample("special", special(1, 4, 3, 1), upscale_factor=2)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
full_like = operator(
    "aten.full_like.default",
    lambda tensor, fill_value: tensor - torch.full_like(tensor, fill_value),
    [sample("infinite", normal(3, 4), fill_value=math.inf)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
scatter = operator(
    "aten.scatter.src",
    lambda tensor, index, source: torch.scatter(tensor, 1, index, source),
    [sample("special", normal(3, 5), values([4, 0, 1, 2, 3, 0], 3, 2, dtype=torch.int64), special(3, 2))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)


def _put_in_place(tensor: torch.Tensor, rows: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    own = tensor * 1.5
    own[rows] = new
    return own


index_put_in_place = operator(
    "aten.index_put_.default",
    _put_in_place,
    [sample("special", normal(5, 6), values([3, 0], dtype=torch.int32), special(2, 6))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

# Windows and products: what is not finite spreads as far as the window reaches, and no farther.

conv1d = layer(
    "aten.conv1d.default",
    nn.Conv1d,
    [sample("special", special(1, 2, 24), args=(2, 3, 3))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
conv3d = layer(
    "aten.conv3d.default",
    nn.Conv3d,
    [sample("special", special(1, 1, 3, 4, 4), args=(1, 2, 2))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
matmul = operator(
    "aten.matmul.default",
    torch.matmul,
    [sample("special", special(4, 3), normal(3, 2))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
max_pool1d = operator(
    "aten.max_pool1d.default",
    F.max_pool1d,
    [sample("special", special(1, 1, 24), kernel_size=2)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
max_pool2d_with_indices = operator(
    "aten.max_pool2d_with_indices.default",
    lambda tensor, **window: F.max_pool2d(tensor, **window, return_indices=True)[0],
    [sample("special", special(1, 1, 6, 6), kernel_size=2)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

# Norms, reductions and softmax: a row that holds NaN or both infinities has no other answer than NaN.

batch_norm = layer(
    "aten._native_batch_norm_legit_no_training.default",
    lambda channels: with_drawn_norms(nn.BatchNorm2d(channels)),
    [sample("special", stacked(special(1, 3, 2, 4), normal(1, 3, 2, 4)), args=(3,))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
group_norm = layer(
    "aten.native_group_norm.default",
    lambda groups, channels: with_drawn_norms(nn.GroupNorm(groups, channels)),
    [sample("nan_in_one", values([1.0, 2.0, 4.0, 3.0, math.nan, 1.0, 2.0, 0.5], 1, 4, 2), args=(2, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
layer_norm = layer(
    "aten.native_layer_norm.default",
    lambda *shape: with_drawn_norms(nn.LayerNorm(shape)),
    [sample("nan_in_one", values([1.0, 2.0, 4.0, math.nan, 1.0, 2.0], 2, 3), args=(3,))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
rms_norm = layer(
    "aten.rms_norm.default",
    lambda *shape: with_drawn_norms(nn.RMSNorm(shape)),
    [sample("nan_in_one", values([1.0, 2.0, 4.0, math.nan, 1.0, 2.0], 2, 3), args=(3,))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
mean = operator(
    "aten.mean.default",
    torch.mean,
    [sample("infinity", values([1.0, math.inf, 2.0])), sample("nan", values([1.0, math.nan, 2.0]))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
sum_of_all = operator(
    "aten.sum.default",
    torch.sum,
    [sample("infinity", values([1.0, -math.inf, 2.0])), sample("nan", values([1.0, math.nan, 2.0]))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
max_of_all = operator(
    "aten.max.default",
    torch.max,
    [sample("nan", values([1.0, math.nan, 2.0]))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)
prod_of_all = operator(
    "aten.prod.default",
    torch.prod,
    [sample("infinity", values([2.0, -math.inf, 3.0]))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)
var = operator(
    "aten.var.dim",
    torch.ops.aten.var.dim,
    [sample("nan_in_one", values([1.0, 2.0, 4.0, math.nan, 1.0, 2.0], 2, 3), dim=[-1], unbiased=True)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
softmax = operator(
    "aten.softmax.int",
    torch.softmax,
    [sample("masked", values([1.0, -math.inf, 2.0, math.nan, 0.0, 1.0], 2, 3), dim=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
log_softmax = operator(
    "aten.log_softmax.int",
    torch.log_softmax,
    [sample("masked", values([1.0, -math.inf, 2.0, math.nan, 0.0, 1.0], 2, 3), dim=1)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
remainder = operator(
    "aten.remainder.Scalar",
    torch.remainder,
    [sample("special", special(3, 4), other=1.5)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
