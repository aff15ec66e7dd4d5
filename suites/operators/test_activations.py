"""Activation functions.

Covered: ranks 0 to 6, channels_last, in-place forms, both gelu formulas, integers; in FP the special
values, denormals and the seams of piecewise functions. Inputs have a standard deviation of 3 where the
function saturates, or go from -9 to 9, so that both tails and the bend are hit.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from vgf_conformance.cases.case import (
    COMBINED,
    FLOATING_ONLY,
    INTEGER,
    SEPARATE,
    Case,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import normal, ramp, special_values, uniform, values

#: Both tails and the bend; quantised, every code of int8 and both sides of every rounding.
RAMP = ramp(7, 147, low=-9.0, high=9.0)

relu = operator(
    "aten.relu.default",
    torch.relu,
    [
        sample("rank4_channels_last", normal(1, 3, 16, 20, channels_last=True), configurations=COMBINED),
        sample("rank0", normal(), configurations=FLOATING_ONLY),
        sample("rank5", normal(1, 2, 3, 2, 3)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

sigmoid = operator(
    "aten.sigmoid.default",
    torch.sigmoid,
    [
        sample("rank2", RAMP),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

tanh = operator(
    "aten.tanh.default",
    torch.tanh,
    [
        sample("rank2", RAMP),
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

silu = operator("aten.silu.default", F.silu, [sample("rank3", ramp(2, 3, 171, low=-9.0, high=9.0))])

hardswish = operator("aten.hardswish.default", F.hardswish, [sample("rank2", RAMP)])

hardsigmoid = operator("aten.hardsigmoid.default", F.hardsigmoid, [sample("rank2", RAMP)])

leaky_relu = operator(
    "aten.leaky_relu.default", F.leaky_relu, [sample("slope_0.1", RAMP, negative_slope=0.1)]
)

# Values on both sides of -0.35, where lowering changes from a series to exp(x) - 1.
elu = operator("aten.elu.default", F.elu, [sample("alpha_1.5", RAMP, alpha=1.5)])

hardtanh = operator(
    "aten.hardtanh.default",
    F.hardtanh,
    [
        # The limits of relu6.
        sample("zero_to_six", normal(3, 7, scale=5.0), min_val=0.0, max_val=6.0),
        sample("unlike_limits", normal(3, 7), min_val=-0.5, max_val=1.25),
    ],
)

clamp = operator(
    "aten.clamp.default",
    torch.clamp,
    [
        sample("both", RAMP, min=-0.5, max=1.0),
        sample("above", normal(3, 7), max=0.25, configurations=FLOATING_ONLY),
        sample("special", special_values(), min=-2.0, max=2.0, configurations=FLOATING_ONLY),
    ],
)

celu = operator(
    "aten.celu.default",
    F.celu,
    [
        sample("alpha_1.5", ramp(7, 147, low=-4.0, high=4.0), alpha=1.5),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

selu = operator(
    "aten.selu.default",
    F.selu,
    [
        sample("rank2", ramp(7, 147, low=-4.0, high=4.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

glu = operator(
    "aten.glu.default",
    F.glu,
    [
        sample("last", ramp(1029, 2, low=-4.0, high=4.0), dim=-1),
        sample("inner", ramp(343, 2, 3, low=-4.0, high=4.0), dim=1),
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

# Infinities and NaN through every function that clamps, and every function at its special values.

#: What a clamp keeps and what it does not.
NOT_NUMBERS = values([math.inf, -math.inf, math.nan, 2.0, -0.0])
#: Subnormal numbers, then ordinary ones: where a device may flush, faults do not show.
DENORMALS = values([1e-40, -1e-40, 2**-149, *[0.5, -0.75, 1.5, -2.0, 0.3, 3.0, -1.25, 4.0]])
KEPT = [sample("not_numbers", NOT_NUMBERS), sample("denormals", DENORMALS)]


def _special(name: str, function: Callable[..., torch.Tensor], **keywords: Any) -> Case:
    """An activation at the special values and at its denormals, in FP alone."""
    return operator(
        name,
        function,
        [
            sample("special", special_values(), **keywords),
            sample("denormals", DENORMALS, **keywords),
        ],
        tier="nightly",
        configurations=FLOATING_ONLY,
    )


relu_values = operator("aten.relu.default", torch.relu, KEPT, tier="nightly", configurations=FLOATING_ONLY)
clamp_values = operator(
    "aten.clamp.default",
    torch.clamp,
    [
        sample("not_numbers_from_below", NOT_NUMBERS, min=0.0),
        sample("not_numbers_from_above", NOT_NUMBERS, max=0.0),
        sample("not_numbers_to_infinity", NOT_NUMBERS, min=-math.inf, max=math.inf),
        # torch gives the upper limit everywhere.
        sample("crossed", normal(3, 7), min=1.0, max=-1.0),
        sample("denormals", DENORMALS, min=0.0),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

hardtanh_values = operator(
    "aten.hardtanh.default", F.hardtanh, KEPT, tier="nightly", configurations=FLOATING_ONLY
)

relu6_values = operator("aten.hardtanh.default", F.relu6, KEPT, tier="nightly", configurations=FLOATING_ONLY)
clamp_tensor_values = operator(
    "aten.clamp.Tensor",
    torch.clamp,
    [
        sample("not_numbers_from_below", NOT_NUMBERS, values([0.0])),
        # A limit that is NaN makes the result NaN.
        sample(
            "limit_is_nan", normal(3), values([math.nan, 0.0, -math.inf]), values([1.0, math.nan, math.inf])
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

leaky_relu_values = _special("aten.leaky_relu.default", F.leaky_relu)
elu_values = _special("aten.elu.default", F.elu)
celu_values = _special("aten.celu.default", F.celu)
selu_values = _special("aten.selu.default", F.selu)
gelu_values = _special("aten.gelu.default", F.gelu)
gelu_tanh_values = _special("aten.gelu.default", F.gelu, approximate="tanh")
silu_values = _special("aten.silu.default", F.silu)
hardswish_values = _special("aten.hardswish.default", F.hardswish)
hardsigmoid_values = _special("aten.hardsigmoid.default", F.hardsigmoid)
sigmoid_values = _special("aten.sigmoid.default", torch.sigmoid)
tanh_values = _special("aten.tanh.default", torch.tanh)

glu_values = operator(
    "aten.glu.default",
    F.glu,
    [
        sample(
            "special",
            values(
                [1.0, -math.inf, math.inf, math.nan, 0.0, -0.0, math.inf, -math.inf, 2.0, math.inf], 1, 10
            ),
        )
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Where formulas change.

hardswish_seams = operator(
    "aten.hardswish.default",
    F.hardswish,
    [sample("three", values([-3.0, 3.0, -2.9999998, 2.9999998, -3.0000002, 3.0000002]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

hardsigmoid_seams = operator(
    "aten.hardsigmoid.default",
    F.hardsigmoid,
    [sample("three", values([-3.0, 3.0, -2.9999998, 2.9999998, -3.0000002, 3.0000002]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Shapes, layouts and forms.

relu_forms = operator(
    "aten.relu.default",
    lambda tensor: tensor.clone().relu_(),
    [
        sample("in_place", normal(3, 5)),
        sample("rank6", normal(1, 2, 1, 3, 2, 2), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

relu_to_channels_last = operator(
    "aten.relu.default",
    lambda tensor: torch.relu(tensor).to(memory_format=torch.channels_last),
    [sample("rank4", normal(1, 3, 4, 5))],
    tier="nightly",
    configurations=SEPARATE,
)

relu_empty = operator(
    "aten.relu.default",
    torch.relu,
    [sample("rank2", normal(0, 3))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

relu_int32 = operator(
    "aten.relu.default",
    torch.relu,
    [sample("extremes", values([2**31 - 1, -(2**31), -1, 0, 1], dtype=torch.int32))],
    tier="nightly",
    configurations=INTEGER,
    delegated=False,
)

clamp_int32 = operator(
    "aten.clamp.default",
    torch.clamp,
    [sample("extremes", values([2**31 - 1, -(2**31), -1, 0, 1, 100], dtype=torch.int32), min=-5, max=50)],
    tier="nightly",
    configurations=INTEGER,
)

relu_int8 = operator(
    "aten.relu.default",
    torch.relu,
    [sample("extremes", values([127, -128, -1, 0, 1], dtype=torch.int8))],
    tier="nightly",
    configurations=INTEGER,
    delegated=False,
)

clamp_forms = operator(
    "aten.clamp.default",
    lambda tensor, **limits: tensor.clone().clamp_(**limits),
    [
        # The quantizer marks the form that makes a new tensor alone.
        sample("in_place", normal(3, 7), min=-0.5, max=1.0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# A table of int8 over more than it can tell apart.

tanh_ranges = operator(
    "aten.tanh.default",
    torch.tanh,
    [
        sample("wide", uniform(2, 40, low=-20.0, high=20.0)),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

clamp_a16w8 = quantised(clamp, "a16w8", "both")
