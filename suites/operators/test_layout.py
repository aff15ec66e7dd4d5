"""Operators that move, cut and join data without computing: exact in every profile.

Covered: ranks 0 to 6, transposed and channels_last inputs, negative dimensions, dimensions of size 1
and of size 0, uneven pieces, several outputs, padding with zero, with another value and with
infinity, special values and denormals, which must come out as they went in, int32, int8 and
booleans, constants that the program makes, float16, bfloat16 and a16w8. An operator is named as the
documentation names it (`permute`) where that differs from what the backend sees (`permute_copy`).
"""

import math

import torch
from torch.nn import functional as F

from vgf_conformance.cases.case import (
    COMBINED,
    FLOATING_ONLY,
    INTEGER_ONLY,
    SEPARATE,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import booleans, integers, normal, ramp, special_values, values

permute = operator(
    "aten.permute_copy.default",
    torch.permute,
    [
        sample("rank3", normal(2, 3, 5), dims=(2, 0, 1), configurations=COMBINED),
        sample("rank4_channels_last", normal(1, 3, 4, 5, channels_last=True), dims=(0, 2, 3, 1)),
        # No axis of size 1: the backend leaves such axes out, and nothing of rank 5 would be left.
        sample("rank5", normal(5, 2, 3, 4, 2), dims=(4, 2, 0, 3, 1), configurations=SEPARATE),
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
        sample("unlike_ranges", normal(2, 203, scale=10.0), normal(2, 105), dim=1),
        sample("three_rank4", normal(1, 1, 2, 103), normal(1, 2, 2, 103), normal(1, 3, 2, 103), dim=-3),
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
    [sample("inner", normal(3, 104), normal(3, 104), dim=1)],
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
    "aten.select_copy.int", torch.select, [sample("last_of_middle", normal(2, 3, 104), dim=1, index=-1)]
)

split = operator(
    "aten.split_with_sizes_copy.default",
    torch.split,
    [sample("uneven", normal(52, 7), split_size_or_sections=(1, 4, 2), dim=1)],
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
    [sample("two_dimensions", normal(1, 303, 1), size=(2, 303, 4))],
)

flip = operator("aten.flip.default", torch.flip, [sample("two_dimensions", normal(2, 3, 4), dims=(0, 2))])

unsqueeze = operator(
    "aten.unsqueeze_copy.default",
    lambda tensor, dim: -torch.unsqueeze(tensor, dim),
    [sample("inner", normal(33, 15), dim=1)],
)

squeeze = operator(
    "aten.squeeze_copy.dims",
    lambda tensor, dim: -torch.squeeze(tensor, dim),
    [sample("two", normal(3, 1, 5, 1), dim=(1, 3))],
)

pixel_shuffle = operator(
    "aten.pixel_shuffle.default", F.pixel_shuffle, [sample("twice", normal(1, 8, 13, 7), upscale_factor=2)]
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
    [sample("rank2", ramp(7, 147, low=-3.0, high=3.0))],
    tier="nightly",
)

detach_copy = operator(
    "aten.detach_copy.default",
    lambda tensor: -torch.ops.aten.detach_copy.default(tensor),
    [sample("rank2", ramp(7, 147, low=-3.0, high=3.0))],
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
    [sample("same", normal(7, 147), normal(7, 147))],
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
        sample("middle", normal(117, 9), normal(117, 5), dim=1, start=2, end=7),
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
    [sample("remainder", ramp(147, 7, low=-3.0, high=3.0), split_size_or_sections=3, dim=1)],
    tier="nightly",
)

unfold = operator(
    "aten.unfold_copy.default",
    lambda tensor, dim, size, step: tensor.unfold(dim, size, step),
    [
        sample("overlapping", ramp(147, 7, low=-3.0, high=3.0), dim=-1, size=3, step=2),
        sample("first_of_rank3", normal(6, 2, 3), dim=0, size=2, step=2, configurations=FLOATING_ONLY),
        sample("int32", integers(2, 7, low=-9, high=9), dim=1, size=3, step=1, configurations=INTEGER_ONLY),
    ],
    # The quantizer marks unfold_copy, and torch.export gives unfold.
    floating=("GATHER",),
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

# Edges of each, under the names that the documentation claims.

BOOLEAN = (("FP", "none"), ("INT", "none"))
INT = (("INT", "none"),)
LEAST, GREATEST = -(2**31), 2**31 - 1

#: Denormals beside what surrounds them: moving is no arithmetic, though flushing is allowed.
DENORMALS = values([1e-40, -1e-40, 2.0**-149, 0.0, -0.0, 2.0**-126])
EXTREMES = values([LEAST, GREATEST, 0, -1, 1, LEAST + 1], 2, 3, dtype=torch.int32)
INT8_EXTREMES = values([-128, 127, 0, -1, 1, -127], 2, 3, dtype=torch.int8)

permute_edges = operator(
    "aten.permute.default",
    torch.permute,
    [
        sample("special", special_values(column=True), dims=(1, 0), configurations=FLOATING_ONLY),
        sample("negative_dims", normal(2, 3, 5), dims=(-1, 0, -2), configurations=SEPARATE),
        sample("rank6", normal(1, 2, 3, 1, 2, 2), dims=(5, 3, 1, 4, 2, 0), configurations=FLOATING_ONLY),
        sample("rank5_reversed", normal(1, 2, 3, 1, 2), dims=(4, 3, 2, 1, 0), configurations=FLOATING_ONLY),
        sample(
            "channels_last_back",
            normal(2, 3, 4, 5, channels_last=True),
            dims=(0, 3, 1, 2),
            configurations=FLOATING_ONLY,
        ),
        sample("int32_extremes", EXTREMES, dims=(1, 0), configurations=INT),
        sample("int8_extremes", INT8_EXTREMES, dims=(1, 0), configurations=INT),
        sample("boolean_rank3", booleans(2, 3, 4), dims=(2, 1, 0), configurations=BOOLEAN),
    ],
    tier="nightly",
)
transpose = operator(
    "aten.transpose_copy.int",
    torch.transpose,
    [
        sample("outer_and_inner", normal(2, 3, 5), dim0=0, dim1=-1, configurations=SEPARATE),
        sample("special", special_values(column=True), dim0=0, dim1=1, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
t = operator(
    "aten.t_copy.default",
    lambda tensor: -torch.t(tensor),
    [
        sample("rank2", normal(3, 5), configurations=SEPARATE),
        sample("rank1", normal(5), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

view = operator(
    "aten.view.default",
    lambda tensor, shape: -tensor.view(shape),
    [
        sample("special", special_values(), shape=(1, 11, 1), configurations=FLOATING_ONLY),
        sample("inferred", normal(2, 3, 4), shape=(4, -1), configurations=SEPARATE),
        sample("rank0_to_rank2", normal(), shape=(1, 1), configurations=FLOATING_ONLY),
        sample("to_rank0", normal(1), shape=(), configurations=FLOATING_ONLY),
        sample("int32", integers(2, 6, low=-1000, high=1000), shape=(3, 4), configurations=INT),
    ],
    tier="nightly",
)
# Channels_last memory does not have the elements in this order: they must be moved first.
reshape_channels_last = operator(
    "aten.view_copy.default",
    lambda tensor, shape: -torch.reshape(tensor, shape),
    [sample("flattened", normal(2, 3, 4, 5, channels_last=True), shape=(2, 60))],
    configurations=SEPARATE,
    tier="nightly",
)
unflatten = operator(
    "aten.unflatten.int",
    lambda tensor, dim, sizes: -torch.unflatten(tensor, dim, sizes),
    [
        sample("inner", normal(2, 6), dim=-1, sizes=(3, 2), configurations=SEPARATE),
        sample("inferred_of_special", special_values(), dim=0, sizes=(1, -1), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

cat_edges = operator(
    "aten.cat.default",
    lambda *tensors, dim: torch.cat(tensors, dim),
    [
        sample("special", special_values(), DENORMALS, dim=0, configurations=FLOATING_ONLY),
        sample("empty_operand", normal(2, 0), normal(2, 3), dim=1, configurations=FLOATING_ONLY),
        sample(
            "rank5_negative",
            normal(1, 2, 1, 3, 2),
            normal(1, 2, 1, 1, 2),
            dim=-2,
            configurations=SEPARATE,
        ),
        sample(
            "channels_last_by_contiguous",
            normal(1, 2, 3, 3, channels_last=True),
            normal(1, 1, 3, 3),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
        sample("nine_operands", *(normal(2, size) for size in range(1, 10)), dim=1, configurations=SEPARATE),
        sample("boolean", booleans(2, 3), booleans(2, 1), dim=1, configurations=BOOLEAN),
        sample("int8_extremes", INT8_EXTREMES, INT8_EXTREMES, dim=0, configurations=INT),
        # The wider type rules.
        sample(
            "float16_by_float32",
            normal(2, 3, dtype=torch.float16),
            normal(2, 3),
            dim=0,
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
)
stack_edges = operator(
    "aten.stack.default",
    lambda *tensors, dim: torch.stack(tensors, dim),
    [
        sample("special", special_values(), special_values(), dim=0, configurations=FLOATING_ONLY),
        sample("rank0", normal(), normal(), dim=0, configurations=FLOATING_ONLY),
        sample(
            "three_negative_unlike_ranges",
            normal(2, 3),
            normal(2, 3, scale=9.0),
            normal(2, 3),
            dim=-1,
            configurations=SEPARATE,
        ),
    ],
    tier="nightly",
)

slice_edges = operator(
    "aten.slice.Tensor",
    lambda tensor, dim, start, end, step: torch.ops.aten.slice.Tensor(tensor, dim, start, end, step),
    [
        sample("special", special_values(), dim=0, start=1, end=10, step=1, configurations=FLOATING_ONLY),
        # Beyond both ends is as far as there is.
        sample("beyond_the_ends", normal(3, 9), dim=1, start=-100, end=100, step=2, configurations=SEPARATE),
        # A step that does not divide the length: the last step ends outside.
        sample(
            "step5_of_rank4",
            normal(1, 2, 3, 13),
            dim=-1,
            start=1,
            end=13,
            step=5,
            configurations=FLOATING_ONLY,
        ),
        sample("int32_extremes", EXTREMES, dim=1, start=0, end=2, step=1, configurations=INT),
        sample("boolean", booleans(3, 7), dim=1, start=1, end=6, step=2, configurations=BOOLEAN),
    ],
    tier="nightly",
)
unbind = operator(
    "aten.unbind.int",
    torch.unbind,
    [
        sample("rows", normal(3, 4), dim=0, configurations=SEPARATE),
        sample("special_to_rank0", values([math.nan, math.inf, -0.0]), dim=0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
split_edges = operator(
    "aten.split_with_sizes_copy.default",
    torch.split,
    [
        sample(
            "special", special_values(), split_size_or_sections=(1, 4, 6), dim=0, configurations=FLOATING_ONLY
        ),
        sample(
            "empty_piece", normal(2, 5), split_size_or_sections=(2, 0, 3), dim=1, configurations=FLOATING_ONLY
        ),
    ],
    tier="nightly",
)

pad_edges = operator(
    "aten.constant_pad_nd.default",
    F.pad,
    [
        sample("special", special_values(), pad=(1, 1), configurations=FLOATING_ONLY),
        sample("infinite_value", normal(2, 3), pad=(1, 0), value=math.inf, configurations=FLOATING_ONLY),
        # Zero is within the calibrated range, this is not.
        sample("far_value", normal(2, 3), pad=(1, 1), value=-25.0, configurations=SEPARATE),
        sample("zero_beside_positive", normal(2, 3, scale=0.1), pad=(2, 0, 0, 1), configurations=SEPARATE),
        sample(
            "channels_last",
            normal(1, 2, 3, 3, channels_last=True),
            pad=(1, 2, 0, 1),
            configurations=FLOATING_ONLY,
        ),
        sample("int32", EXTREMES, pad=(1, 1), value=7, configurations=INT),
        sample("boolean", booleans(2, 3), pad=(1, 1), value=True, configurations=BOOLEAN),
    ],
    tier="nightly",
)
pad_negative = operator(
    "aten.constant_pad_nd.default",
    lambda tensor, pad: F.pad(tensor, pad) + 1.0,
    [sample("cut_and_padded", normal(2, 5), pad=(-1, 1), configurations=SEPARATE)],
    tier="nightly",
)
pad_modes_special = operator(
    "aten.pad.default",
    F.pad,
    [
        sample("reflect_rank3", values([math.nan, 1.0, math.inf, -0.0], 1, 1, 4), pad=(3, 2), mode="reflect"),
        sample("replicate_rank3", values([math.nan, 1.0, -math.inf], 1, 1, 3), pad=(2, 3), mode="replicate"),
        sample("circular_rank3", values([math.nan, 1.0, -math.inf], 1, 1, 3), pad=(3, 1), mode="circular"),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

repeat_edges = operator(
    "aten.repeat.default",
    lambda tensor, repeats: tensor.repeat(repeats),
    [
        sample("special", special_values(), repeats=(3,), configurations=FLOATING_ONLY),
        sample("rank0", normal(), repeats=(2, 3), configurations=FLOATING_ONLY),
        sample("boolean", booleans(2, 3), repeats=(2, 2), configurations=BOOLEAN),
        sample("int32_extremes", EXTREMES, repeats=(2, 1), configurations=INT),
    ],
    tier="nightly",
)
repeat_interleave = operator(
    "aten.repeat_interleave.self_int",
    torch.repeat_interleave,
    [
        sample("columns", normal(2, 3), repeats=3, dim=1, configurations=SEPARATE),
        sample("special", special_values(), repeats=2, dim=0, configurations=FLOATING_ONLY),
        sample("boolean", booleans(2, 3), repeats=2, dim=0, configurations=BOOLEAN),
    ],
    tier="nightly",
)
expand_edges = operator(
    "aten.expand.default",
    lambda tensor, size: tensor.expand(size) + 0.0,
    [
        sample("new_dimension_kept_rest", normal(2, 3), size=(4, -1, -1), configurations=SEPARATE),
        sample("rank0", normal(), size=(2, 3), configurations=FLOATING_ONLY),
        sample("special", special_values(column=True), size=(11, 3), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
flip_edges = operator(
    "aten.flip.default",
    torch.flip,
    [
        sample("special", special_values(), dims=(0,), configurations=FLOATING_ONLY),
        sample("rank4_negative", normal(1, 2, 3, 5), dims=(-1, -2, -3), configurations=SEPARATE),
        sample(
            "channels_last", normal(1, 3, 2, 4, channels_last=True), dims=(1,), configurations=FLOATING_ONLY
        ),
        sample("boolean", booleans(3, 4), dims=(1,), configurations=BOOLEAN),
    ],
    tier="nightly",
)

unsqueeze_edges = operator(
    "aten.unsqueeze.default",
    lambda tensor, dim: -torch.unsqueeze(tensor, dim),
    [
        sample("last_negative", normal(3, 5), dim=-1, configurations=SEPARATE),
        sample("rank0", normal(), dim=0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
squeeze_every = operator(
    "aten.squeeze.default",
    lambda tensor: -torch.squeeze(tensor),
    [
        sample("two_of_four", normal(3, 1, 5, 1), configurations=SEPARATE),
        sample("to_rank0", normal(1, 1), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
squeeze_one = operator(
    "aten.squeeze.dim",
    lambda tensor, dim: -torch.squeeze(tensor, dim),
    [
        sample("last_negative", normal(3, 5, 1), dim=-1, configurations=SEPARATE),
        # Of another size than 1: left as it is.
        sample("not_of_size1", normal(3, 5), dim=0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
squeeze_several = operator(
    "aten.squeeze.dims",
    lambda tensor, dim: -torch.squeeze(tensor, dim),
    [
        sample("negative", normal(3, 1, 5, 1), dim=(-1, -3), configurations=SEPARATE),
        sample("special", special_values(column=True), dim=(1,), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

pixel_shuffle_edges = operator(
    "aten.pixel_shuffle.default",
    F.pixel_shuffle,
    [
        sample("threefold_odd", normal(2, 9, 3, 1), upscale_factor=3, configurations=SEPARATE),
        sample(
            "channels_last",
            normal(1, 8, 3, 2, channels_last=True),
            upscale_factor=2,
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
)
pixel_unshuffle = operator(
    "aten.pixel_unshuffle.default",
    F.pixel_unshuffle,
    [
        sample("threefold_odd", normal(2, 1, 9, 3), downscale_factor=3, configurations=SEPARATE),
        sample(
            "channels_last",
            normal(1, 3, 4, 4, channels_last=True),
            downscale_factor=2,
            configurations=FLOATING_ONLY,
        ),
        sample(
            "special",
            values([math.nan, math.inf, -math.inf, -0.0], 1, 1, 2, 2),
            downscale_factor=2,
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
)

# What is outside the triangle is zero, whatever it was: no multiplication by a mask.
tril = operator(
    "aten.tril.default",
    torch.tril,
    [
        sample("square", normal(5, 5)),
        sample("below_the_diagonal", normal(3, 5), diagonal=-1),
        sample("special", values([1.0, math.nan, math.inf, 2.0, -0.0, -math.inf, 3.0, 4.0, math.nan], 3, 3)),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
triu = operator(
    "aten.triu.default",
    torch.triu,
    [
        sample("above_the_diagonal", normal(5, 5), diagonal=1),
        sample("special", values([1.0, math.nan, math.inf, 2.0, -0.0, -math.inf, 3.0, 4.0, math.nan], 3, 3)),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

unfold_edges = operator(
    "aten.unfold_copy.default",
    lambda tensor, dim, size, step: tensor.unfold(dim, size, step),
    [
        sample("special", special_values(), dim=0, size=4, step=3, configurations=FLOATING_ONLY),
        sample("boolean", booleans(2, 7), dim=1, size=3, step=2, configurations=BOOLEAN),
    ],
    tier="nightly",
)
slice_scatter_edges = operator(
    "aten.slice_scatter.default",
    torch.slice_scatter,
    [
        sample(
            "special",
            special_values(),
            values([math.nan, 0.0]),
            dim=0,
            start=2,
            end=4,
            configurations=FLOATING_ONLY,
        ),
        sample(
            "rank4_negative",
            normal(1, 2, 3, 5),
            normal(1, 2, 3, 2),
            dim=-1,
            start=-2,
            end=5,
            configurations=SEPARATE,
        ),
        sample(
            "unlike_ranges",
            normal(3, 6),
            normal(3, 2, scale=20.0),
            dim=1,
            start=1,
            end=3,
            configurations=SEPARATE,
        ),
    ],
    tier="nightly",
)

clone = operator(
    "aten.clone.default",
    lambda tensor: -tensor.clone(),
    [
        sample("special", special_values(), configurations=FLOATING_ONLY),
        sample("rank2", normal(3, 5), configurations=SEPARATE),
        sample("rank0", normal(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
clone_to_channels_last = operator(
    "aten.clone.default",
    lambda tensor, memory_format: -tensor.clone(memory_format=memory_format),
    [sample("rank4", normal(2, 3, 4, 5), memory_format=torch.channels_last)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

# Tensors that a program makes. Beside an input: alone they would be constants.

zeros = operator(
    "aten.zeros.default",
    lambda tensor: torch.cat([tensor, torch.zeros(2, 3)]),
    [sample("beside_input", normal(2, 3))],
    configurations=SEPARATE,
    tier="nightly",
)
ones = operator(
    "aten.ones.default",
    lambda tensor: tensor * 2.0 - torch.ones(2, 3),
    [sample("beside_input", normal(2, 3))],
    configurations=SEPARATE,
    tier="nightly",
)
arange = operator(
    "aten.arange.default",
    lambda tensor, end, dtype: tensor + torch.arange(end, dtype=dtype),
    [
        sample("beside_input", normal(2, 5), end=5, dtype=torch.float32, configurations=SEPARATE),
        # Integers beside floats: the sum is a float.
        sample("of_int64", normal(2, 5), end=5, dtype=torch.int64, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
full = operator(
    "aten.full.default",
    lambda tensor, value: torch.maximum(tensor, torch.full((2, 5), value)),
    [
        sample("beside_input", normal(2, 5), value=0.25, configurations=SEPARATE),
        sample("infinite", normal(2, 5), value=-math.inf, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
fill_in_place = operator(
    "aten.fill_.Scalar",
    lambda tensor, value: tensor + tensor.clone().fill_(value),
    [
        sample("beside_input", normal(2, 5), value=0.5, configurations=SEPARATE),
        sample("nan", normal(2, 5), value=math.nan, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

permute_edges_narrow = narrow(permute_edges, "special")
view_narrow = narrow(view, "inferred")
slice_edges_narrow = narrow(slice_edges, "special")
repeat_interleave_narrow = narrow(repeat_interleave, "columns")

pad_a16w8 = quantised(pad, "a16w8", "valued")
pad_modes_a16w8 = quantised(pad_modes, "a16w8", "constant")
repeat_a16w8 = quantised(repeat, "a16w8", "rank2")
repeat_interleave_a16w8 = quantised(repeat_interleave, "a16w8", "columns")
