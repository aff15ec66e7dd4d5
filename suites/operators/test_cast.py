"""Conversion between data types, and tensors made from no input.

Covered: every pair of float32, float16, bfloat16, int8, int16, int32 and bool that the profiles have or
leave to the CPU: ties and overflow between floats, toward zero from floats to integers, rounding from
large integers to floats, wrapping between integers, NaN and infinities. Tensors made from no input.
"""

import math

import torch

from vgf_conformance.cases.case import FLOATING_ONLY, INTEGER_ONLY, SEPARATE, operator, sample
from vgf_conformance.cases.inputs import booleans, integers, normal, ramp, special_values, values

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
        sample("float32", ramp(147, 7, low=-3.0, high=3.0), start=-1.0, end=2.5, step=0.5),
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
    [sample("float32", ramp(147, 7, low=-3.0, high=3.0), start=-1.0, end=2.0, steps=7)],
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
        sample("float32", ramp(7, 147, low=-3.0, high=3.0), size=(7, 147), fill_value=-1.5),
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
    [sample("float32", ramp(7, 147, low=-3.0, high=3.0), value=-1.5)],
    tier="nightly",
)

scalar_tensor = operator(
    "aten.scalar_tensor.default",
    lambda tensor, value: tensor + torch.scalar_tensor(value),
    [sample("float32", ramp(7, 147, low=-3.0, high=3.0), value=-1.5)],
    tier="nightly",
)

# Between floating-point types.

to_bfloat16 = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.bfloat16),
    [
        sample("normal", normal(3, 7)),
        sample("special", special_values()),
        # A tie between neighbours of 1, which goes to the even one, one just above it, the largest
        # float32, which rounds to infinity, and subnormals.
        sample("edges", values([1.00390625, 1.01171875, 1.0039063, 3.4028234663852886e38, 1e-40, 0.1])),
    ],
    tier="nightly",
    configurations=(("FP+bf16", "none"),),
)

through_bfloat16 = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.bfloat16).to(torch.float32),
    [sample("edges", values([1.0, 1.00390625, 3.4e38, 1e-40, math.nan, math.inf, 0.1]))],
    tier="nightly",
    configurations=(("FP+bf16", "none"),),
)

# FP alone has no bfloat16, and has to leave both to the CPU.
through_bfloat16_in_fp = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.bfloat16).to(torch.float32),
    [sample("edges", values([1.0, 1.00390625, 3.4e38, 1e-40, math.nan, math.inf, 0.1]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
    delegated=False,
)

through_float16 = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.float16).to(torch.float32),
    # Two casts in a row are no identity: what float16 has not is lost.
    [sample("edges", values([1.0, 1.00048828125, 65520.0, 6e-8, 1e-9, math.nan, math.inf, 0.1]))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

widened = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.float32),
    [
        sample("from_bfloat16", special_values(torch.bfloat16), configurations=(("FP+bf16", "none"),)),
        sample("special_from_float16", special_values(torch.float16)),
        # Ordinary numbers follow: where a device may flush, faults do not show.
        sample(
            "subnormals_from_float16",
            values([6e-8, -6e-8, 6e-5, *[0.5, -0.75, 1.5, -2.0, 0.25, 3.0]], dtype=torch.float16),
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

between_narrow = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.float16),
    [sample("bfloat16_to_float16", values([1.0, 70000.0, -1e-6, 0.1], dtype=torch.bfloat16))],
    tier="nightly",
    configurations=(("FP+bf16", "none"),),
    delegated=False,
)

# Floats to integers: toward zero. TOSA's own cast rounds to the nearest, ties to even.

#: Every fraction on both sides of zero, ties, and whole numbers.
FRACTIONS = values([0.5, 1.5, -1.5, -0.5, 2.7, -2.7, 127.0, -128.0, 100.9, 3.5, -0.0])

to_integers = operator(
    "aten._to_copy.default",
    lambda tensor, dtype: tensor.to(dtype),
    [
        sample("int8", FRACTIONS, dtype=torch.int8),
        sample("int16", FRACTIONS, dtype=torch.int16),
        sample("int32", FRACTIONS, dtype=torch.int32),
        # The neighbours of whole numbers, and beyond 2^24, where every float is whole.
        sample(
            "near_whole_int32",
            values([0.99999994, -0.99999994, 1.9999999, 16777216.0, -16777218.0, 2147483520.0]),
            dtype=torch.int32,
        ),
        sample(
            "float16_to_int32",
            values([0.5, 1.5, -2.7, 2047.0, 65504.0], dtype=torch.float16),
            dtype=torch.int32,
        ),
        sample("float16_to_int8", values([0.5, 1.5, -2.7, 100.9], dtype=torch.float16), dtype=torch.int8),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# Anything but zero is True: NaN, infinities and fractions too.
to_bool = operator(
    "aten._to_copy.default",
    lambda tensor: (tensor.to(torch.bool), tensor + 1.0),
    [
        sample("from_float32", values([0.0, -0.0, 1.0, -2.5, 0.3])),
        sample("special_from_float32", values([math.nan, math.inf, -math.inf, 1e-40])),
    ],
    tier="nightly",
    configurations=(("FP", "none"), ("FP+INT", "none")),
)

# 256 and 2^31 are 0 in their lowest byte.
LOW_BYTE_ZERO = values([0, 1, -1, 256, -(2**31), 2**31 - 1], dtype=torch.int32)

int32_to_bool = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.bool),
    [sample("low_byte_zero", LOW_BYTE_ZERO)],
    tier="nightly",
    configurations=INTEGER_ONLY,
)

int32_to_bool_in_fp = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.bool),
    [sample("low_byte_zero", LOW_BYTE_ZERO)],
    tier="nightly",
    configurations=FLOATING_ONLY,
    delegated=False,
)

