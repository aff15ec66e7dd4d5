"""Trigonometric and hyperbolic functions and their inverses.

Covered: two turns and many, both tails, the ends of the domains and beyond, near zero, special values
and denormals.
"""

import math

import torch

from vgf_conformance.cases.case import FLOATING_ONLY, narrow, operator, sample
from vgf_conformance.cases.inputs import booleans, normal, ramp, special_values, uniform, values

sin = operator("aten.sin.default", torch.sin, [sample("two_turns", uniform(3, 7, low=-6.3, high=6.3))])

cos = operator("aten.cos.default", torch.cos, [sample("two_turns", uniform(3, 7, low=-6.3, high=6.3))])

tan = operator(
    "aten.tan.default",
    torch.tan,
    [
        sample("one_branch", ramp(7, 147, low=-1.2, high=1.2)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

asin = operator(
    "aten.asin.default",
    torch.asin,
    [
        sample("inside", ramp(7, 147, low=-0.95, high=0.95)),
        sample("ends", values([-1.0, -0.5, 0.0, 0.5, 1.0]), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

acos = operator(
    "aten.acos.default",
    torch.acos,
    [
        sample("inside", ramp(7, 147, low=-0.95, high=0.95)),
        sample("ends", values([-1.0, -0.5, 0.0, 0.5, 1.0]), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

atan = operator(
    "aten.atan.default",
    torch.atan,
    [
        sample("rank2", ramp(7, 147, low=-8.0, high=8.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

sinh = operator(
    "aten.sinh.default",
    torch.sinh,
    [
        sample("rank2", ramp(7, 147, low=-3.0, high=3.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

cosh = operator(
    "aten.cosh.default",
    torch.cosh,
    [
        sample("rank2", ramp(7, 147, low=-3.0, high=3.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

asinh = operator(
    "aten.asinh.default",
    torch.asinh,
    [
        sample("rank2", ramp(7, 147, low=-8.0, high=8.0)),
        # Far below zero x + sqrt(x^2 + 1) loses all its digits.
        sample("far", normal(3, 7, scale=1000.0), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

acosh = operator(
    "aten.acosh.default",
    torch.acosh,
    [
        sample("above_one", ramp(7, 147, low=1.1, high=5.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

atanh = operator(
    "aten.atanh.default",
    torch.atanh,
    [
        sample("inside", ramp(7, 147, low=-0.9, high=0.9)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

# The operators that are documented for float16 and bfloat16.

sin_narrow = narrow(sin, "two_turns")
cos_narrow = narrow(cos, "two_turns")

#: The smallest normal number and its neighbour below, a subnormal in the middle, and the smallest.
#: Ordinary numbers follow: where a device may flush, faults do not show.
DENORMALS = values([2**-126, 2**-126 - 2**-149, 1e-40, 2**-149, 0.5, 0.75, 1.5, 2.0, 0.3, 3.0])

#: Multiples of pi, with what float32 leaves of them, and both ends of the range.
TURNS = [
    sample("special", special_values()),
    sample("multiples", values([math.pi / 2, -math.pi / 2, math.pi, 2 * math.pi, 10 * math.pi])),
    sample("near_zero", uniform(3, 7, low=-0.01, high=0.01)),
    sample("denormals", DENORMALS),
]

sin_values = operator("aten.sin.default", torch.sin, TURNS, tier="nightly", configurations=FLOATING_ONLY)

cos_values = operator("aten.cos.default", torch.cos, TURNS, tier="nightly", configurations=FLOATING_ONLY)

tan_values = operator(
    "aten.tan.default",
    torch.tan,
    [
        # Close to the poles the result is large: 1 / 0.01 and 1 / 0.001.
        sample("near_poles", values([math.pi / 2 - 0.01, math.pi / 2 + 0.01, 1.5 * math.pi - 0.001])),
        sample("many_turns", uniform(3, 7, low=40.0, high=50.0)),
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01)),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

#: Outside of the domain, where the result is NaN, at its ends, and where another formula takes over.
ARCS = [
    sample("beyond", values([1.5, -1.5, 2.0])),
    sample("near_ends", values([1 - 2**-24, -(1 - 2**-24), 0.9999, -0.9999])),
    sample("outer_half", uniform(3, 7, low=0.5, high=1.0)),
]

asin_values = operator("aten.asin.default", torch.asin, ARCS, tier="nightly", configurations=FLOATING_ONLY)

acos_values = operator("aten.acos.default", torch.acos, ARCS, tier="nightly", configurations=FLOATING_ONLY)

# The documentation's table claims it for booleans too.
acos_bool = operator(
    "aten.acos.default",
    torch.acos,
    [sample("both", booleans(9))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

atan_values = operator(
    "aten.atan.default",
    torch.atan,
    [
        sample("normal", normal(2, 50)),
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01)),
        sample("far", values([1e3, -1e5, 1e10, 1e38])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

#: Where exp(x) overflows before its half does.
HYPERBOLIC = [
    # Half of exp(89) is still finite.
    sample("ends", values([89.0, -89.0, 89.5, -89.5, 100.0])),
]

sinh_values = operator(
    "aten.sinh.default", torch.sinh, HYPERBOLIC, tier="nightly", configurations=FLOATING_ONLY
)

cosh_values = operator(
    "aten.cosh.default", torch.cosh, HYPERBOLIC, tier="nightly", configurations=FLOATING_ONLY
)

asinh_values = operator(
    "aten.asinh.default",
    torch.asinh,
    [
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01)),
        sample("large", values([1e5, 1e10, 1e18])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

acosh_values = operator(
    "aten.acosh.default",
    torch.acosh,
    [
        sample("near_one", uniform(3, 7, low=1.0, high=1.001)),
        sample("one", values([1.0, 1.0 + 2**-23])),
        sample("below_one", values([0.999, 0.0, -2.0])),
        sample("large", values([1e5, 1e10, 1e18])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

atanh_values = operator(
    "aten.atanh.default",
    torch.atanh,
    [
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01)),
        sample("ends", values([1.0, -1.0, 1 - 2**-24, -(1 - 2**-24)])),
        sample("beyond", values([1.5, -2.0])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)
