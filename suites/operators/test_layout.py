"""Operators that move, cut and join data without computing: exact in every profile.

Covered: ranks 1 to 5, transposed and channels_last inputs, negative dimensions, uneven pieces,
several outputs, padding with zero and with another value. Float data in FP and quantised; int32
where an integer program commonly has the operator.
"""

import torch
from torch.nn import functional as F

from vgf_conformance.cases.case import COMBINED, FLOATING_ONLY, INTEGER_ONLY, narrow, operator, sample
from vgf_conformance.cases.inputs import booleans, integers, normal

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

# A copy alone leaves nothing to delegate either.

alias_copy = operator(
    "aten.alias_copy.default",
    lambda tensor: -torch.ops.aten.alias_copy.default(tensor),
    [sample("rank2", normal(3, 5))],
    tier="nightly",
)

detach_copy = operator(
    "aten.detach_copy.default",
    lambda tensor: -torch.ops.aten.detach_copy.default(tensor),
    [sample("rank2", normal(3, 5))],
    tier="nightly",
)

copy = operator(
    "aten.copy.default",
    lambda tensor, source: tensor - torch.ops.aten.copy.default(tensor, source),
    [
        sample("same", normal(3, 5), normal(3, 5)),
        sample("broadcast", normal(3, 5), normal(5), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

# Of what is written over only the shape counts: an input of the program that its graph does not read.
copy_over = operator(
    "aten.copy.default",
    lambda tensor, source: -torch.ops.aten.copy.default(tensor, source),
    [sample("same", normal(3, 5), normal(3, 5))],
    tier="nightly",
)

as_strided = operator(
    "aten.as_strided_copy.default",
    lambda tensor, size, stride: -torch.as_strided(tensor, size, stride),
    [
        sample("reshaped", normal(4, 6), size=(3, 8), stride=(8, 1)),
        # Part of the memory only.
        sample("front", normal(24), size=(2, 3), stride=(3, 1), configurations=FLOATING_ONLY),
        sample("every_second", normal(8), size=(4,), stride=(2,), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

# Overlapping rows, and what does not begin at the first element: left to the CPU.
as_strided_apart = operator(
    "aten.as_strided_copy.default",
    torch.as_strided,
    [
        sample("overlapping", normal(8), size=(3, 4), stride=(2, 1)),
        sample("offset", normal(24), size=(2, 3), stride=(3, 1), storage_offset=4),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
    delegated=False,
)

pad_modes = operator(
    "aten.pad.default",
    F.pad,
    [
        sample("constant", normal(1, 2, 3, 3), pad=(1, 2, 0, 1), mode="constant", value=-0.5),
        sample("reflect", normal(1, 2, 4, 4), pad=(1, 2, 2, 1), mode="reflect"),
        sample("replicate", normal(1, 2, 4, 4), pad=(1, 2, 2, 1), mode="replicate"),
        sample("circular", normal(1, 2, 4, 4), pad=(1, 2, 2, 1), mode="circular"),
        # Less than nothing: a slice.
        sample("cropped", normal(1, 2, 4, 4), pad=(-1, 0, 1, -2), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

slice_scatter = operator(
    "aten.slice_scatter.default",
    torch.slice_scatter,
    [
        sample("middle", normal(3, 9), normal(3, 5), dim=1, start=2, end=7),
        sample(
            "every_second",
            normal(8, 3),
            normal(3, 3),
            dim=0,
            start=1,
            end=7,
            step=2,
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
)

split_even = operator(
    "aten.split_copy.Tensor",
    torch.split,
    # The last piece is smaller.
    [sample("remainder", normal(2, 7), split_size_or_sections=3, dim=1)],
    tier="nightly",
)

unfold = operator(
    "aten.unfold_copy.default",
    lambda tensor, dim, size, step: tensor.unfold(dim, size, step),
    [
        sample("overlapping", normal(2, 7), dim=-1, size=3, step=2),
        sample("first_of_rank3", normal(6, 2, 3), dim=0, size=2, step=2, configurations=FLOATING_ONLY),
        sample("int32", integers(2, 7, low=-9, high=9), dim=1, size=3, step=1, configurations=INTEGER_ONLY),
    ],
    tier="nightly",
)

# The operators that are documented for float16 and bfloat16.

permute_narrow = narrow(permute, "rank3")
reshape_narrow = narrow(reshape, "rank3_to_rank2")
cat_narrow = narrow(cat, "unlike_ranges")
slice_narrow = narrow(slice, "middle")
pad_narrow = narrow(pad, "zero")
repeat_narrow = narrow(repeat, "rank2")
alias_copy_narrow = narrow(alias_copy, "rank2")
pad_modes_narrow = narrow(pad_modes, "reflect")
unfold_narrow = narrow(unfold, "overlapping")
