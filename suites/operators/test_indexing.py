"""Reading and writing by index.

Covered: int32 and int64 indices given as inputs, repeated indices, an embedding table as a weight.
Indices are integers in every profile; the data that they address is quantised in INT.
"""

import torch
from torch import nn

from vgf_conformance.cases.case import FLOATING, FLOATING_ONLY, layer, narrow, operator, sample
from vgf_conformance.cases.inputs import integers, normal, values

gather = operator(
    "aten.gather.default",
    lambda tensor, index, dim: torch.gather(tensor, dim, index),
    [sample("rows_int32", normal(4, 5), integers(4, 3, low=0, high=5), dim=1)],
)

# TOSA's indices are int32: an int64 input keeps the operator on the CPU.
gather_int64 = operator(
    "aten.gather.default",
    lambda tensor, index, dim: torch.gather(tensor, dim, index),
    [sample("rows", normal(4, 5), integers(4, 3, low=0, high=5, dtype=torch.int64), dim=1)],
    configurations=FLOATING_ONLY,
    delegated=False,
)

index_select = operator(
    "aten.index_select.default",
    lambda tensor, index, dim: torch.index_select(tensor, dim, index),
    [
        # Out of order and repeated.
        sample("repeated_int32", normal(5, 3), values([4, 0, 2, 2], dtype=torch.int32), dim=0),
        sample(
            "inner_int32",
            normal(2, 5, 3),
            values([3, 1], dtype=torch.int32),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
    ],
)

index = operator(
    "aten.index.Tensor",
    lambda tensor, rows: tensor[rows],
    [sample("rows_int32", normal(5, 3), values([4, 0, 2, 2], dtype=torch.int32))],
)

index_put = operator(
    "aten.index_put.default",
    lambda tensor, rows, new: torch.index_put(tensor, (rows,), new),
    [sample("rows_int32", normal(5, 3), values([3, 0], dtype=torch.int32), normal(2, 3))],
)

embedding = layer(
    "aten.embedding.default",
    nn.Embedding,
    [
        sample("rank1_int32", integers(6, low=0, high=9), args=(9, 4)),
        sample("rank2_int32", integers(2, 3, low=0, high=9), args=(9, 4), configurations=FLOATING_ONLY),
    ],
    # A table of embeddings has no output channels of its own to scale by.
    configurations=FLOATING,
)

# The operators that are documented for float16 and bfloat16.

gather_narrow = narrow(gather, "rows_int32")
index_select_narrow = narrow(index_select, "repeated_int32")
index_narrow = narrow(index, "rows_int32")
