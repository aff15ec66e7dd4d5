"""Each value by itself in each place of a model file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import models
from tests.fuzz.campaign import judge
from tests.fuzz.formats import FORMATS
from tests.fuzz.mutations import Input


@pytest.mark.parametrize("name", ["inputs", "forward", "model", "samples", "profiles"])
def test_values_of_model_files(name: str, tmp_path: Path) -> None:
    models.sound()
    for leaf in models.LEAVES:
        value = f"({leaf},)" if name == "inputs" else leaf
        judge(FORMATS["model"], Input(models.with_value(name, value)), tmp_path / "input.py")
