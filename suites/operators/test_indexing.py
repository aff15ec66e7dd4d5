"""Reading and writing by index.

Covered: int32 and int64 indices given as inputs and as constants, repeated, out of order, first and
last, negative ones, every dimension of ranks 1 to 4, one index alone, several index tensors, special
values, booleans, int32 and int8 as data, an embedding table as a weight, writes that meet, scatters.
Indices are integers in every profile; the data that they address is quantised in INT.
"""

import math

import torch
from torch import nn

from vgf_conformance.cases.case import (
    FLOATING,
    FLOATING_ONLY,
    SEPARATE,
    layer,
    narrow,
    operator,
    sample,
)
from vgf_conformance.cases.inputs import booleans, integers, normal, special_values, values

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
        sample("repeated_int32", normal(5, 123), values([4, 0, 2, 2], dtype=torch.int32), dim=0),
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
        # Every row is asked for.
        sample("rank1_int32", values([3, 0, 8, 5, 1, 7, 2, 6, 4, 8], dtype=torch.int32), args=(9, 41)),
        sample("rank2_int32", integers(2, 3, low=0, high=9), args=(9, 4), configurations=FLOATING_ONLY),
    ],
    # A table of embeddings has no output channels of its own to scale by.
    configurations=FLOATING,
)

# The operators that are documented for float16 and bfloat16.

gather_narrow = narrow(gather, "rows_int32")
index_select_narrow = narrow(index_select, "repeated_int32")
index_narrow = narrow(index, "rows_int32")

# Edges of each.

INT = (("INT", "none"),)

#: Out of order, repeated, and both ends of eleven.
ROWS = values([10, 0, 3, 3, 7], dtype=torch.int32)
#: From the end, as PyTorch counts where it takes a negative index.
FROM_THE_END = values([-1, 0, -5, 4], dtype=torch.int32)
LEAST, GREATEST = -(2**31), 2**31 - 1

gather_edges = operator(
    "aten.gather.default",
    lambda tensor, index, dim: torch.gather(tensor, dim, index),
    [
        sample(
            "special",
            values([math.nan, math.inf, -math.inf, -0.0, 1e-40, 3.4028235e38], 2, 3),
            values([2, 1, 0, 0, 0, 1, 1, 2], 2, 4, dtype=torch.int32),
            dim=1,
            configurations=FLOATING_ONLY,
        ),
        sample(
            "rank3_middle",
            normal(2, 4, 3),
            integers(2, 6, 3, low=0, high=4),
            dim=1,
            configurations=SEPARATE,
        ),
        sample(
            "boolean",
            booleans(3, 5),
            integers(3, 2, low=0, high=5),
            dim=1,
            configurations=(("FP", "none"), *INT),
        ),
        sample(
            "int32_extremes",
            values([LEAST, GREATEST, 0, -1], 1, 4, dtype=torch.int32),
            values([1, 0, 3], 1, 3, dtype=torch.int32),
            dim=1,
            configurations=INT,
        ),
    ],
    tier="nightly",
)

