"""A fault in a quantised network of 44 layers: the stage, and the step, value or operator, are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.deep import CONVERSION, DEVICE, FOLDING, LOWERING, PARAMETERS, Deep, try_stage
from vgf_conformance.lowering.cache import Cache

STAGE = {**PARAMETERS, **FOLDING, **CONVERSION}


@pytest.mark.parametrize(
    "name", ["scale off by 2 % 17", "observers swapped 12", "folded twice", "layer left unquantised 19"]
)
def test_a_fault_of_the_quantise_stage(name: str) -> None:
    outcome = try_stage(STAGE[name])
    assert outcome.found == outcome.right


def test_a_fault_of_lowering_or_of_a_device(cache: Cache, tmp_path: Path) -> None:
    deep = Deep(cache, tmp_path)
    for outcome in (deep.try_lowering(LOWERING["bias lost"]), deep.try_device(*DEVICE["table"])):
        assert outcome.found == outcome.right
