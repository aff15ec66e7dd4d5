"""Normalisation layers, with drawn scales, shifts and running statistics.

Covered: ranks 2 to 4, channels_last, a layer norm over two dimensions and one without parameters.
Batch norm stands alone here; the models have it behind convolutions, where it is folded into them.
"""

from torch import nn

from vgf_conformance.cases.case import FLOATING, FLOATING_ONLY, layer, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.cases.weights import with_drawn_norms

batch_norm = layer(
    "aten._native_batch_norm_legit_no_training.default",
    lambda channels: with_drawn_norms(nn.BatchNorm2d(channels)),
    [
        sample("rank4", normal(2, 3, 4, 5), args=(3,)),
        sample(
            "channels_last", normal(1, 3, 4, 5, channels_last=True), args=(3,), configurations=FLOATING_ONLY
        ),
    ],
    configurations=FLOATING,
)

layer_norm = layer(
    "aten.native_layer_norm.default",
    lambda *shape, **options: with_drawn_norms(nn.LayerNorm(shape, **options)),
    [
        sample("last", normal(2, 3, 8), args=(8,)),
        sample("last_two", normal(2, 3, 5), args=(3, 5), configurations=FLOATING_ONLY),
        sample(
            "no_parameters", normal(4, 6), args=(6,), elementwise_affine=False, configurations=FLOATING_ONLY
        ),
    ],
    configurations=FLOATING,
)

group_norm = layer(
    "aten.native_group_norm.default",
    lambda groups, channels: with_drawn_norms(nn.GroupNorm(groups, channels)),
    [sample("two_groups", normal(1, 4, 3, 3), args=(2, 4))],
    configurations=FLOATING,
)
