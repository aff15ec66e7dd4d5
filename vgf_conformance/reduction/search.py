"""The fewest of many items that still do what all of them do.

Halves first, as in delta debugging (A. Zeller and R. Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", IEEE Transactions on Software Engineering 28(2), 2002): what fails is mostly one
item, or a few beside each other, and half a model takes half the time to lower. Items that lie apart are
then found one after the other by bisection, in about log2(n) questions each where delta debugging takes
several times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Fails = Callable[[tuple[int, ...]], bool]


def fewest(items: Sequence[int], fails: Fails) -> tuple[int, ...]:
    """A part of ``items``, in their order, that fails and of which no item can be left out.

    ``fails`` must hold for all of them. A part may be asked about twice.
    """
    kept = _apart(_halved(tuple(items), fails), fails)
    # Where more items do not always fail as fewer do, one may be left that is not needed.
    while len(kept) > 1:
        rests = (tuple(item for item in kept if item != left) for left in kept)
        found = next((rest for rest in rests if fails(rest)), None)
        if found is None:
            break
        kept = found
    return kept


def _halved(kept: tuple[int, ...], fails: Fails) -> tuple[int, ...]:
    """The last half of a half that fails."""
    while len(kept) > 1:
        middle = len(kept) // 2
        found = next((half for half in (kept[middle:], kept[:middle]) if fails(half)), None)
        if found is None:
            break
        kept = found
    return kept


def _apart(kept: tuple[int, ...], fails: Fails) -> tuple[int, ...]:
    """The shortest beginning that fails ends with an item that is needed; the others lie before it."""
    needed: tuple[int, ...] = ()
    rest = kept
    while rest and not (needed and fails(needed)):
        short, enough = 0, len(rest)
        while enough - short > 1:
            middle = (short + enough) // 2
            if fails((*rest[:middle], *needed)):
                enough = middle
            else:
                short = middle
        needed, rest = (rest[enough - 1], *needed), rest[: enough - 1]
    return needed