# Integers to floats.

from_integers = operator(
    "aten._to_copy.default",
    lambda tensor, dtype: tensor.to(dtype),
    [
        # From 2^24 on an int32 is rounded: ties to even.
        sample(
            "int32_extremes",
            values([2**31 - 1, -(2**31), 2**24 + 1, 2**24 + 3, -(2**24) - 1], dtype=torch.int32),
            dtype=torch.float32,
        ),
        sample("int8", values([127, -128, 0, -1], dtype=torch.int8), dtype=torch.float32),
        sample("int16", values([32767, -32768, 0, -1], dtype=torch.int16), dtype=torch.float32),
        # The largest float16 is 65504; 65520 rounds to infinity.
        sample(
            "int32_to_float16",
            values([65504, 65519, 65520, 2049, -70000], dtype=torch.int32),
            dtype=torch.float16,
        ),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

bool_arithmetic = operator(
    "aten._to_copy.default",
    lambda tensor: tensor.to(torch.float32) * 2,
    [sample("doubled", values([1, 0, 1], dtype=torch.bool))],
    tier="nightly",
    configurations=(("FP", "none"), ("FP+INT", "none")),
)

# Integers to integers: what does not fit wraps.

between_integers = operator(
    "aten._to_copy.default",
    lambda tensor, dtype: tensor.to(dtype),
    [
        sample("int32_to_int8", values([127, 128, -129, 256, 300], dtype=torch.int32), dtype=torch.int8),
        sample("int32_to_int16", values([32767, 32768, -32769, 70000], dtype=torch.int32), dtype=torch.int16),
        sample("int16_to_int8", values([127, 128, -129, 256], dtype=torch.int16), dtype=torch.int8),
        sample("int16_to_int32", values([32767, -32768, -1], dtype=torch.int16), dtype=torch.int32),
        sample("int8_to_int16", values([127, -128, -1], dtype=torch.int8), dtype=torch.int16),
        sample("int32_to_bool", values([0, 1, -1, 256], dtype=torch.int32), dtype=torch.bool),
        sample("bool_to_int8", values([0, 1], dtype=torch.bool), dtype=torch.int8),
    ],
    tier="nightly",
    configurations=INTEGER_ONLY,
)

# Tensors made from no input, by the names that the documentation has for them.

arange_default = operator(
    "aten.arange.default",
    lambda tensor, end: tensor + torch.arange(end),
    [
        sample("float32", normal(7), end=7.0),
        # Its type is int64 where the bound is a whole number, and the sum's is float32.
        sample("int64_and_float32", normal(7), end=7, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

ones = operator(
    "aten.ones.default",
    lambda tensor, *size: tensor + torch.ones(tensor.shape),
    [sample("float32", normal(3, 5)), sample("rank0", normal())],
    tier="nightly",
    configurations=SEPARATE,
)

zeros = operator(
    "aten.zeros.default",
    lambda tensor: torch.maximum(tensor, torch.zeros(tensor.shape)),
    [sample("float32", normal(3, 5))],
    tier="nightly",
    configurations=SEPARATE,
)

fill = operator(
    "aten.fill_.Scalar",
    lambda tensor, value: tensor + tensor.clone().fill_(value),
    [sample("float32", ramp(7, 147, low=-3.0, high=3.0), value=-1.5)],
    tier="nightly",
    configurations=SEPARATE,
)

full_special = operator(
    "aten.full.default",
    lambda tensor, value: tensor + torch.full(tensor.shape, value),
    [
        sample("infinity", values([1.0, -math.inf, math.nan]), value=math.inf),
        sample("nan", values([1.0, -math.inf]), value=math.nan),
        sample("minus_zero", values([-0.0, 0.0]), value=-0.0),
        sample("denormal", values([1e-40, 0.0, 1.0, -2.0, 3.0, 0.5, -0.75]), value=1e-40),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)
