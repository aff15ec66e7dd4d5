"""The model suites as declared: every model says where it comes from, and what it needs can be installed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from vgf_conformance.cases.case import Case
from vgf_conformance.evaluation.collect import declared_cases

ROOT = Path(__file__).parents[1]
FILES = sorted(path.stem for path in (ROOT / "suites" / "models").glob("test_*.py"))


def cases() -> list[Case]:
    return [
        case
        for file in FILES
        for case in declared_cases(importlib.import_module(f"suites.models.{file}"), f"models/{file}.py")
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_model_says_where_it_comes_from_and_gives_reasons(case: Case) -> None:
    assert case.about is not None
    assert all((case.about.source, case.about.licence, case.about.weights))
    assert case.budget is None or case.budget.reason
    assert case.task is None or case.task.reason


def test_what_models_need_is_what_the_project_installs() -> None:
    extra = re.search(r"^models = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert extra
    offered = re.findall(r"[\w-]+==[\w.]+", extra[1] + (ROOT / "models.txt").read_text())
    needed = {need for case in cases() for need in case.needs}
    assert needed == set(offered)


def test_the_suites_cover_what_they_should() -> None:
    """Models of each kind: quantised, in both profiles at once, with trained weights, with a task."""
    found = cases()
    lowered = {case.name: {configuration for _, configuration in case.plan()} for case in found}
    profiles = {name: {profile for profile, _ in pairs} for name, pairs in lowered.items()}
    assert sum({"FP", "INT"} <= names for names in profiles.values()) >= 20
    assert sum({"FP", "INT", "FP+INT"} <= names for names in profiles.values()) >= 8
    assert sum("trained" in case.about.weights for case in found if case.about) >= 8
    assert sum(case.task is not None for case in found) >= 8
