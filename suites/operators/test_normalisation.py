"""Normalisation layers, with drawn scales, shifts and running statistics.

Covered: ranks 2 to 4, channels_last, norms over one and two dimensions, with and without parameters;
variances that vanish, that are lost beside the mean and that overflow, infinities and NaN. Batch norm
stands alone here, and behind a convolution, into which it is folded, as in the models.
"""

import math
from typing import Any

import torch
from torch import nn

from vgf_conformance.cases.case import FLOATING, FLOATING_ONLY, SEPARATE, Declared, layer, sample
from vgf_conformance.cases.inputs import Tensor, normal, stacked, uniform, values
from vgf_conformance.cases.weights import with_drawn_norms


def near_eps(name: str, tensor: Tensor, **options: Any) -> Declared:
    """A sample of a variance about as large as the epsilon beside it, which it takes to see that."""
    return sample(f"{name}_near_eps", tensor, configurations=FLOATING_ONLY, tier="nightly", **options)


#: As large as a variance of normal data, so that a lost one costs half a bit and more.
LARGE_EPS = 1.0

batch_norm = layer(
    "aten._native_batch_norm_legit_no_training.default",
    lambda channels, **options: with_drawn_norms(nn.BatchNorm2d(channels, **options)),
    [
        sample("rank4", normal(2, 3, 4, 5), args=(3,)),
        sample(
            "channels_last", normal(1, 3, 4, 5, channels_last=True), args=(3,), configurations=FLOATING_ONLY
        ),
        sample("large_eps", normal(1, 3, 4, 5), args=(3,), eps=LARGE_EPS, configurations=SEPARATE),
    ],
    configurations=FLOATING,
)


def _convolution_and_norm(channels: int) -> nn.Module:
    """A convolution whose bias is as large as its other results, and a batch norm to fold into both."""
    convolution = nn.Conv2d(2, channels, 3)
    nn.init.uniform_(convolution.bias, 1.0, 2.0)
    return with_drawn_norms(nn.Sequential(convolution, nn.BatchNorm2d(channels)))


batch_norm_folded = layer(
    "aten._native_batch_norm_legit_no_training.default",
    _convolution_and_norm,
    [sample("rank4", normal(1, 2, 6, 5), args=(3,))],
    configurations=FLOATING,
)

layer_norm = layer(
    "aten.native_layer_norm.default",
    lambda *shape, **options: with_drawn_norms(nn.LayerNorm(shape, **options)),
    [
        sample("last", normal(2, 33, 8), args=(8,)),
        sample("last_two", normal(2, 3, 5), args=(3, 5), configurations=FLOATING_ONLY),
        sample(
            "no_parameters", normal(4, 6), args=(6,), elementwise_affine=False, configurations=FLOATING_ONLY
        ),
        sample("large_eps", normal(4, 33), args=(33,), eps=LARGE_EPS, configurations=SEPARATE),
        near_eps("last_two", normal(2, 3, 5, scale=3e-3), args=(3, 5)),
        near_eps("no_parameters", normal(4, 6, scale=3e-3), args=(6,), elementwise_affine=False),
    ],
    configurations=FLOATING,
)

group_norm = layer(
    "aten.native_group_norm.default",
    lambda groups, channels, **options: with_drawn_norms(nn.GroupNorm(groups, channels, **options)),
    [
        sample("two_groups", normal(1, 4, 9, 9), args=(2, 4)),
        sample("large_eps", normal(1, 4, 5, 5), args=(2, 4), eps=LARGE_EPS, configurations=SEPARATE),
        near_eps("two_groups", normal(1, 4, 9, 9, scale=3e-3), args=(2, 4)),
    ],
    configurations=FLOATING,
)

# By the names that the documentation has for them.

