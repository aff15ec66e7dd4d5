"""Every operator that the installed executorch claims has a case in each profile that it is claimed for."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from vgf_conformance.cases.case import FLOATING_ONLY, Case, operator, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.claims import uncovered
from vgf_conformance.evaluation.collect import declared_cases

SUITES = Path(__file__).parents[1] / "suites"
OPERATORS = sorted((SUITES / "operators").glob("test_*.py"))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """The cases of suites/operators, in every tier."""
    found = []
    for path in OPERATORS:
        spec = importlib.util.spec_from_file_location(f"coverage_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += declared_cases(module, path.relative_to(SUITES).as_posix())
    return found


def test_every_claimed_operator_has_a_case(cases: list[Case]) -> None:
    missing = [f"{name} in {profile}" for name, profile in uncovered(cases)]
    assert not missing, f"claimed by the installed executorch, without a case: {', '.join(missing)}"


def test_a_claimed_operator_without_a_case_is_named(cases: list[Case]) -> None:
    """A case counts for the profiles that it is lowered for, and for its own overload alone."""
    others = [case for case in cases if case.operator != "aten.add.Tensor"]
    assert uncovered(others) == [("aten.add.Tensor", "FP"), ("aten.add.Tensor", "INT")]
    floating = operator(
        "aten.add.Tensor",
        lambda left, right: left + right,
        [sample("same", normal(3), normal(3))],
        configurations=FLOATING_ONLY,
    )
    assert uncovered([*others, floating]) == [("aten.add.Tensor", "INT")]
