"""Convolutions in one to three dimensions, depthwise and transposed.

Covered: strides, padding, dilation, groups, no bias, odd sizes that leave a remainder under the
stride, channels_last inputs, weights that are an input; exact data (whole numbers whose sums are all
representable, so that no tolerance hides a slip), special values, both ends of the range, biases past
int32; int8 and int4 weights with one scale per output channel or one per tensor, int16 activations.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import (
    COMBINED,
    FLOATING,
    FLOATING_ONLY,
    NARROW,
    QUANTISED,
    SEPARATE,
    Declared,
    layer,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import Tensor, integers, normal, sparse, stacked, uniform, values
from vgf_conformance.cases.weights import with_whole_weights

conv1d = layer(
    "aten.convolution.default",
    nn.Conv1d,
    [sample("padded", normal(1, 3, 11), args=(3, 4, 3), padding=1)],
    configurations=FLOATING,
)

conv2d = layer(
    "aten.convolution.default",
    nn.Conv2d,
    [
        sample("3x3", normal(1, 3, 6, 7), args=(3, 4, 3), configurations=COMBINED),
        sample("stride_remainder", normal(1, 2, 8, 8), args=(2, 3, 3), stride=2, padding=1),
        sample(
            "dilated_channels_last",
            normal(1, 2, 7, 7, channels_last=True),
            args=(2, 3, 3),
            dilation=2,
            configurations=FLOATING,
        ),
        sample("1x1_no_bias", normal(2, 5, 3, 3), args=(5, 4, 1), bias=False, configurations=FLOATING),
        sample(
            "uneven",
            normal(1, 2, 6, 9),
            args=(2, 3, (1, 3)),
            stride=(1, 2),
            padding=(0, 1),
            configurations=FLOATING,
        ),
    ],
)

conv3d = layer(
    "aten.convolution.default",
    nn.Conv3d,
    [sample("padded", normal(1, 2, 4, 5, 4), args=(2, 3, 3), padding=1)],
    configurations=FLOATING,
)

conv2d_depthwise = layer(
    "aten.convolution.default",
    nn.Conv2d,
    [
        sample("3x3", normal(1, 4, 6, 6), args=(4, 4, 3), groups=4, padding=1),
        # Two outputs for each input channel.
        sample("multiplier", normal(1, 3, 5, 5), args=(3, 6, 3), groups=3, configurations=FLOATING_ONLY),
    ],
)

conv2d_grouped = layer(
    "aten.convolution.default",
    nn.Conv2d,
    [sample("two_groups", normal(1, 4, 11, 13), args=(4, 6, 3), groups=2)],
    configurations=FLOATING,
)

conv_transpose2d = layer(
    "aten.conv_transpose2d.input",
    nn.ConvTranspose2d,
    [
        sample("upsampling", normal(1, 3, 8, 10), args=(3, 2, 3), stride=2, padding=1, output_padding=1),
        sample("no_bias", normal(1, 2, 3, 5), args=(2, 3, 2), bias=False, configurations=FLOATING_ONLY),
    ],
)

# The operators that are documented for float16 and bfloat16.

conv2d_narrow = narrow(conv2d, "3x3", "dilated_channels_last")
conv2d_depthwise_narrow = narrow(conv2d_depthwise, "3x3")
conv_transpose2d_narrow = narrow(conv_transpose2d, "upsampling")

# Windows.

conv2d_windows = layer(
    "aten.conv2d.default",
    nn.Conv2d,
    [
        # A remainder under the stride with a dilated kernel.
        sample("strided_dilated", normal(2, 3, 11, 9), args=(3, 5, 3), stride=2, dilation=2, padding=2),
        # A stride longer than the kernel leaves pixels out.
        sample(
            "stride_over_kernel", normal(1, 2, 9, 8), args=(2, 3, 2), stride=3, configurations=FLOATING_ONLY
        ),
        sample("same", normal(1, 2, 6, 7), args=(2, 3, (4, 3)), padding="same", configurations=SEPARATE),
        sample(
            "padded_by_its_edge",
            normal(1, 2, 5, 5),
            args=(2, 3, 3),
            padding=1,
            padding_mode="replicate",
            configurations=FLOATING_ONLY,
        ),
        # Every output sees padding alone but for one pixel.
        sample("1x1_input", normal(1, 2, 1, 1), args=(2, 3, 3), padding=1, configurations=SEPARATE),
        sample("unbatched", normal(2, 5, 5), args=(2, 3, 3), configurations=FLOATING_ONLY),
        sample("odd_channels", normal(1, 17, 5, 5), args=(17, 13, 3), configurations=SEPARATE),
        sample(
            "channels_last_strided",
            normal(2, 3, 8, 7, channels_last=True),
            args=(3, 4, 3),
            stride=(2, 1),
            padding=(0, 1),
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

conv1d_windows = layer(
    "aten.conv1d.default",
    nn.Conv1d,
    [
        sample("strided", normal(2, 3, 11), args=(3, 4, 3), stride=2, padding=1),
        sample("dilated", normal(1, 2, 13), args=(2, 3, 3), dilation=3, configurations=FLOATING_ONLY),
        sample("depthwise", normal(1, 4, 9), args=(4, 4, 3), groups=4, configurations=SEPARATE),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

conv3d_windows = layer(
    "aten.conv3d.default",
    nn.Conv3d,
    [
        sample(
            "strided", normal(1, 2, 5, 6, 5), args=(2, 3, 3), stride=2, padding=1, configurations=FLOATING
        ),
        sample(
            "uneven",
            normal(1, 2, 4, 5, 6),
            args=(2, 3, (1, 2, 3)),
            stride=(1, 2, 1),
            padding=(0, 1, 1),
            dilation=(1, 1, 2),
            configurations=FLOATING_ONLY,
        ),
        sample("grouped", normal(1, 4, 3, 3, 3), args=(4, 4, 2), groups=2, configurations=FLOATING_ONLY),
        sample("depthwise", normal(1, 3, 3, 3, 3), args=(3, 3, 2), groups=3, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

conv2d_depthwise_windows = layer(
    "aten.convolution.default",
    nn.Conv2d,
    [
        sample("dilated", normal(1, 3, 9, 9), args=(3, 3, 3), groups=3, dilation=2, configurations=SEPARATE),
        sample("multiplier", normal(1, 3, 5, 5), args=(3, 6, 3), groups=3, configurations=SEPARATE),
        # More channels than a workgroup or an image is wide.
        sample(
            "many_channels",
            normal(1, 2100, 4, 4),
            args=(2100, 2100, 3),
            groups=2100,
            padding=1,
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

conv2d_grouped_windows = layer(
    "aten.convolution.default",
    nn.Conv2d,
    [
        sample(
            "three_groups", normal(1, 6, 5, 5), args=(6, 9, 3), groups=3, stride=2, configurations=FLOATING
        ),
        sample("no_bias", normal(1, 4, 5, 5), args=(4, 4, 1), groups=2, bias=False, configurations=SEPARATE),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

conv_transpose2d_windows = layer(
    "aten.conv_transpose2d.input",
    nn.ConvTranspose2d,
    [
        sample(
            "upsampling_uneven",
            normal(1, 3, 5, 4),
            args=(3, 4, 3),
            stride=2,
            padding=1,
            output_padding=1,
            configurations=SEPARATE,
        ),
        # Outputs between the kernels that no input reaches: the bias alone.
        sample("stride_over_kernel", normal(1, 2, 3, 3), args=(2, 3, 2), stride=3, configurations=SEPARATE),
        sample(
            "uneven_stride",
            normal(1, 2, 3, 4),
            args=(2, 3, (3, 2)),
            stride=(1, 3),
            configurations=FLOATING_ONLY,
        ),
        sample("1x1_input", normal(1, 2, 1, 1), args=(2, 3, 4), configurations=SEPARATE),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# Outside what TOSA's transposed convolution has: composed of others, or right on the CPU.
conv_transpose2d_grouped = layer(
    "aten.conv_transpose2d.input",
    nn.ConvTranspose2d,
    [sample("two", normal(1, 4, 3, 3), args=(4, 6, 3), groups=2, stride=2)],
    tier="nightly",
    configurations=SEPARATE,
)
conv_transpose2d_dilated = layer(
    "aten.conv_transpose2d.input",
    nn.ConvTranspose2d,
    [sample("two", normal(1, 2, 3, 3), args=(2, 3, 3), dilation=2)],
    tier="nightly",
    configurations=SEPARATE,
    delegated=False,
)

# Weights that are an input of the program, not a constant of the model.
conv2d_input_weights = operator(
    "aten.convolution.default",
    F.conv2d,
    [
        sample("no_bias", normal(1, 2, 5, 5), normal(3, 2, 3, 3)),
        sample("bias", normal(1, 2, 5, 5), normal(3, 2, 3, 3), normal(3)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Exact data: whole numbers whose products and partial sums are representable, so that nothing may differ.

#: 3 * 3 * 8 products of at most 8 * 8 in float32, of 3 * 3 in float16 and 1 * 1 in bfloat16, which
#: hold sums up to 2^24, 2^11 and 2^8.
EXACT = {torch.float32: 8, torch.float16: 3, torch.bfloat16: 1}


def _exact(limit: int, dtype: torch.dtype, *shape: int) -> Tensor:
    return integers(*shape, low=-limit, high=limit + 1, dtype=dtype)


def _exact_samples(*shape: int, args: tuple[object, ...], **window: Any) -> list[Declared]:
    return [
        sample(
            str(dtype).removeprefix("torch."),
            _exact(limit, dtype, *shape),
            args=(limit, dtype, *args),
            configurations=NARROW.get(dtype, FLOATING_ONLY),
            **window,
        )
        for dtype, limit in EXACT.items()
    ]


def _whole(module: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """The module with whole numbers up to a limit as its weights, in a data type."""

    def build(limit: int, dtype: torch.dtype, *args: Any, **options: Any) -> nn.Module:
        return with_whole_weights(module(*args, **options), limit).to(dtype)

    return build


conv1d_exact = layer(
    "aten.conv1d.default",
    _whole(nn.Conv1d),
    _exact_samples(1, 8, 15, args=(8, 5, 9), padding=4),
    tier="nightly",
    configurations=SEPARATE,
)

conv2d_exact = layer(
    "aten.conv2d.default",
    _whole(nn.Conv2d),
    _exact_samples(2, 8, 7, 6, args=(8, 5, 3), stride=2, padding=1),
    tier="nightly",
    configurations=SEPARATE,
)

conv3d_exact = layer(
    "aten.conv3d.default",
    _whole(nn.Conv3d),
    _exact_samples(1, 3, 4, 5, 4, args=(3, 4, 3), padding=1),
    tier="nightly",
    configurations=SEPARATE,
)

conv2d_depthwise_exact = layer(
    "aten.convolution.default",
    _whole(nn.Conv2d),
    _exact_samples(1, 6, 7, 7, args=(6, 6, 5), groups=6, padding=2),
    tier="nightly",
    configurations=SEPARATE,
)

conv2d_grouped_exact = layer(
    "aten.convolution.default",
    _whole(nn.Conv2d),
    _exact_samples(1, 8, 5, 5, args=(8, 6, 3), groups=2),
    tier="nightly",
    configurations=SEPARATE,
)

conv_transpose2d_exact = layer(
    "aten.conv_transpose2d.input",
    _whole(nn.ConvTranspose2d),
    _exact_samples(1, 8, 4, 3, args=(8, 5, 3), stride=2, padding=1),
    tier="nightly",
    configurations=SEPARATE,
)

# 512 channels of 3x3 are dot products of 4608 terms. In float16 and bfloat16 so
# many of them are 0 that about 770 and 70 count, and every partial sum stays below 2^11 and 2^8.
conv2d_exact_long = layer(
    "aten.conv2d.default",
    lambda dtype, share: with_whole_weights(nn.Conv2d(512, 3, 3), 1, share=share).to(dtype),
    [
        sample(
            "float32", integers(1, 512, 4, 4, low=-8, high=9, dtype=torch.float32), args=(torch.float32, 1.0)
        ),
        sample("float16", sparse(1, 512, 4, 4, share=0.5, dtype=torch.float16), args=(torch.float16, 0.5)),
        sample(
            "bfloat16",
            sparse(1, 512, 4, 4, share=0.15, dtype=torch.bfloat16),
            args=(torch.bfloat16, 0.15),
            configurations=NARROW[torch.bfloat16],
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Values.

#: An infinity, a NaN and the largest number, each in a corner of its own; the rest are ones.
CORNERS = values(
    [math.inf, 1, 1, 1, -math.inf, *[1] * 20, 3.4028234663852886e38, 1, 1, 1, math.nan, *[1] * 6], 1, 1, 6, 6
)

conv2d_special = layer(
    "aten.conv2d.default",
    nn.Conv2d,
    [
        sample("not_numbers", CORNERS, args=(1, 2, 3)),
        # Zeros of the padding beside an infinity are no NaN.
        sample("not_numbers_padded", CORNERS, args=(1, 2, 3), padding=1),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

conv2d_depthwise_special = layer(
    "aten.convolution.default",
    nn.Conv2d,
    [
        sample(
            "not_numbers",
            values([*[1.0] * 4, math.inf, *[1.0] * 4, *[1.0] * 4, math.nan, *[1.0] * 4], 1, 2, 3, 3),
            args=(2, 2, 2),
            groups=2,
        )
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

conv_transpose2d_special = layer(
    "aten.conv_transpose2d.input",
    nn.ConvTranspose2d,
    [sample("not_numbers", CORNERS, args=(1, 2, 3), stride=2)],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

conv2d_ranges = layer(
    "aten.conv2d.default",
    nn.Conv2d,
    [
        sample(
            "denormals",
            stacked(normal(1, 2, 5, 5, scale=1e-38), normal(1, 2, 5, 5)),
            args=(2, 3, 3),
            bias=False,
        ),
        sample("large", normal(1, 2, 5, 5, scale=1e30), args=(2, 3, 3)),
        sample("zeros", values([0.0] * 50, 1, 2, 5, 5), args=(2, 3, 3)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

conv2d_quantised_ranges = layer(
    "aten.conv2d.default",
    nn.Conv2d,
    [
        sample("small_values", normal(1, 2, 5, 5, scale=1e-4), args=(2, 3, 3), bias=False),
        # A range that does not hold 0: its zero point is at the end.
        sample("one_sided", uniform(1, 2, 5, 5, low=3.0, high=4.0), args=(2, 3, 3), padding=1),
    ],
    tier="nightly",
    configurations=QUANTISED,
)

# A bias that is larger than what int32 holds at the scale of the products.


def _with_bias(*bias: float) -> nn.Module:
    module = nn.Conv2d(2, 2, 1)
    module.bias = nn.Parameter(torch.tensor(bias))
    return module


conv2d_large_bias = layer(
    "aten.conv2d.default",
    _with_bias,
    [
        sample("past_int32", normal(1, 2, 3, 3, scale=1e-3), args=(1000.0, -2000.0)),
        sample("within_int32", normal(1, 2, 3, 3, scale=1e-3), args=(50.0, -80.0)),
    ],
    tier="nightly",
    configurations=(("INT", "a8w8-pc"), ("INT", "a8w8-pt")),
)

# Quantised per channel with weights of very unequal size, and a channel of zeros.


def _unequal_channels() -> nn.Module:
    module = nn.Conv2d(2, 4, 3)
    with torch.no_grad():
        module.weight *= torch.tensor([1e-4, 1.0, 100.0, 0.0]).reshape(4, 1, 1, 1)
    return module


conv2d_unequal_channels = layer(
    "aten.conv2d.default",
    _unequal_channels,
    [sample("and_one_of_zeros", normal(1, 2, 5, 5))],
    tier="nightly",
    configurations=SEPARATE,
)

# Types and schemes that are documented beside float32 and int8.

conv3d_narrow = narrow(conv3d_windows, "strided", "uneven")
conv2d_windows_narrow = narrow(conv2d_windows, "strided_dilated")
conv2d_a16w8 = quantised(conv2d_windows, "a16w8", "strided_dilated", "1x1_input")
convolution_a16w8 = quantised(conv2d, "a16w8", "1x1_no_bias")
conv3d_a16w8 = quantised(conv3d_windows, "a16w8", "strided")
conv2d_depthwise_a16w8 = quantised(conv2d_depthwise, "a16w8", "3x3")
conv_transpose2d_a16w8 = quantised(conv_transpose2d, "a16w8", "upsampling")

conv1d_a8w4 = quantised(conv1d_windows, "a8w4", "strided")
conv2d_a8w4 = quantised(conv2d_windows, "a8w4", "odd_channels")
convolution_a8w4 = quantised(conv2d, "a8w4", "3x3")
conv3d_a8w4 = quantised(conv3d_windows, "a8w4", "strided")
conv2d_depthwise_a8w4 = quantised(conv2d_depthwise, "a8w4", "3x3")
conv_transpose2d_a8w4 = quantised(conv_transpose2d, "a8w4", "upsampling")