batch_norm_named = layer(
    "aten.batch_norm.default",
    lambda channels, **options: with_drawn_norms(nn.BatchNorm2d(channels, **options)),
    [
        sample("rank4", normal(2, 5, 3, 4), args=(5,)),
        sample("no_parameters", normal(1, 3, 4, 5), args=(3,), affine=False),
        sample("large_eps", normal(1, 3, 4, 5), args=(3,), eps=1.0, configurations=FLOATING_ONLY),
        sample("one_pixel", normal(1, 3, 1, 1), args=(3,), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# Not folded into a convolution: nothing stands before it that it could be folded into.
batch_norm_after_relu = layer(
    "aten.batch_norm.default",
    lambda channels: nn.Sequential(nn.ReLU(), with_drawn_norms(nn.BatchNorm2d(channels))),
    [sample("rank4", normal(1, 3, 4, 5), args=(3,))],
    tier="nightly",
    configurations=SEPARATE,
)

batch_norm_special = layer(
    "aten.batch_norm.default",
    lambda channels: with_drawn_norms(nn.BatchNorm2d(channels)),
    [
        sample(
            "special",
            stacked(
                values([math.inf, -math.inf, math.nan, 0.0, -0.0, 3.4e38], 1, 3, 1, 2), normal(3, 3, 1, 2)
            ),
            args=(3,),
        ),
        sample("denormals", stacked(normal(1, 3, 2, 2, scale=1e-39), normal(1, 3, 2, 2)), args=(3,)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

layer_norm_named = layer(
    "aten.layer_norm.default",
    lambda *shape, **options: with_drawn_norms(nn.LayerNorm(shape, **options)),
    [
        sample("rank2", normal(4, 10), args=(10,)),
        sample("last_two", normal(2, 3, 5), args=(3, 5), configurations=FLOATING_ONLY),
        sample("no_parameters", normal(4, 6), args=(6,), elementwise_affine=False),
        sample("no_bias", normal(2, 3, 8), args=(8,), bias=False, configurations=FLOATING_ONLY),
        sample("long", normal(2, 513), args=(513,), configurations=FLOATING_ONLY),
        sample("transposed", normal(6, 4, transposed=True), args=(4,), configurations=FLOATING_ONLY),
        near_eps("last_two", normal(2, 3, 5, scale=3e-3), args=(3, 5)),
        near_eps("no_parameters", normal(4, 6, scale=3e-3), args=(6,), elementwise_affine=False),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# Rows whose variance vanishes, is lost beside the mean, overflows, and is NaN.
layer_norm_values = layer(
    "aten.layer_norm.default",
    lambda *shape, **options: with_drawn_norms(nn.LayerNorm(shape, **options)),
    [
        # The variance is 0: eps alone keeps the quotient finite.
        sample("constant", values([2.5] * 12, 2, 6), args=(6,)),
        # A variance of 1 beside a mean of 100: E(x^2) - E(x)^2 would lose four digits.
        sample("far_from_zero", uniform(3, 6, low=99.0, high=101.0), args=(6,)),
        sample("not_numbers", values([math.inf, 1.0, 2.0, 3.0, math.nan, 1.0, 2.0, 3.0], 2, 4), args=(4,)),
        # The squares of the first row overflow; the others show the faults that this hides.
        sample(
            "overflow",
            values([1e20, -1e20, 0.0, 1.0, *[1.0, 2.0, 4.0, 3.0], *[-0.5, 0.25, 2.0, 1.0]], 3, 4),
            args=(4,),
        ),
        sample("near_zero", normal(3, 6, scale=1e-10), args=(6,)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# The squares of values up to 2000 overflow float16.
layer_norm_float16 = layer(
    "aten.layer_norm.default",
    lambda size: nn.LayerNorm(size).to(torch.float16),
    [sample("squares_overflow", uniform(2, 64, low=0.0, high=2000.0, dtype=torch.float16), args=(64,))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

group_norm_named = layer(
    "aten.group_norm.default",
    lambda groups, channels, **options: with_drawn_norms(nn.GroupNorm(groups, channels, **options)),
    [
        sample("three_groups", normal(2, 6, 3, 4), args=(3, 6)),
        # A layer norm over all but the batch, and an instance norm.
        sample("one_group", normal(1, 4, 3, 3), args=(1, 4), configurations=FLOATING_ONLY),
        sample("a_group_each", normal(1, 4, 3, 3), args=(4, 4), configurations=FLOATING_ONLY),
        sample("no_parameters", normal(1, 4, 3, 3), args=(2, 4), affine=False, configurations=FLOATING_ONLY),
        sample("constant", values([2.5] * 16, 1, 4, 2, 2), args=(2, 4), configurations=FLOATING_ONLY),
        near_eps("three_groups", normal(2, 6, 3, 4, scale=3e-3), args=(3, 6)),
        near_eps("no_parameters", normal(1, 4, 3, 3, scale=3e-3), args=(2, 4), affine=False),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

group_norm_special = layer(
    "aten.group_norm.default",
    lambda groups, channels: with_drawn_norms(nn.GroupNorm(groups, channels)),
    [
        sample(
            "not_numbers",
            values([math.inf, 1.0, 2.0, 3.0, math.nan, 1.0, 2.0, 3.0], 1, 4, 2, 1),
            args=(2, 4),
        )
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

instance_norm = layer(
    "aten.native_group_norm.default",
    lambda channels: with_drawn_norms(nn.InstanceNorm2d(channels, affine=True)),
    [sample("rank4", normal(2, 3, 4, 5), args=(3,))],
    tier="nightly",
    configurations=FLOATING_ONLY,
    delegated=False,
)

# No operator of its own in TOSA: composed of a mean of squares, a reciprocal root and products.
rms_norm = layer(
    "aten.rms_norm.default",
    nn.RMSNorm,
    [
        sample("last", normal(2, 3, 6), args=(6,)),
        sample("given_eps", normal(2, 3, 6), args=(6,), eps=1e-6, configurations=FLOATING_ONLY),
        sample("zeros", values([0.0] * 12, 2, 6), args=(6,), eps=1e-6),
        sample("last_two", normal(2, 3, 5), args=((3, 5),), configurations=FLOATING_ONLY),
        near_eps("last", normal(2, 3, 6, scale=1e-3), args=(6,), eps=1e-6),
        near_eps("last_two", normal(2, 3, 5, scale=1e-3), args=((3, 5),), eps=1e-6),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# The quantizer does not mark it, and what stays in float is not for the INT profile.
rms_norm_quantised = layer(
    "aten.rms_norm.default",
    nn.RMSNorm,
    [sample("last", normal(2, 3, 6), args=(6,))],
    tier="nightly",
    configurations=(("INT", "a8w8-pc"),),
    delegated=False,
)
