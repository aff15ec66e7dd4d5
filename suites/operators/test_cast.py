"""Conversion between data types, and tensors made from no input.

Covered: float32 to float16 and back, float32 to int32 toward zero, int8, int32 and bool widened.
"""

import torch

from vgf_conformance.cases.case import FLOATING_ONLY, INTEGER_ONLY, operator, sample
from vgf_conformance.cases.inputs import booleans, integers, normal, special_values, values

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

# What is made from no input is folded into the graph: an operator that has an input uses it.

arange = operator(
    "aten.arange.start_step",
    lambda tensor, **bounds: tensor + torch.arange(**bounds),
    [
        sample("float32", normal(7), start=-1.0, end=2.5, step=0.5),
        sample("downwards", normal(4), start=3.0, end=-1.0, step=-1.0, configurations=FLOATING_ONLY),
        sample(
            "int32",
            integers(5, low=-9, high=9),
            start=1,
            end=11,
            step=2,
            dtype=torch.int32,
            configurations=INTEGER_ONLY,
        ),
    ],
    tier="nightly",
)

linspace = operator(
    "aten.linspace.default",
    lambda tensor, **bounds: tensor + torch.linspace(**bounds),
    [sample("float32", normal(7), start=-1.0, end=2.0, steps=7)],
    tier="nightly",
)

eye = operator(
    "aten.eye.default",
    lambda tensor, size: tensor + torch.eye(size),
    [sample("float32", normal(4, 4), size=4)],
    tier="nightly",
)

full = operator(
    "aten.full.default",
    lambda tensor, **filling: tensor + torch.full(**filling),
    [
        sample("float32", normal(3, 5), size=(3, 5), fill_value=-1.5),
        sample(
            "int32",
            integers(3, 5, low=-9, high=9),
            size=(5,),
            fill_value=7,
            dtype=torch.int32,
            configurations=INTEGER_ONLY,
        ),
    ],
    tier="nightly",
)

full_like = operator(
    "aten.full_like.default",
    lambda tensor, value: tensor + torch.full_like(tensor, value),
    [sample("float32", normal(3, 5), value=-1.5)],
    tier="nightly",
)

scalar_tensor = operator(
    "aten.scalar_tensor.default",
    lambda tensor, value: tensor + torch.scalar_tensor(value),
    [sample("float32", normal(3, 5), value=-1.5)],
    tier="nightly",
)
