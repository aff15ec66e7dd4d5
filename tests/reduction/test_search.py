"""The search for the fewest items, without any model."""

from __future__ import annotations

import pytest

from vgf_conformance.reduction.search import fewest


@pytest.mark.parametrize(
    "needed",
    [(0,), (39,), (17,), (16, 17), (3, 30), (0, 20, 39), (5, 6, 7, 8)],
)
def test_the_items_that_are_needed_are_found(needed: tuple[int, ...]) -> None:
    asked: list[tuple[int, ...]] = []

    def fails(items: tuple[int, ...]) -> bool:
        asked.append(items)
        return set(needed) <= set(items)

    assert fewest(range(40), fails) == needed
    # A model's lowering is behind each question.
    assert len(asked) <= 8 + 8 * len(needed)


def test_nothing_can_be_left_out_of_what_is_found() -> None:
    """Also where more than one part would do, and where an item may only go with another."""

    def fails(items: tuple[int, ...]) -> bool:
        return {1, 2} <= set(items) or (9 in items and len(items) % 2 == 0)

    found = fewest(range(12), fails)
    assert fails(found)
    assert not any(fails(tuple(item for item in found if item != left)) for left in found)


def test_few_items_and_none() -> None:
    assert fewest([4], lambda items: True) == (4,)
    assert fewest([], lambda items: True) == ()
