"""Softmax and its logarithm, over the last and over an inner dimension, and far from zero."""

import torch

from vgf_conformance.cases.case import FLOATING_ONLY, operator, sample
from vgf_conformance.cases.inputs import normal

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
