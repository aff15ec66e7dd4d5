"""Which operators only move data: what comes out of one are the numbers that went in."""

from __future__ import annotations

_MOVES = frozenset(
    {
        *("alias", "clone", "contiguous", "detach", "expand", "flatten", "permute", "repeat", "reshape"),
        *("select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unflatten"),
        *("unbind", "unsqueeze", "view", "_clone_dim_order", "_to_dim_order", "_unsafe_view"),
    }
)


def moves_data(operator: str) -> bool:
    """Whether ``operator`` (``aten.view_copy.default``, ``_operator:getitem``) only moves data.

    A copy in another dimension order that also changes the dtype counts as well: it rounds, but
    neither quantises nor scales.
    """
    if ":" in operator:
        return operator.endswith(":getitem")
    packet = operator.partition(".")[2].partition(".")[0]
    return packet.removesuffix("_copy") in _MOVES
