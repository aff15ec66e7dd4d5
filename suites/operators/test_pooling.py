"""Pooling in two dimensions, and resampling.

Covered: windows that overlap and that leave a remainder, ceil mode, padding counted and not,
channels_last, values below zero under padding, up-sampling by whole and by odd factors.
"""

from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, narrow, operator, sample
from vgf_conformance.cases.inputs import normal, uniform

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
        sample("padding_counted", normal(1, 2, 5, 5), kernel_size=3, padding=1, configurations=FLOATING_ONLY),
    ],
)

max_pool2d = operator(
    "aten.max_pool2d.default",
    F.max_pool2d,
    [
        sample("overlapping", normal(1, 3, 7, 7), kernel_size=3, stride=2),
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
    [sample("twice", normal(1, 2, 3, 5), scale_factor=2.0, mode="nearest")],
)

upsample_bilinear2d = operator(
    "aten.upsample_bilinear2d.vec",
    F.interpolate,
    [
        sample("twice", normal(1, 2, 3, 5), scale_factor=2.0, mode="bilinear"),
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
        sample("overlapping", normal(1, 3, 7, 7), kernel_size=3, stride=2),
        sample("negative_padded", uniform(1, 2, 5, 5, low=-3.0, high=-1.0), kernel_size=3, padding=1),
    ],
    tier="nightly",
    configurations=(("FP", "none"), ("FP+INT", "none")),
)

# The quantizer marks the pooling without indices alone, and what stays in float is not for INT.
max_pool2d_with_indices_quantised = operator(
    "aten.max_pool2d_with_indices.default",
    lambda tensor, **window: F.max_pool2d(tensor, **window, return_indices=True)[0],
    [sample("overlapping", normal(1, 3, 7, 7), kernel_size=3, stride=2)],
    tier="nightly",
    configurations=(("INT", "a8w8-pc"),),
    delegated=False,
)

# The operators that are documented for float16 and bfloat16.

max_pool2d_narrow = narrow(max_pool2d, "overlapping")
max_pool2d_with_indices_narrow = narrow(max_pool2d_with_indices, "overlapping")
upsample_nearest2d_narrow = narrow(upsample_nearest2d, "twice")
upsample_bilinear2d_narrow = narrow(upsample_bilinear2d, "twice")
