"""Powers, roots, exponentials, logarithms and the error function.

Covered: the special values and denormals, results that overflow and that underflow, arguments near the
point where a formula loses its digits, exponents of both signs and zero, and as int8 and int16 tables.
"""

import math

import torch

from vgf_conformance.cases.case import FLOATING_ONLY, QUANTISED, SEPARATE, narrow, operator, quantised, sample
from vgf_conformance.cases.inputs import normal, ramp, special_values, uniform, values

pow_scalar = operator(
    "aten.pow.Tensor_Scalar",
    torch.pow,
    [
        sample("square", normal(3, 5), exponent=2),
        sample("fractional", ramp(7, 147, low=0.0, high=2.0), exponent=1.5),
    ],
)

pow_tensor = operator(
    "aten.pow.Tensor_Tensor",
    torch.pow,
    [sample("broadcast", uniform(2, 5, low=0.5, high=2.0), normal(5))],
    # The quantizer does not mark it, so that in INT it stays on the CPU.
    configurations=FLOATING_ONLY,
)

sqrt = operator(
    "aten.sqrt.default",
    torch.sqrt,
    [
        sample("rank4", ramp(1, 7, 7, 21, low=0.0, high=4.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

rsqrt = operator(
    "aten.rsqrt.default",
    torch.rsqrt,
    [
        sample("rank2", ramp(7, 147, low=0.25, high=4.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

reciprocal = operator(
    "aten.reciprocal.default",
    torch.reciprocal,
    [
        sample("rank2", ramp(7, 147, low=0.25, high=4.0)),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

exp = operator(
    "aten.exp.default",
    torch.exp,
    [
        sample("rank1", normal(17)),
        sample("rank0", normal(), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

log = operator(
    "aten.log.default",
    torch.log,
    [
        sample("rank2", uniform(3, 7, low=0.1, high=10.0), configurations=FLOATING_ONLY),
        sample("every_code", ramp(7, 147, low=0.1, high=10.0), configurations=QUANTISED),
        # Around 1, where the result is small and its relative error is not bounded.
        sample("near_one", uniform(3, 7, low=0.99, high=1.01), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
)

erf = operator("aten.erf.default", torch.erf, [sample("rank2", ramp(7, 147, low=-3.0, high=3.0))])

erfinv = operator(
    "aten.erfinv.default",
    torch.erfinv,
    [
        sample("inside", ramp(7, 147, low=-0.9, high=0.9)),
        # Both tails, where another polynomial takes over.
        sample("tails", uniform(3, 7, low=0.95, high=0.9999), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

expm1 = operator(
    "aten.expm1.default",
    torch.expm1,
    [
        sample("rank2", ramp(7, 147, low=-4.0, high=2.0)),
        # exp(x) - 1 would lose most of the digits here.
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

log1p = operator(
    "aten.log1p.default",
    torch.log1p,
    [
        sample("rank2", ramp(7, 147, low=-0.5, high=5.0)),
        # log(1 + x) would lose most of the digits here.
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01), configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

log10 = operator(
    "aten.log10.default",
    torch.log10,
    [sample("rank2", ramp(7, 147, low=0.1, high=10.0))],
    tier="nightly",
    # The backend has it as a table only: FP leaves it to the CPU.
    configurations=QUANTISED,
)

logit = operator(
    "aten.logit.default",
    torch.logit,
    [
        sample("inside", ramp(7, 147, low=0.1, high=0.9)),
        sample("clamped", uniform(3, 7), eps=0.1, configurations=FLOATING_ONLY),
        sample("special", special_values(), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)

# The quantizer does not mark it, and what stays in float is not for the INT profile.
pow_tensor_quantised = operator(
    "aten.pow.Tensor_Tensor",
    torch.pow,
    [sample("broadcast", uniform(2, 5, low=0.5, high=2.0), normal(5))],
    tier="nightly",
    configurations=(("INT", "a8w8-pc"),),
    delegated=False,
)

# The operators that are documented for float16 and bfloat16.

pow_scalar_narrow = narrow(pow_scalar, "square", "fractional")
pow_tensor_narrow = narrow(pow_tensor, "broadcast")
reciprocal_narrow = narrow(reciprocal, "rank2", "special")
exp_narrow = narrow(exp, "rank1", "special")
log_narrow = narrow(log, "rank2", "special")
erf_narrow = narrow(erf, "rank2")
erfinv_narrow = narrow(erfinv, "inside")

# Values where a formula loses its digits, and results where the range ends.

#: The smallest normal number and its neighbour below, a subnormal in the middle, and the smallest; then
#: ordinary numbers: where a device may flush, faults do not show.
DENORMALS = values([2**-126, 2**-126 - 2**-149, 1e-40, 2**-149, 0.5, 0.75, 1.5, 2.0, 2.5, 3.0])

exp_values = operator(
    "aten.exp.default",
    torch.exp,
    [
        # exp(88.72) is the last below infinity, exp(-87.33) the last normal, exp(-103) a subnormal.
        sample("ends", values([88.72, 88.73, 100.0, -87.33, -87.4, -95.0, -103.0, -110.0])),
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01)),
        sample("denormals", DENORMALS),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

exp_shapes = operator(
    "aten.exp.default",
    torch.exp,
    [
        sample("rank6", normal(1, 2, 1, 3, 2, 2)),
        # exp(8) is 3000: most of the int8 results are 0.
        sample("wide", uniform(2, 40, low=-8.0, high=8.0)),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

# Subnormal results may be flushed to zero, whose logarithm is minus infinity.
log_of_exp = operator(
    "aten.log.default",
    lambda x: torch.log(torch.exp(x)),
    [sample("subnormal_between", uniform(20, low=-103.0, high=-88.0)), sample("normal_between", normal(20))],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

log_values = operator(
    "aten.log.default",
    torch.log,
    [
        sample("denormals", DENORMALS),
        # Exact in any correct logarithm: 1 gives 0.
        sample("one", values([1.0, 1.0 + 2**-23, 1.0 - 2**-24])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

log1p_values = operator(
    "aten.log1p.default",
    torch.log1p,
    [
        # To 0.99 below 0, where a polynomial around 0 does not reach.
        sample("to_the_pole", uniform(25, low=-0.99, high=3.0)),
        sample("tiny", values([1e-10, -1e-10, 1e-20, 1e-38, 0.0, -0.0])),
        sample("large", values([1e5, 1e10, 1e30, 3.4e38])),
        sample("denormals", DENORMALS),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

log1p_quantised = operator(
    "aten.log1p.default",
    torch.log1p,
    [sample("to_the_pole", ramp(7, 147, low=-0.99, high=3.0))],
    tier="nightly",
    configurations=QUANTISED,
)

expm1_values = operator(
    "aten.expm1.default",
    torch.expm1,
    [
        sample("tiny", values([1e-10, -1e-10, 1e-20, 1e-38, 0.0, -0.0])),
        # Either side of 0.35, where lowering changes from a series to exp(x) - 1.
        sample("seam", values([0.349, 0.35, 0.351, -0.349, -0.35, -0.351])),
        sample("ends", values([88.0, 89.0, -20.0, -100.0, -1000.0])),
        sample("denormals", DENORMALS),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

sqrt_values = operator(
    "aten.sqrt.default",
    torch.sqrt,
    [
        # Squares, whose roots are exact in any correct square root.
        sample("squares", values([0.0, 1.0, 4.0, 9.0, 16.0, 1e4, 0.25, 2.0**100])),
        sample("minus_zero", values([-0.0, 0.0])),
        sample("wide", values([1e-38, 1e-30, 1e30, 3.4e38])),
        sample("denormals", DENORMALS),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

rsqrt_values = operator(
    "aten.rsqrt.default",
    torch.rsqrt,
    [
        sample("squares", values([1.0, 4.0, 16.0, 0.25, 2.0**-100, 2.0**100])),
        sample("denormals", DENORMALS),
        sample("wide", values([1e-38, 1e-30, 1e30, 3.4e38])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

reciprocal_values = operator(
    "aten.reciprocal.default",
    torch.reciprocal,
    [
        # Powers of two are exact; from 2^127 on the results are subnormal.
        sample("powers_of_two", values([1.0, 2.0, -4.0, 2.0**-126, 2.0**126])),
        sample("subnormal_results", values([2.0**127, -3e38])),
        # From 2^-128 down the results overflow.
        sample("denormals", DENORMALS),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

pow_tensor_values = operator(
    "aten.pow.Tensor_Tensor",
    torch.pow,
    [
        # As C's pow: anything to the power of 0 is 1.
        sample("zero_exponents", values([2.0, 0.5, 1.0]), values([0.0, -0.0, 0.0])),
        sample("zero_to_zero", values([0.0, 0.0, 2.0, 3.0]), values([0.0, 2.0, 0.0, 1.0])),
        # Whole exponents leave the sign: (-2)^2 = 4, (-2)^3 = -8.
        sample("negative_whole", values([-2.0, -2.0, -3.0]), values([2.0, 3.0, 2.0])),
        sample("negative_fractional", values([-2.0, -8.0]), values([0.5, 1.0 / 3])),
        sample("zero_to_negative", values([0.0, -0.0, 0.0]), values([-1.0, -1.0, -2.0])),
        sample(
            "not_numbers",
            values([math.inf, -math.inf, 1.0, math.nan, 2.0, 1.0]),
            values([0.0, 3.0, math.inf, 0.0, math.inf, math.nan]),
        ),
        sample("overflow", values([2.0, 10.0, 10.0]), values([128.0, 39.0, -46.0])),
        sample("whole_results", values([2.0, 3.0, 10.0, 5.0]), values([10.0, 4.0, 3.0, 2.0])),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

pow_scalar_values = operator(
    "aten.pow.Tensor_Scalar",
    torch.pow,
    [
        sample("zero", special_values(), exponent=0.0),
        sample("one", special_values(), exponent=1.0),
        sample("square", special_values(), exponent=2.0),
        sample("minus_one", special_values(), exponent=-1.0),
        sample("minus_two_below_zero", uniform(3, 5, low=-2.0, high=-0.5), exponent=-2),
        sample("half", uniform(3, 5, low=0.1, high=4.0), exponent=0.5),
        sample("half_below_zero", values([-1.0, -4.0, 4.0]), exponent=0.5),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

pow_scalar_quantised = operator(
    "aten.pow.Tensor_Scalar",
    torch.pow,
    [
        sample("cube", ramp(7, 147, low=-2.0, high=2.0), exponent=3),
        sample("zero", ramp(7, 147, low=-2.0, high=2.0), exponent=0),
        sample("minus_one", ramp(7, 147, low=0.5, high=2.0), exponent=-1),
    ],
    tier="nightly",
    configurations=QUANTISED,
)

erf_values = operator(
    "aten.erf.default",
    torch.erf,
    [
        sample("special", special_values()),
        sample("near_zero", uniform(3, 7, low=-0.01, high=0.01)),
        sample("tails", uniform(3, 7, low=2.0, high=6.0)),
        sample("denormals", DENORMALS),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

logit_values = operator(
    "aten.logit.default",
    torch.logit,
    [
        sample("ends", values([0.0, 1.0, 1e-30, 1.0 - 2**-24])),
        sample("beyond", values([-0.5, 1.5, 2.0])),
        sample("clamped_beyond", values([-0.5, 0.0, 0.5, 1.0, 1.5]), eps=0.1),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# TOSA's int16 TABLE interpolates linearly between 513 entries, 128 steps of the input apart: a chord lies
# above 1 / sqrt(x), by h^2 / 8 of the second derivative, 3/4 x^-2.5. Both scales are 2^-12 here, so that
# h = 2^-5, and from the smallest input on, 0.446 in a cell that begins at 0.4375, that is at most 3.0 steps.
rsqrt_a16w8 = quantised(
    rsqrt,
    "a16w8",
    "rank2",
    lsb=4.0,
    lsb_reason="3 steps between entries of the int16 table, and three roundings of half a step each",
)
