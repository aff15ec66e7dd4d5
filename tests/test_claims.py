"""What the installed executorch claims, as the harness reads it."""

from __future__ import annotations

import collections
import importlib.metadata
import sys
from pathlib import Path

import pytest
import torch

from vgf_conformance.cases.case import operator, sample
from vgf_conformance.cases.inputs import booleans, normal
from vgf_conformance.claims import Claim, Source, claims, covered, uncovered
from vgf_conformance.evaluation.claimed import installed_claims, require_known
from vgf_conformance.vocabulary import UserError

# The numbers below were counted in this version.
pytestmark = pytest.mark.skipif(
    importlib.metadata.version("executorch") != "1.5.1", reason="counted in executorch 1.5.1"
)


@pytest.fixture(scope="module")
def found() -> tuple[Claim, ...]:
    return claims()


@pytest.fixture
def no_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "executorch.backends.arm.scripts.docgen.generate_vgf_op_support", None)


def test_the_registry_is_read_per_profile(found: tuple[Claim, ...]) -> None:
    profiles = collections.defaultdict(set)
    for claim in found:
        if claim.source is not Source.DOCUMENTATION:
            profiles[claim.operator].add(claim.profile)
    counted = collections.Counter(tuple(sorted(item)) for item in profiles.values())
    assert len(profiles) == 151
    assert counted == {("FP", "INT"): 126, ("FP",): 23, ("INT",): 2}


def test_the_table_adds_dtypes_and_modes(found: tuple[Claim, ...]) -> None:
    add = {(item.profile, item.dtype, item.mode) for item in found if item.operator == "aten.add.Tensor"}
    assert add == {
        ("FP", "float32", "none"),
        ("FP", "float16", "none"),
        ("FP", "bfloat16", "none"),
        ("INT", "int8", "a8w8"),
        ("INT", "int16", "a16w8"),
    }


def test_an_operator_documented_under_another_name(found: tuple[Claim, ...]) -> None:
    """The registry names the edge operator, the table what torch.export gives."""
    convolution = [item for item in found if item.operator == "aten.convolution.default"]
    assert {item.source for item in convolution} == {Source.BOTH}
    assert {item.mode for item in convolution} == {"none", "a8w8", "a16w8", "a8w4"}


def test_claims_that_one_source_makes_alone(found: tuple[Claim, ...]) -> None:
    assert Claim("aten.detach_copy.default", "INT", "", "", Source.REGISTRY) in found
    assert Claim("aten.stack.default", "INT", "int8", "a8w8", Source.DOCUMENTATION) in found
    # A name that a test misspells.
    assert "aten._addmm.default" not in {item.operator for item in found}


def test_they_are_sorted_and_say_each_thing_once(found: tuple[Claim, ...]) -> None:
    assert list(found) == sorted(set(found))
    assert len({claim.computation for claim in found}) == len(found)


def test_claimed_names_are_torchs(found: tuple[Claim, ...]) -> None:
    """The generator's aliases and the backend's tests have names of their own for four operators."""
    require_known(found)
    assert {"aten.__lshift__.Scalar", "aten.softmax.int"} < {claim.operator for claim in found}


def test_cases_cover_what_their_samples_compute_with() -> None:
    case = operator(
        "aten.where.self",
        torch.where,
        [
            sample("mask", booleans(3), normal(3), normal(3)),
            sample(
                "half", booleans(3), normal(3, dtype=torch.float16), 0.0, configurations=(("FP", "none"),)
            ),
        ],
    )
    assert {item.kind for item in covered([case])} == {
        *("FP any", "FP bool", "FP float16", "FP float32"),
        *("INT any", "INT bool a8w8", "INT int8 a8w8"),
    }


def test_claims_are_read_once_for_each_installation(
    found: tuple[Claim, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VGF_CONFORMANCE_CACHE", str(tmp_path))
    monkeypatch.setattr("vgf_conformance.claims.claims", lambda: found[:3])
    assert installed_claims() == found[:3]
    monkeypatch.setattr("vgf_conformance.claims.claims", lambda: found)
    assert installed_claims() == found[:3]
    # Another backend, another answer; that it has none is remembered as well.
    monkeypatch.setattr("vgf_conformance.evaluation.claimed.versions", lambda: {"executorch": "9"})

    def refuse() -> None:
        raise UserError("no generator")

    monkeypatch.setattr("vgf_conformance.claims.claims", refuse)
    for _ in range(2):
        with pytest.raises(UserError, match="no generator"):
            installed_claims()
        monkeypatch.setattr("vgf_conformance.claims.claims", lambda: found)


def test_without_cases_every_pair_is_uncovered() -> None:
    assert len(uncovered([])) == 2 * 126 + 23 + 2


def test_an_executorch_without_the_generator_is_said_to_be_one(no_generator: None) -> None:
    with pytest.raises(UserError, match=r"executorch 1\.5\.1 has no generator of its operator table"):
        claims()
