"""Delta debugging: the fewest of many items that still do what all of them do.

A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on
Software Engineering 28(2), 2002.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

Fails = Callable[[tuple[int, ...]], bool]


def fewest(items: Sequence[int], fails: Fails) -> tuple[int, ...]:
    """A part of ``items``, in their order, that fails and of which no item can be left out.

    ``fails`` must hold for all of them; it is asked about smaller and smaller parts, contiguous ones
    first. A part may be asked about twice.
    """
    kept, pieces = tuple(items), 2
    while len(kept) >= 2:
        parts = _split(kept, pieces)
        found = next((part for part in parts if fails(part)), None)
        if found is not None:
            kept, pieces = found, 2
            continue
        # Of two parts each is the other's complement.
        rests = [_without(kept, part) for part in parts] if pieces > 2 else []
        found = next((rest for rest in rests if fails(rest)), None)
        if found is not None:
            kept, pieces = found, max(pieces - 1, 2)
        elif pieces < len(kept):
            pieces = min(2 * pieces, len(kept))
        else:
            break
    return kept


def _split(items: tuple[int, ...], pieces: int) -> list[tuple[int, ...]]:
    edges = [len(items) * number // pieces for number in range(pieces + 1)]
    return [items[low:high] for low, high in itertools.pairwise(edges)]


def _without(items: tuple[int, ...], part: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(item for item in items if item not in part)
