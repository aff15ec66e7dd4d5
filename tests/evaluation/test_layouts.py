"""A TOSA tensor in the order of axes that the program has it in."""

from __future__ import annotations

import numpy as np
import pytest

from vgf_conformance.evaluation.layouts import closest, layouts
from vgf_conformance.targets.base import Array

IMAGE = np.random.default_rng(0).normal(size=(1, 3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (IMAGE.transpose(0, 2, 3, 1), IMAGE),
        (IMAGE.transpose(0, 2, 3, 1).reshape(4, 1, 5, 3), IMAGE),
        (IMAGE.reshape(12, 5), IMAGE),
        (IMAGE.reshape(1, 3, 20)[0], IMAGE.reshape(3, 4, 5)),
    ],
    ids=["NHWC", "axes of 1 elsewhere", "reshaped", "flattened"],
)
def test_the_layout_that_fits(held: Array, wanted: Array) -> None:
    layout = closest(held, wanted)
    assert np.array_equal(layout.apply(held), wanted)
    assert np.array_equal(layout.undo(wanted, held.shape), held)


def test_infinities_at_the_same_place_are_near() -> None:
    wanted = np.array([[np.inf, 1.0], [2.0, 3.0]], np.float32)
    assert np.array_equal(closest(wanted.T, wanted).apply(wanted.T), wanted)


def test_every_order_is_tried_once() -> None:
    cube = np.zeros((2, 2, 2))
    assert len(list(layouts(cube, (2, 2, 2)))) == 6