# The backend takes dimension 1 of rank 2 and 3 alone.
gather_elsewhere = operator(
    "aten.gather.default",
    lambda tensor, index, dim: torch.gather(tensor, dim, index),
    [
        sample("special_rank1", special_values(), values([10, 0, 3, 3], dtype=torch.int32), dim=0),
        sample("first_dimension", normal(4, 3), integers(2, 3, low=0, high=4), dim=0),
        sample("rank4_negative", normal(1, 2, 3, 5), integers(1, 2, 3, 2, low=0, high=5), dim=-1),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)

index_select_edges = operator(
    "aten.index_select.default",
    lambda tensor, index, dim: torch.index_select(tensor, dim, index),
    [
        sample("special_rank1", special_values(), ROWS, dim=0, configurations=FLOATING_ONLY),
        sample(
            "last_of_rank4",
            normal(1, 2, 3, 4),
            values([3, 0, 3], dtype=torch.int32),
            dim=-1,
            configurations=SEPARATE,
        ),
        sample("boolean", booleans(11, 2), ROWS, dim=0, configurations=(("FP", "none"), *INT)),
        sample(
            "int32_extremes",
            values([LEAST, GREATEST, 0], 3, 1, dtype=torch.int32),
            values([1, 0], dtype=torch.int32),
            dim=0,
            configurations=INT,
        ),
    ],
    tier="nightly",
)

index_select_int64 = operator(
    "aten.index_select.default",
    lambda tensor, index, dim: torch.index_select(tensor, dim, index),
    [sample("repeated", normal(5, 3), values([4, 0, 2, 2], dtype=torch.int64), dim=0)],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)

index_edges = operator(
    "aten.index.Tensor",
    lambda tensor, rows: tensor[rows],
    [
        sample("special_rank1", special_values(), ROWS, configurations=FLOATING_ONLY),
        sample(
            "rows_of_rank4",
            normal(5, 1, 2, 3),
            values([4, 0, 2], dtype=torch.int32),
            configurations=FLOATING_ONLY,
        ),
        sample("rank2_index", normal(5, 3), integers(2, 3, low=0, high=5), configurations=SEPARATE),
        sample("int32_data", integers(11, 2, low=-1000, high=1000), ROWS, configurations=INT),
        # Eager wraps it around; TOSA's GATHER is undefined there.
        sample("negative", normal(5, 3), FROM_THE_END, configurations=SEPARATE),
    ],
    tier="nightly",
)
index_pairs = operator(
    "aten.index.Tensor",
    lambda tensor, rows, columns: tensor[rows, columns],
    [
        # A column of rows and a row of columns: every pair.
        sample(
            "broadcast",
            normal(4, 5),
            values([3, 0], 2, 1, dtype=torch.int32),
            values([4, 1, 0], dtype=torch.int32),
            configurations=FLOATING_ONLY,
        ),
    ],
    tier="nightly",
)
# The index is part of the program, which could know what it means.
index_constant_rows = operator(
    "aten.index.Tensor",
    lambda tensor: tensor[[-1, 0, -2]] * 2.0,
    [sample("negative", normal(5, 3)), sample("special", special_values(), configurations=FLOATING_ONLY)],
    configurations=SEPARATE,
    tier="nightly",
)
# What stands before the index keeps it on the CPU.
index_constant_columns = operator(
    "aten.index.Tensor",
    lambda tensor: tensor[:, [-1, 0]],
    [sample("negative", normal(5, 3))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)
select_negative = operator(
    "aten.select.int",
    lambda tensor, dim, index: torch.select(tensor, dim, index),
    [
        sample("row_from_the_end", normal(5, 3), dim=0, index=-2, configurations=SEPARATE),
        sample("special", special_values(column=True), dim=1, index=-1, configurations=FLOATING_ONLY),
        sample("rank1_to_rank0", normal(5), dim=0, index=3, configurations=FLOATING_ONLY),
        sample(
            "int32_extreme",
            values([LEAST, GREATEST], 2, 1, dtype=torch.int32),
            dim=0,
            index=1,
            configurations=INT,
        ),
    ],
    tier="nightly",
)

index_put_edges = operator(
    "aten.index_put.default",
    lambda tensor, rows, new: torch.index_put(tensor, (rows,), new),
    [
        # One row is written twice: eager keeps the last, TOSA's SCATTER leaves it undefined.
        sample(
            "row_written_twice",
            normal(5, 3),
            values([1, 3, 1], dtype=torch.int32),
            normal(3, 3),
            configurations=SEPARATE,
        ),
        sample(
            "negative",
            normal(5, 3),
            values([-1, 0], dtype=torch.int32),
            normal(2, 3),
            configurations=SEPARATE,
        ),
        sample(
            "special",
            normal(3, 11),
            values([2, 0], dtype=torch.int32),
            special_values(),
            configurations=FLOATING_ONLY,
        ),
        sample(
            "one_row_for_all",
            normal(5, 3),
            values([3, 0], dtype=torch.int32),
            normal(3),
            configurations=SEPARATE,
        ),
        # New values of a wider range than the old.
        sample(
            "unlike_ranges",
            normal(5, 3),
            values([3, 0], dtype=torch.int32),
            normal(2, 3, scale=20.0),
            configurations=SEPARATE,
        ),
        sample(
            "int32",
            integers(5, 3, low=-9, high=9),
            values([3, 0], dtype=torch.int32),
            integers(2, 3, low=100, high=200),
            configurations=INT,
        ),
    ],
    tier="nightly",
)
index_put_accumulated = operator(
    "aten.index_put.default",
    lambda tensor, rows, new: torch.index_put(tensor, (rows,), new, accumulate=True),
    [sample("once_each", normal(5, 3), values([3, 0], dtype=torch.int32), normal(2, 3))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)


def put_in_place(tensor: torch.Tensor, rows: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Write rows of a tensor of the function's own."""
    own = tensor * 1.5
    own[rows] = new
    return own


index_put_in_place = operator(
    "aten.index_put_.default",
    put_in_place,
    [sample("rows_int32", normal(5, 3), values([3, 0], dtype=torch.int32), normal(2, 3))],
    configurations=SEPARATE,
    tier="nightly",
)

select_scatter = operator(
    "aten.select_scatter.default",
    torch.select_scatter,
    [
        sample("row", normal(4, 3), normal(3), dim=0, index=2, configurations=SEPARATE),
        sample("last_column", normal(4, 3), normal(4), dim=1, index=-1, configurations=FLOATING_ONLY),
        sample("special", normal(3, 11), special_values(), dim=0, index=0, configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
scatter = operator(
    "aten.scatter.src",
    lambda tensor, index, source: torch.scatter(tensor, 1, index, source),
    [sample("columns", normal(3, 5), values([4, 0, 1, 2, 3, 0], 3, 2, dtype=torch.int64), normal(3, 2))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)

embedding_edges = layer(
    "aten.embedding.default",
    nn.Embedding,
    [
        sample(
            "first_and_last",
            values([0, 8, 0, 8], dtype=torch.int32),
            args=(9, 4),
            configurations=SEPARATE,
        ),
        sample("one_column", integers(5, low=0, high=9), args=(9, 1), configurations=FLOATING_ONLY),
    ],
    tier="nightly",
)
embedding_int64 = layer(
    "aten.embedding.default",
    nn.Embedding,
    [sample("rank1", integers(6, low=0, high=9, dtype=torch.int64), args=(9, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    delegated=False,
)


def special_table() -> nn.Module:
    """An embedding table of special values."""
    rows = [[math.nan, math.inf], [-math.inf, -0.0], [3.4028235e38, 1e-40]]
    return nn.Embedding.from_pretrained(torch.tensor(rows))


embedding_special = layer(
    "aten.embedding.default",
    special_table,
    [sample("special", values([2, 1, 0, 1], dtype=torch.int32))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)

gather_narrow_edges = narrow(gather_edges, "special")
index_select_narrow_edges = narrow(index_select_edges, "special_rank1")
