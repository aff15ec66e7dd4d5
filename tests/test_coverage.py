"""What the installed executorch claims has a case, or a reason why not in golden/uncovered.toml."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from vgf_conformance.cases.case import FLOATING_ONLY, Case, operator, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.claims import covered, uncovered
from vgf_conformance.evaluation.claimed import installed_claims
from vgf_conformance.evaluation.collect import declared_cases
from vgf_conformance.results.claims import Gaps, load_reasons

ROOT = Path(__file__).parents[1]
SUITES = ROOT / "suites"
OPERATORS = sorted((SUITES / "operators").glob("test_*.py"))


#: Claimed operators on floating point that need no sample with NaN or infinities, and why.
NOT_SPECIAL = {
    **dict.fromkeys(
        ["aten.arange.default", "aten.arange.start_step", "aten.eye.default", "aten.linspace.default"],
        "its numbers are its own: the input is only added to the result",
    ),
    **dict.fromkeys(
        ["aten.ones.default", "aten.zeros.default", "aten.scalar_tensor.default", "aten.fill_.Scalar"],
        "its numbers are its own: the input is only added to the result",
    ),
    **dict.fromkeys(
        ["aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default"],
        "it works on truth values: the numbers beside them make these",
    ),
    "aten.log10.default": "the backend has it as a table of int8 only, which holds no special values",
    **dict.fromkeys(
        ["aten.grid_sampler.default", "aten.grid_sampler_2d.default"],
        "a custom shader, whose sampler TOSA does not define",
    ),
    **dict.fromkeys(
        ["aten._assert_scalar.default", "higher_order.cond", "higher_order.while_loop"],
        "control flow around another operator",
    ),
}


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


@pytest.fixture(scope="module")
def gaps(cases: list[Case]) -> Gaps:
    """Claims by operator, profile, dtype and mode against the cases and the table of reasons."""
    return Gaps.of(
        installed_claims(), covered(cases), load_reasons(ROOT / "golden" / "uncovered.toml").keys()
    )


def test_every_claim_has_a_case_or_a_reason(gaps: Gaps) -> None:
    missing = ", ".join(map(str, gaps.unexplained))
    assert not missing, f"claimed, without a case and without a reason in golden/uncovered.toml: {missing}"


def test_no_reason_is_out_of_date(gaps: Gaps) -> None:
    stale = ", ".join(map(str, gaps.stale))
    assert not stale, f"in golden/uncovered.toml, but covered by a case or not claimed: {stale}"


def test_nearly_every_claim_has_a_case(gaps: Gaps) -> None:
    assert gaps.covered_share >= 0.95, f"of {gaps.claimed} claims without a case: {len(gaps.uncovered)}"


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


def test_every_claimed_operator_on_floats_has_special_values(cases: list[Case]) -> None:
    claimed = {claim.operator for claim in installed_claims()}
    on_floats, special = set(), set()
    for case in cases:
        for item in case.samples:
            for value in item.inputs(seed=0):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    on_floats.add(case.operator)
                    if not value.float().isfinite().all() or "infinite" in item.name:
                        special.add(case.operator)
    lacking = sorted((on_floats & claimed) - special)
    assert lacking == sorted(NOT_SPECIAL)
