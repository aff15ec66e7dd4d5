from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.report.synthetic import synthetic
from tests.report.test_reports import page_data
from tests.results.records import record
from tests.results.test_claims import ADD, claim
from vgf_conformance.report import summary_table, write_reports
from vgf_conformance.report.claims import Coverage, State, Unclaimed, emitted, fell_back, tosa_coverage
from vgf_conformance.results.claims import Claim
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import DelegateFacts, Leftover, Record
from vgf_conformance.vocabulary import Verdict

INSIDE = [DelegateFacts("d0", 1, {"ADD": 1}, 1, 1, {"ADD": {"float32": 1}})]
LEFT = [Leftover(ADD, "the partitioner declines")]


def added(**more: Any) -> Record:
    """A record of the operator that ``claim`` claims, delegated and passing unless told otherwise."""
    more.setdefault("delegates", INSIDE)
    return record(**{"operator": ADD, "dtypes": ["float32"], "artifact": "a1", **more})


def standing(*records: Record, claims: list[Claim] | None = None) -> tuple[State, int, str]:
    coverage = Coverage.of(Results(claims=claims or [claim()], records=list(records)))
    found = coverage.standings[claim().computation]["reference"]
    return found.state, found.records, found.why


FAILED = {"verdict": Verdict.FAIL, "message": "off by one"}


def test_a_claim_passes_where_all_of_it_does() -> None:
    assert standing(added(), added(sample="b")) == (State.PASSING, 2, "")


def test_one_failure_fails_a_claim() -> None:
    state, count, why = standing(added(), added(sample="b", unexpected=True, **FAILED))
    assert (state, count) == (State.FAILING, 2)
    assert why == "add[b-FP-none-reference]: fail at lower: off by one"


def test_failures_that_are_all_expected_are_known() -> None:
    known = added(sample="b", expected="issue 12", **FAILED)
    assert standing(added(), known) == (State.KNOWN, 2, "add[b-FP-none-reference]: fail at lower: issue 12")
    state, _, why = standing(known, added(sample="z", unexpected=True, **FAILED))
    assert state is State.FAILING
    assert why == "add[z-FP-none-reference]: fail at lower: off by one (and 1 more)"


def test_a_claim_that_only_falls_back_is_not_delegated() -> None:
    """Whether the case expects that (it passes) or not (it is unsupported)."""
    passed = added(delegates=[], leftovers=LEFT)
    refused = added(sample="b", delegates=[], leftovers=LEFT, verdict=Verdict.UNSUPPORTED, unexpected=True)
    assert standing(passed, refused) == (State.NOT_DELEGATED, 2, "the partitioner declines")
    # Where another sample reaches a delegate, that one speaks.
    assert standing(passed, added(sample="c"))[0] is State.PASSING


def test_a_claim_without_a_record_is_not_covered_on_that_target() -> None:
    explained = Claim(*claim().computation, claim().source, "torch refuses it")
    other = added(target="emulation")
    coverage = Coverage.of(Results(claims=[explained], records=[other, added(dtypes=["int32"])]))
    found = coverage.standings[claim().computation]
    assert found["reference"].state is State.NOT_COVERED
    assert found["reference"].why == "torch refuses it"
    assert found["emulation"].state is State.PASSING
    assert coverage.pairs("emulation") == (1, 1)
    assert coverage.pairs("reference") == (0, 1)


def test_models_and_the_combined_profile_count_for_no_claim() -> None:
    model = added()
    model.kind = "model"
    assert standing(model, added(profile="FP+INT"))[0] is State.NOT_COVERED


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"delegates": [], "leftovers": LEFT}, True),
        ({"leftovers": LEFT}, True),
        ({"operator": "aten.view.default", "leftovers": [Leftover("aten.view_copy.default", "")]}, True),
        ({"leftovers": [Leftover("aten.topk.default", "")]}, False),
        # Never lowered, or lowered to nothing at all.
        ({"delegates": [], "artifact": ""}, False),
        ({"delegates": []}, True),
    ],
)
def test_what_falls_back(changes: dict[str, Any], expected: bool) -> None:
    assert fell_back(added(**changes)) is expected


