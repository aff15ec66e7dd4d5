"""Pooling in one and two dimensions, and resampling.

Covered: windows that overlap and that leave a remainder, ceil mode, padding counted and not, strides
longer than the window, channels_last, values below zero under padding, special values; up-sampling by
whole and by odd factors, down-sampling, corners aligned or not, from and to a single pixel.
"""

import math

import torch
from torch.nn import functional as F

from vgf_conformance.cases.case import (
    FLOATING_ONLY,
    INTEGER_ONLY,
    SEPARATE,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import integers, normal, stacked, uniform, values

avg_pool2d = operator(
    "aten.avg_pool2d.default",
    F.avg_pool2d,
    [
        sample("2x2_channels_last", normal(1, 3, 6, 6, channels_last=True), kernel_size=2),
        sample(
            "padding_not_counted",
            normal(1, 2, 5, 5),
            kernel_size=3,
            stride=2,
            padding=1,
            count_include_pad=False,
        ),
        sample("padding_counted", normal(1, 2, 5, 5), kernel_size=3, padding=1, configurations=SEPARATE),
    ],
)

max_pool2d = operator(
    "aten.max_pool2d.default",
    F.max_pool2d,
    [
        sample("overlapping", normal(1, 3, 13, 15), kernel_size=3, stride=2),
        # All below zero: padding with zero would win.
        sample(
            "negative_padded", uniform(1, 2, 5, 5, low=-3.0, high=-1.0), kernel_size=3, stride=2, padding=1
        ),
        sample(
            "ceil_mode",
            normal(1, 2, 6, 6),
            kernel_size=3,
            stride=2,
            ceil_mode=True,
            configurations=FLOATING_ONLY,
        ),
    ],
)

adaptive_avg_pool2d = operator(
    "aten.adaptive_avg_pool2d.default",
    F.adaptive_avg_pool2d,
    [
        sample("global", normal(1, 3, 5, 7), output_size=1),
        # Windows of unequal size: 7 into 3.
        sample("uneven", normal(1, 2, 7, 7), output_size=3, configurations=FLOATING_ONLY),
    ],
)

upsample_nearest2d = operator(
    "aten.upsample_nearest2d.vec",
    F.interpolate,
    [sample("twice", normal(1, 2, 13, 15), scale_factor=2.0, mode="nearest")],
)

upsample_bilinear2d = operator(
    "aten.upsample_bilinear2d.vec",
    F.interpolate,
    [
        sample("twice", normal(1, 2, 13, 15), scale_factor=2.0, mode="bilinear"),
        # The axes differ in scale, offset and border.
        sample("unlike_factors", normal(1, 2, 3, 4), scale_factor=(3.0, 2.0), mode="bilinear"),
        sample(
            "odd_aligned",
            normal(1, 2, 3, 4),
            size=(5, 7),
            mode="bilinear",
            align_corners=True,
            configurations=FLOATING_ONLY,
        ),
    ],
)

# The values alone: their indices are int64, which TOSA has not.
max_pool2d_with_indices = operator(
    "aten.max_pool2d_with_indices.default",
    lambda tensor, **window: F.max_pool2d(tensor, **window, return_indices=True)[0],
    [
        sample("overlapping", normal(1, 3, 13, 15), kernel_size=3, stride=2),
        sample("negative_padded", uniform(1, 2, 5, 5, low=-3.0, high=-1.0), kernel_size=3, padding=1),
    ],
    tier="nightly",
    configurations=(("FP", "none"), ("FP+INT", "none")),
)

# The quantizer marks the pooling without indices alone, and what stays in float is not for INT.
max_pool2d_with_indices_quantised = operator(
    "aten.max_pool2d_with_indices.default",
    lambda tensor, **window: F.max_pool2d(tensor, **window, return_indices=True)[0],
    [sample("overlapping", normal(1, 3, 13, 15), kernel_size=3, stride=2)],
    tier="nightly",
    configurations=(("INT", "a8w8-pc"), ("INT+int16", "a16w8")),
    delegated=False,
)

# The operators that are documented for float16 and bfloat16.

max_pool2d_narrow = narrow(max_pool2d, "overlapping")
max_pool2d_with_indices_narrow = narrow(max_pool2d_with_indices, "overlapping")
upsample_nearest2d_narrow = narrow(upsample_nearest2d, "twice")
upsample_bilinear2d_narrow = narrow(upsample_bilinear2d, "twice")

# Windows.

max_pool2d_windows = operator(
    "aten.max_pool2d.default",
    F.max_pool2d,
    [
        sample("padded_remainder", normal(1, 2, 7, 6), kernel_size=3, stride=2, padding=1),
        sample("ceil_mode", normal(1, 2, 6, 6), kernel_size=3, stride=2, ceil_mode=True),
        # The last window would start in the padding, and is left out.
        sample("ceil_mode_padded", normal(1, 2, 5, 5), kernel_size=2, stride=2, padding=1, ceil_mode=True),
        sample(
            "uneven",
            normal(1, 2, 6, 9),
            kernel_size=(1, 3),
            stride=(1, 2),
            padding=(0, 1),
            configurations=FLOATING_ONLY,
        ),
        sample(
            "stride_over_kernel", normal(1, 2, 7, 7), kernel_size=2, stride=3, configurations=FLOATING_ONLY
        ),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

max_pool2d_dilated = operator(
    "aten.max_pool2d.default",
    F.max_pool2d,
    [sample("two", normal(1, 2, 8, 8), kernel_size=2, stride=1, dilation=2)],
    tier="nightly",
    configurations=SEPARATE,
)

avg_pool2d_windows = operator(
    "aten.avg_pool2d.default",
    F.avg_pool2d,
    [
        sample("ceil_mode", normal(1, 2, 6, 6), kernel_size=3, stride=2, ceil_mode=True),
        sample(
            "ceil_mode_not_counted",
            normal(1, 2, 6, 6),
            kernel_size=3,
            stride=2,
            padding=1,
            ceil_mode=True,
            count_include_pad=False,
        ),
        sample("ceil_mode_counted", normal(1, 2, 6, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
        # Every sum is over 225 pixels.
        sample("large_window", uniform(1, 1, 15, 15, low=1.0, high=2.0), kernel_size=15),
        sample("one_sided", uniform(1, 2, 5, 5, low=3.0, high=4.0), kernel_size=3, padding=1),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

adaptive_avg_pool2d_sizes = operator(
    "aten.adaptive_avg_pool2d.default",
    F.adaptive_avg_pool2d,
    [
        sample("uneven", normal(1, 2, 7, 5), output_size=(3, 2)),
        # More outputs than inputs: windows of one pixel that repeat.
        sample("larger", normal(1, 2, 3, 3), output_size=5, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

max_pool1d = operator(
    "aten.max_pool1d.default",
    F.max_pool1d,
    [
        sample("strided", normal(2, 3, 11), kernel_size=3, stride=2),
        sample("padded", uniform(1, 2, 9, low=-3.0, high=-1.0), kernel_size=3, padding=1),
        sample("ceil_mode", normal(1, 2, 10), kernel_size=3, stride=2, ceil_mode=True),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Exact data: whole numbers whose means are representable.
avg_pool2d_exact = operator(
    "aten.avg_pool2d.default",
    F.avg_pool2d,
    [
        sample("float32", integers(1, 2, 8, 8, low=-99, high=100, dtype=torch.float32), kernel_size=4),
        sample("float16", integers(1, 2, 8, 8, low=-9, high=10, dtype=torch.float16), kernel_size=2),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Values.

#: An infinity, a NaN, a minus infinity and the largest number, each in a window of its own.
CORNERS = values(
    [
        *[math.inf, 1.0, math.nan, 1.0],
        *[1.0, 2.0, 3.0, 1.0],
        *[-math.inf, 1.0, 3.4028234663852886e38, 3.4028234663852886e38],
        *[-math.inf, 2.0, 3.4028234663852886e38, 1.0],
    ],
    1,
    1,
    4,
    4,
)

max_pool2d_special = operator(
    "aten.max_pool2d.default",
    F.max_pool2d,
    [
        sample("not_numbers", CORNERS, kernel_size=2),
        # Minus infinity is the largest of its window, padding or not.
        sample("minus_infinity", values([-math.inf] * 9, 1, 1, 3, 3), kernel_size=3, padding=1),
        sample("signed_zeros", values([-0.0, 0.0, -0.0, -0.0] * 4, 1, 1, 4, 4), kernel_size=2),
        sample(
            "denormals",
            stacked(values([1e-40, -1e-40, 0.0, 2**-149] * 4, 1, 1, 4, 4), normal(1, 1, 4, 4)),
            kernel_size=2,
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

avg_pool2d_special = operator(
    "aten.avg_pool2d.default",
    F.avg_pool2d,
    [
        # A sum of two largest numbers overflows before the mean is taken.
        sample("not_numbers", CORNERS, kernel_size=2),
        sample("not_numbers_padded", CORNERS, kernel_size=3, padding=1, stride=1),
        sample("denormals", stacked(normal(1, 1, 4, 4, scale=1e-39), normal(1, 1, 4, 4)), kernel_size=2),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# float16 sums of 60000 overflow, and their mean does not.
avg_pool2d_float16 = operator(
    "aten.avg_pool2d.default",
    F.avg_pool2d,
    [
        sample(
            "large", values([60000.0, 60000.0, 200.0, 1e-7], 1, 1, 2, 2, dtype=torch.float16), kernel_size=2
        )
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

adaptive_avg_pool2d_special = operator(
    "aten.adaptive_avg_pool2d.default",
    F.adaptive_avg_pool2d,
    [sample("not_numbers", CORNERS, output_size=2)],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

max_pool2d_integers = operator(
    "aten.max_pool2d.default",
    F.max_pool2d,
    [sample("int8", values([127, -128, 5, -6] * 4, 1, 1, 4, 4, dtype=torch.int8), kernel_size=2)],
    tier="nightly",
    configurations=INTEGER_ONLY,
)

# Resampling.

upsample_nearest2d_sizes = operator(
    "aten.upsample_nearest2d.vec",
    F.interpolate,
    [
        sample("odd", normal(1, 2, 3, 4), size=(7, 5), mode="nearest"),
        sample("fractional", normal(1, 2, 4, 4), scale_factor=1.5, mode="nearest"),
        sample("down", normal(1, 2, 6, 8), scale_factor=0.5, mode="nearest"),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

upsample_bilinear2d_sizes = operator(
    "aten.upsample_bilinear2d.vec",
    F.interpolate,
    [
        sample("odd", normal(1, 2, 3, 4), size=(7, 5), mode="bilinear"),
        sample("aligned", normal(1, 2, 3, 4), scale_factor=2.0, mode="bilinear", align_corners=True),
        sample("down", normal(1, 2, 6, 8), scale_factor=0.5, mode="bilinear"),
        sample("1x1_input", normal(1, 2, 1, 1), size=(3, 4), mode="bilinear", configurations=FLOATING_ONLY),
        sample("to_one", normal(1, 2, 4, 4), size=(1, 1), mode="bilinear", align_corners=True),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# A resampling to the same size is nothing at all: beside another output, so that a delegate exists.
upsample_bilinear2d_once = operator(
    "aten.upsample_bilinear2d.vec",
    lambda tensor: (F.interpolate(tensor, scale_factor=1.0, mode="bilinear"), torch.exp(tensor)),
    [sample("beside_exp", normal(1, 2, 3, 4))],
    tier="nightly",
    configurations=SEPARATE,
)

upsample_nearest2d_once = operator(
    "aten.upsample_nearest2d.vec",
    lambda tensor: (F.interpolate(tensor, scale_factor=1.0, mode="nearest"), torch.exp(tensor)),
    [sample("beside_exp", normal(1, 2, 3, 4))],
    tier="nightly",
    configurations=SEPARATE,
)

upsample_nearest2d_special = operator(
    "aten.upsample_nearest2d.vec",
    F.interpolate,
    [sample("not_numbers", CORNERS, scale_factor=2.0, mode="nearest")],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

upsample_bilinear2d_special = operator(
    "aten.upsample_bilinear2d.vec",
    F.interpolate,
    [
        sample("not_numbers", CORNERS, scale_factor=2.0, mode="bilinear"),
        # NaN alone: beside an infinity TOSA sets no limit to any result.
        sample(
            "nan_aligned",
            values([math.nan, *[1.0, -2.0, 0.5, 3.0, 0.25] * 7], 1, 1, 6, 6),
            size=(7, 7),
            mode="bilinear",
            align_corners=True,
        ),
        sample("large", normal(1, 1, 3, 3, scale=1e37), scale_factor=2.0, mode="bilinear"),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Custom shaders: an image and a sampler for four channels, storage buffers for any other number. The
# reference model runs none of them.

grid_sampler = operator(
    "aten.grid_sampler.default",
    F.grid_sample,
    [
        sample("bilinear", normal(1, 2, 5, 5), uniform(1, 4, 4, 2, low=-1.0, high=1.0), align_corners=False),
        sample("beyond", normal(1, 2, 5, 5), uniform(1, 4, 4, 2, low=-1.5, high=1.5), align_corners=True),
        sample(
            "nearest",
            normal(1, 2, 5, 5),
            uniform(1, 4, 4, 2, low=-1.0, high=1.0),
            mode="nearest",
            align_corners=False,
        ),
        sample(
            "four_channels", normal(1, 4, 5, 5), uniform(1, 4, 4, 2, low=-1.5, high=1.5), align_corners=True
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

grid_sampler_2d = operator(
    "aten.grid_sampler_2d.default",
    lambda tensor, grid: torch.ops.aten.grid_sampler_2d(tensor, grid, 0, 0, False),
    [sample("bilinear", normal(1, 2, 5, 5), uniform(1, 4, 4, 2, low=-1.0, high=1.0))],
    tier="nightly",
    configurations=(("FP", "none"), ("INT", "a8w8-pc")),
)

# Types and schemes that are documented beside float32 and int8.

max_pool2d_a16w8 = quantised(max_pool2d, "a16w8", "overlapping", "negative_padded")
# With FP beside it, what was not quantised is pooled in float.
max_pool2d_with_indices_a16w8 = operator(
    "aten.max_pool2d_with_indices.default",
    lambda tensor, **window: F.max_pool2d(tensor, **window, return_indices=True)[0],
    [sample("overlapping", normal(1, 3, 13, 15), kernel_size=3, stride=2)],
    floating=("MAX_POOL2D",),
    tier="nightly",
    configurations=(("FP+INT+int16", "a16w8"),),
)
avg_pool2d_a16w8 = quantised(avg_pool2d, "a16w8", "2x2_channels_last", "padding_not_counted")
adaptive_avg_pool2d_a16w8 = quantised(adaptive_avg_pool2d, "a16w8", "global")
upsample_nearest2d_a16w8 = quantised(upsample_nearest2d, "a16w8", "twice")
upsample_bilinear2d_a16w8 = quantised(upsample_bilinear2d, "a16w8", "twice")
