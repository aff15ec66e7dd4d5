"""A fault in a quantised network of 44 layers: the step and the value are named (lowering takes too long)."""

from __future__ import annotations

import pytest

from tests.evaluation.deep import CONVERSION, FOLDING, PARAMETERS, StagePlant, try_stage

STAGE: dict[str, StagePlant] = {**PARAMETERS, **FOLDING, **CONVERSION}
CHOSEN = (
    *("scale off by 2 % 17", "observers swapped 12"),
    *("folded twice", "one channel left out"),
    *("requantisation dropped 13", "layer left unquantised 19"),
)


@pytest.mark.parametrize("name", CHOSEN)
def test_step_and_value_are_named(name: str) -> None:
    outcome = try_stage(STAGE[name])
    assert outcome.found == outcome.right
