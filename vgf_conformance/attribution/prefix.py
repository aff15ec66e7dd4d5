"""The first operator of a graph that a tool does not take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vgf_conformance.attribution.cut import first, pieces
from vgf_conformance.formats.tosa import TosaGraph


@dataclass(frozen=True)
class Prefix:
    """The fewest operators from the start that fail, and the position of their last in the whole graph."""

    graph: TosaGraph
    position: int


def first_failing(graph: TosaGraph, fails: Callable[[TosaGraph], bool]) -> Prefix | None:
    """The shortest start of ``graph`` that ``fails``, by bisection; None where all of it does not."""
    parts = pieces(graph)
    low, high = 0, len(parts)
    while low < high:
        middle = (low + high) // 2
        if fails(first(graph, parts[: middle + 1])):
            high = middle
        else:
            low = middle + 1
    if low == len(parts):
        return None
    return Prefix(first(graph, parts[: low + 1]), parts[low].operators[-1])
