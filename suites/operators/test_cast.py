"""Conversion between data types; of tensors made from no input nothing yet.

Covered: float32 to float16 and back, float32 to int32 toward zero, int8, int32 and bool widened.
"""

import torch

from vgf_conformance.cases.case import FLOATING_ONLY, INTEGER_ONLY, operator, sample
from vgf_conformance.cases.inputs import booleans, integers, normal, special_values, values

NOT_YET_COVERED = (
    "aten.arange.start_step",
    "aten.eye.default",
    "aten.full.default",
    "aten.full_like.default",
    "aten.linspace.default",
    "aten.scalar_tensor.default",
)

to_float16 = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.float16),
    [
        sample("normal", normal(3, 7)),
        sample("special", special_values()),
        # The largest float16, half a step above it (which rounds to infinity), a tie between
        # neighbours of 1, a subnormal and a value below half of the smallest one.
        sample("edges", values([65504.0, 65520.0, 1.00048828125, 6.0e-7, 2.0e-8])),
    ],
    configurations=FLOATING_ONLY,
)

to_float32 = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.float32),
    [
        sample("from_float16", normal(3, 7, dtype=torch.float16), configurations=FLOATING_ONLY),
        sample("from_int32", integers(9, low=-1000, high=1000), configurations=FLOATING_ONLY),
        # FP alone has no booleans to convert from.
        sample("from_bool", booleans(9), configurations=(("FP+INT", "none"),)),
    ],
)

to_int32 = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.int32),
    [
        # Toward zero, not to the nearest.
        sample(
            "from_float32",
            values([-2.7, -1.5, -0.5, 0.0, 0.5, 1.5, 2.7, 1000.9]),
            configurations=FLOATING_ONLY,
        ),
        sample("from_int8", integers(9, low=-128, high=128, dtype=torch.int8), configurations=INTEGER_ONLY),
        sample("from_bool", booleans(9), configurations=INTEGER_ONLY),
    ],
)
