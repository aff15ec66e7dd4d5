"""Activation functions.

Covered: ranks 0 to 5, channels_last, both gelu formulas, and in FP the special values. Inputs have
a standard deviation of 3 where the function saturates, so that both tails and the bend are hit.
"""

import torch
from torch.nn import functional as F

from vgf_conformance.cases.case import COMBINED, FLOATING_ONLY, narrow, operator, sample
from vgf_conformance.cases.inputs import normal, special_values, uniform, values

relu = operator(
    "aten.relu.default",
    torch.relu,
    [
        sample("rank4_channels_last", normal(1, 3, 4, 5, channels_last=True), configurations=COMBINED),
        sample("rank0", normal(), configurations=FLOATING_ONLY),
        sample("rank5", normal(1, 2, 3, 2, 3)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

sigmoid = operator(
    "aten.sigmoid.default",
    torch.sigmoid,
    [
        sample("rank2", normal(3, 7, scale=3.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

tanh = operator(
    "aten.tanh.default",
    torch.tanh,
    [
        sample("rank2", normal(3, 7, scale=3.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

gelu = operator(
    "aten.gelu.default",
    F.gelu,
    [
        sample("rank1", normal(17)),
        sample("tanh_formula", normal(2, 5), approximate="tanh"),
    ],
)

silu = operator("aten.silu.default", F.silu, [sample("rank3", normal(2, 3, 4, scale=3.0))])

hardswish = operator("aten.hardswish.default", F.hardswish, [sample("rank2", normal(3, 7, scale=3.0))])

hardsigmoid = operator("aten.hardsigmoid.default", F.hardsigmoid, [sample("rank2", normal(3, 7, scale=3.0))])

leaky_relu = operator(
    "aten.leaky_relu.default", F.leaky_relu, [sample("slope_0.1", normal(3, 7), negative_slope=0.1)]
)

# Values on both sides of -0.35, where lowering changes from a series to exp(x) - 1.
elu = operator("aten.elu.default", F.elu, [sample("alpha_1.5", normal(3, 7), alpha=1.5)])

hardtanh = operator(
    "aten.hardtanh.default",
    F.hardtanh,
    # The limits of relu6.
    [sample("zero_to_six", normal(3, 7, scale=5.0), min_val=0.0, max_val=6.0)],
)

clamp = operator(
    "aten.clamp.default",
    torch.clamp,
    [
        sample("both", normal(3, 7), min=-0.5, max=1.0),
        sample("above", normal(3, 7), max=0.25, configurations=FLOATING_ONLY),
        sample("special", special_values(), min=-2.0, max=2.0, configurations=FLOATING_ONLY),
    ],
)

celu = operator(
    "aten.celu.default",
    F.celu,
    [
        sample("alpha_1.5", normal(3, 7), alpha=1.5),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

selu = operator(
    "aten.selu.default",
    F.selu,
    [
        sample("rank2", normal(3, 7)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

glu = operator(
    "aten.glu.default",
    F.glu,
    [
        sample("last", normal(3, 8), dim=-1),
        sample("inner", normal(2, 4, 3), dim=1),
    ],
    tier="nightly",
)

clamp_tensor = operator(
    "aten.clamp.Tensor",
    torch.clamp,
    [
        sample("broadcast", normal(3, 7), uniform(7, low=-1.0, high=-0.5), uniform(3, 1, low=0.5, high=1.0)),
        sample(
            "special",
            special_values(),
            values([-2.0]),
            values([2.0]),
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
)

# The operators that are documented for float16 and bfloat16.

sigmoid_narrow = narrow(sigmoid, "rank2", "special")
tanh_narrow = narrow(tanh, "rank2", "special")
gelu_narrow = narrow(gelu, "rank1")
clamp_narrow = narrow(clamp, "both")
clamp_tensor_narrow = narrow(clamp_tensor, "broadcast")
