"""Convolutions in one to three dimensions, depthwise and transposed.

Covered: strides, padding, dilation, groups, no bias, odd sizes that leave a remainder under the
stride, and channels_last inputs. Weights have one scale per output channel, and in one sample of
each common kind one per tensor as well.
"""

from torch import nn

from vgf_conformance.cases.case import COMBINED, FLOATING, FLOATING_ONLY, layer, narrow, sample
from vgf_conformance.cases.inputs import normal

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
    [sample("two_groups", normal(1, 4, 5, 5), args=(4, 6, 3), groups=2)],
    configurations=FLOATING,
)

conv_transpose2d = layer(
    "aten.conv_transpose2d.input",
    nn.ConvTranspose2d,
    [
        sample("upsampling", normal(1, 3, 4, 4), args=(3, 2, 3), stride=2, padding=1, output_padding=1),
        sample("no_bias", normal(1, 2, 3, 5), args=(2, 3, 2), bias=False, configurations=FLOATING_ONLY),
    ],
)

# The operators that are documented for float16 and bfloat16.

conv2d_narrow = narrow(conv2d, "3x3", "dilated_channels_last")
conv2d_depthwise_narrow = narrow(conv2d_depthwise, "3x3")
conv_transpose2d_narrow = narrow(conv_transpose2d, "upsampling")
