"""Matrix products, with weights and between two inputs.

Covered: vectors to batches of matrices, a transposed operand, odd sizes, and exact data: small
integers in float32, whose products and sums are representable, so that any slip shows.
"""

import torch
from torch import nn

from vgf_conformance.cases.case import COMBINED, FLOATING_ONLY, layer, operator, sample
from vgf_conformance.cases.inputs import integers, normal

linear = layer(
    "aten.linear.default",
    nn.Linear,
    [
        sample("rank2", normal(3, 7), args=(7, 5), configurations=COMBINED),
        sample("rank3_no_bias", normal(2, 3, 8), args=(8, 4), bias=False),
        sample("rank1", normal(6), args=(6, 3), configurations=FLOATING_ONLY),
    ],
)

mm = operator(
    "aten.mm.default",
    torch.mm,
    [
        sample("rank2", normal(3, 7), normal(7, 5)),
        sample("transposed", normal(3, 7), normal(7, 5, transposed=True), configurations=FLOATING_ONLY),
        sample(
            "exact",
            integers(3, 33, low=-8, high=9, dtype=torch.float32),
            integers(33, 5, low=-8, high=9, dtype=torch.float32),
            configurations=FLOATING_ONLY,
        ),
    ],
)

bmm = operator("aten.bmm.default", torch.bmm, [sample("rank3", normal(2, 3, 5), normal(2, 5, 4))])

matmul = operator(
    "aten.bmm.default",
    torch.matmul,
    [
        sample("heads", normal(1, 2, 3, 4), normal(1, 2, 4, 3)),
        sample("broadcast", normal(2, 3, 4), normal(4, 5), configurations=FLOATING_ONLY),
    ],
)

addmm = operator(
    "aten.addmm.default",
    torch.addmm,
    [
        sample("row", normal(5), normal(3, 7), normal(7, 5)),
        sample(
            "scaled",
            normal(3, 5),
            normal(3, 7),
            normal(7, 5),
            alpha=2.0,
            beta=0.5,
            configurations=FLOATING_ONLY,
        ),
    ],
)
