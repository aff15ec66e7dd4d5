"""Softmax and its logarithm.

Covered: ranks 1 to 5, over every kind of dimension, of size 1 and 1000, dense, transposed and
channels_last; far from zero, infinities, NaN, and results whose logarithm is small and not lost.
"""

import math

import torch

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, operator, sample
from vgf_conformance.cases.inputs import normal, values

softmax = operator(
    "aten._softmax.default",
    torch.softmax,
    [
        sample("last", normal(3, 7), dim=-1),
        sample("inner_rank4", normal(1, 5, 2, 3), dim=1),
        # exp(200) overflows float32: right only where the maximum is subtracted first.
        sample("large", normal(3, 7, scale=200.0), dim=-1, configurations=FLOATING_ONLY),
    ],
)

log_softmax = operator(
    "aten._log_softmax.default",
    torch.log_softmax,
    [
        sample("last", normal(3, 7), dim=-1),
        sample("inner_rank4", normal(1, 5, 2, 3), dim=1, configurations=FLOATING_ONLY),
    ],
)

#: Infinities and NaN in a row of their own, numbers that overflow, and a row of equal ones.
EXTREMES = values(
    [
        *[1e4, -1e4, 0.0],
        *[1e38, 1e38, -1e38],
        *[3e38, -3e38, 0.0],
        *[-math.inf, 0.0, 1.0],
        *[1000.0, 1000.0, 999.0],
        *[1e-40, -1e-40, 0.0],
    ],
    6,
    3,
)

#: inf - inf and NaN make a row NaN.
NOT_NUMBERS = values(
    [*[math.inf, 0.0, 1.0], *[math.nan, 0.0, 1.0], *[-math.inf] * 3, *[-math.inf, math.inf, 0.0]], 4, 3
)

softmax_values = operator(
    "aten._softmax.default",
    torch.softmax,
    [
        sample("extremes", EXTREMES, dim=-1),
        sample("not_numbers", NOT_NUMBERS, dim=-1),
        sample("equal", values([2.5] * 21, 3, 7), dim=-1),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

log_softmax_values = operator(
    "aten._log_softmax.default",
    torch.log_softmax,
    [
        # exp(-100) is lost beside 1, and its logarithm is not: right only where nothing is exponentiated
        # on the way.
        sample("far_apart", values([0.0, -100.0, -200.0, 50.0, -50.0, 0.0], 2, 3), dim=-1),
        sample("extremes", EXTREMES, dim=-1),
        sample("not_numbers", NOT_NUMBERS, dim=-1),
        sample("large", normal(3, 7, scale=200.0), dim=-1),
    ],
    tier="nightly",
    configurations=FLOATING_ONLY,
)

# The names that the documentation has for them.

#: Numbers whose exponentials overflow unless the largest is taken off first.
LOUD = normal(3, 7, scale=60.0)

softmax_shapes = operator(
    "aten.softmax.int",
    torch.softmax,
    [
        sample("negative_inner", normal(2, 3, 4), dim=-2, configurations=FLOATING_ONLY),
        sample("rank5", normal(2, 3, 2, 3, 2), dim=3, configurations=FLOATING_ONLY),
        # A dimension of one is 1 everywhere.
        sample("size1", normal(3, 1), dim=-1),
        sample("transposed", normal(4, 6, transposed=True), dim=-1, configurations=FLOATING_ONLY),
        sample("long", normal(2, 1000), dim=-1),
        sample("in_a_given_type", normal(3, 7), dim=-1, dtype=torch.float32, configurations=FLOATING_ONLY),
        sample("loud", LOUD, dim=-1, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)

softmax_default = operator(
    "aten.softmax.int",
    lambda tensor: torch.nn.Softmax(dim=1)(tensor),
    [sample("module", normal(3, 7)), sample("loud", LOUD, configurations=FLOATING_ONLY)],
    tier="nightly",
    configurations=SEPARATE,
)

log_softmax_shapes = operator(
    "aten.log_softmax.int",
    torch.log_softmax,
    [
        sample("wide", normal(4, 10), dim=-1),
        # Five times as wide: most of the results lie far below 0.
        sample("wider", normal(4, 10, scale=5.0), dim=-1),
        sample("size1", normal(3, 1), dim=-1, configurations=FLOATING_ONLY),
        sample("transposed", normal(4, 6, transposed=True), dim=-1, configurations=FLOATING_ONLY),
        sample("loud", LOUD, dim=-1, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
    configurations=SEPARATE,
)