def test_what_works_unclaimed() -> None:
    records = [
        added(),
        # Something of it is claimed.
        added(sample="mask", dtypes=["bool", "float32"]),
        added(sample="a", dtypes=["int32"]),
        added(sample="b", dtypes=["int32"]),
        added(sample="a", dtypes=["int32"], target="emulation"),
        added(sample="c", dtypes=["int8"], unexpected=True, **FAILED),
        added(sample="d", dtypes=["int64"], delegates=[], leftovers=LEFT),
        added(sample="e", profile="INT", scheme="a8w8-pc", dtypes=["int8"], operator="aten.new.default"),
    ]
    coverage = Coverage.of(Results(claims=[claim()], records=records))
    assert coverage.unclaimed == [
        Unclaimed(ADD, "FP int32", {"reference": 2, "emulation": 1}),
        Unclaimed("aten.new.default", "INT int8 a8w8", {"reference": 1}),
    ]


def test_tosa_operators_count_each_graph_once() -> None:
    records = [
        added(),
        added(target="emulation", **FAILED),
        added(sample="b", artifact="a2"),
        added(
            sample="c",
            artifact="a3",
            delegates=[DelegateFacts("d0", 1, {"ADD": 2}, 1, 1, {"ADD": {"int8": 2}})],
        ),
        added(sample="old", artifact="a4", delegates=[DelegateFacts("d0", 1, {"ADD": 1}, 1, 1)]),
    ]
    assert tosa_coverage(records) == {"ADD": {"float32": (1, 2), "int8": (1, 1)}}
    records[0].kind = "tosa"
    assert records[0] not in emitted(records)


def reports(folder: Path, results: Results) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in write_reports(results, folder)}


def test_reports_show_the_claims(tmp_path: Path) -> None:
    explained = Claim(*claim("bool").computation, claim().source, "torch | refuses it")
    results = Results(
        claims=[claim(), claim("float16"), claim("int8", "INT", "a8w8"), explained],
        records=[
            added(),
            added(target="emulation", unexpected=True, **FAILED),
            added(sample="h", dtypes=["float16"], expected="issue 12", **FAILED),
        ],
    )
    pages = reports(tmp_path, results)
    matrix = pages["matrix.md"].partition("## Claims against observations")[2].partition("\n## ")[0]
    assert re.search(r"\| ✓ claimed and passing +\| 1 \(25.0%\) +\| 0 \(0.0%\)", matrix)
    assert re.search(r"\| of 2 claimed operators by profile: with a record +\| 1 \(50.0%\)", matrix)
    assert re.search(r"\| operator +\| FP bool +\| FP float16 +\| FP float32 +\| INT int8 a8w8 +\|", matrix)
    assert re.search(r"\| aten.add.Tensor +\| · +\| ◐ · +\| ✓ ✗ +\| · +\|", matrix)
    assert re.search(r"\| FP float16 +\| reference +\| ◐ claimed and failing, known +\| .*issue 12", matrix)
    assert re.search(r"\| aten.add.Tensor +\| FP bool +\| torch \\\| refuses it +\|", matrix)
    assert "- INT int8 a8w8: aten.add.Tensor" in matrix
    assert re.search(r"\| TOSA operator +\| float32 +\|\n.*\n\| ADD +\| 0/1 +\|", pages["matrix.md"])
    data = page_data(pages["report.html"])
    assert data["claims"]["rows"][0][1]["FP float32"] == [
        [0, 1, ""],
        [2, 1, "add[rank1-FP-none-emulation]: fail at lower: off by one"],
    ]
    assert data["tosa"] == {"ADD": {"float32": [0, 1]}}
    assert "claims on reference: 1 passing, 1 failing, known, 2 not yet covered" in summary_table(results)


def test_results_without_claims_have_no_section(tmp_path: Path) -> None:
    pages = reports(tmp_path, synthetic(1))
    assert "Claims" not in pages["matrix.md"]
    assert "TOSA operators" not in pages["matrix.md"]
    assert page_data(pages["report.html"])["claims"] is None
    assert "claims" not in summary_table(synthetic(1))
    # Claims, but no operator was run.
    only = Results(claims=[claim()], records=[item for item in synthetic(1).records if item.kind == "model"])
    assert "Claims" not in reports(tmp_path, only)["matrix.md"]
