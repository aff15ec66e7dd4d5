"""Operators that move, cut and join data without computing: exact in every profile.

Covered: ranks 1 to 5, transposed and channels_last inputs, negative dimensions, uneven pieces,
several outputs, padding with zero and with another value. Float data in FP and quantised; int32
where an integer program commonly has the operator.
"""

import torch
from torch.nn import functional as F

from vgf_conformance.cases.case import COMBINED, FLOATING_ONLY, INTEGER_ONLY, operator, sample
from vgf_conformance.cases.inputs import booleans, integers, normal

NOT_YET_COVERED = (
    "aten.alias_copy.default",
    "aten.as_strided_copy.default",
    "aten.copy.default",
    "aten.detach_copy.default",
    "aten.pad.default",
    "aten.slice_scatter.default",
    "aten.split_copy.Tensor",
    "aten.unfold_copy.default",
)

permute = operator(
    "aten.permute_copy.default",
    torch.permute,
    [
        sample("rank3", normal(2, 3, 5), dims=(2, 0, 1), configurations=COMBINED),
        sample("rank4_channels_last", normal(1, 3, 4, 5, channels_last=True), dims=(0, 2, 3, 1)),
        sample("rank5", normal(1, 2, 3, 4, 2), dims=(4, 2, 0, 3, 1), configurations=FLOATING_ONLY),
        sample("int32", integers(3, 5, low=-1000, high=1000), dims=(1, 0), configurations=INTEGER_ONLY),
    ],
)

# A change of shape alone leaves nothing to delegate: the backend declines a partition that its
# lowering would empty. So what has a new shape is negated, which is exact in float.

reshape = operator(
    "aten.view_copy.default",
    lambda tensor, shape: -torch.reshape(tensor, shape),
    [
        sample("rank3_to_rank2", normal(2, 3, 4), shape=(6, 4)),
        sample("rank1_to_rank5", normal(24), shape=(2, 1, 3, 2, 2), configurations=FLOATING_ONLY),
        sample("transposed", normal(6, 4, transposed=True), shape=(8, 3), configurations=FLOATING_ONLY),
    ],
)

cat = operator(
    "aten.cat.default",
    lambda *tensors, dim: torch.cat(tensors, dim),
    [
        # Ranges that differ by ten: one scale must serve both.
        sample("unlike_ranges", normal(2, 3, scale=10.0), normal(2, 5), dim=1),
        sample("three_rank4", normal(1, 1, 2, 3), normal(1, 2, 2, 3), normal(1, 3, 2, 3), dim=-3),
        sample(
            "int32",
            integers(2, 3, low=-9, high=9),
            integers(1, 3, low=-9, high=9),
            dim=0,
            configurations=INTEGER_ONLY,
        ),
    ],
)

stack = operator(
    "aten.cat.default",
    lambda *tensors, dim: torch.stack(tensors, dim),
    [sample("inner", normal(3, 4), normal(3, 4), dim=1)],
)

slice = operator(
    "aten.slice_copy.Tensor",
    lambda tensor, dim, start, end, step: torch.ops.aten.slice.Tensor(tensor, dim, start, end, step),
    [
        sample("middle", normal(3, 9), dim=1, start=2, end=7, step=1),
        sample("every_third", normal(11, 2), dim=0, start=1, end=11, step=3),
        sample("from_the_end", normal(3, 9), dim=-1, start=-4, end=-1, step=1, configurations=FLOATING_ONLY),
    ],
)

select = operator(
    "aten.select_copy.int", torch.select, [sample("last_of_middle", normal(2, 3, 4), dim=1, index=-1)]
)

split = operator(
    "aten.split_with_sizes_copy.default",
    torch.split,
    [sample("uneven", normal(2, 7), split_size_or_sections=(1, 4, 2), dim=1)],
)

pad = operator(
    "aten.constant_pad_nd.default",
    F.pad,
    [
        sample("zero", normal(1, 2, 3, 3), pad=(1, 2, 0, 1)),
        sample("valued", normal(3, 4), pad=(2, 1), value=1.5),
    ],
)

repeat = operator(
    "aten.repeat.default",
    lambda tensor, repeats: tensor.repeat(repeats),
    [
        sample("rank2", normal(2, 3), repeats=(2, 3)),
        # More repeats than dimensions put new ones in front.
        sample("new_dimension", normal(3), repeats=(2, 1, 2), configurations=FLOATING_ONLY),
    ],
)

expand = operator(
    "aten.expand_copy.default",
    lambda tensor, size: tensor.expand(size),
    [sample("two_dimensions", normal(1, 3, 1), size=(2, 3, 4))],
)

flip = operator("aten.flip.default", torch.flip, [sample("two_dimensions", normal(2, 3, 4), dims=(0, 2))])

unsqueeze = operator(
    "aten.unsqueeze_copy.default",
    lambda tensor, dim: -torch.unsqueeze(tensor, dim),
    [sample("inner", normal(3, 5), dim=1)],
)

squeeze = operator(
    "aten.squeeze_copy.dims",
    lambda tensor, dim: -torch.squeeze(tensor, dim),
    [sample("two", normal(3, 1, 5, 1), dim=(1, 3))],
)

pixel_shuffle = operator(
    "aten.pixel_shuffle.default", F.pixel_shuffle, [sample("twice", normal(1, 8, 3, 2), upscale_factor=2)]
)

mask_transpose = operator(
    "aten.permute_copy.default",
    torch.transpose,
    [sample("boolean", booleans(3, 5), dim0=0, dim1=1)],
    configurations=INTEGER_ONLY,
)
