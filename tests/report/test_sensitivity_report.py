from __future__ import annotations

import re
from typing import Any

from tests.results.records import record
from vgf_conformance.report.sensitivity import sensitivity_report
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import DelegateFacts, Record, Sensitivity

FAULT = "ADD made SUB (ADD 1)"
MISSED = f"{FAULT}: the sample's values do not reach it"
CATCHES, MISSES = Sensitivity(tried=1, caught=1, mutants=[FAULT]), Sensitivity(tried=1, survivors=[MISSED])


def measured(found: Sensitivity, operators: dict[str, int] | None = None, **more: Any) -> Record:
    delegate = DelegateFacts("d0", 1, operators or {"ADD": 1}, 1, 1)
    return record(sensitivity=found, delegates=[delegate], **{"operator": "aten.add.Tensor", **more})


def summary(*records: Record) -> str:
    return sensitivity_report(Results(records=list(records))).split("\n## ")[1]


def test_a_fault_that_nothing_catches_is_listed() -> None:
    report = sensitivity_report(Results(records=[measured(MISSES)]))

    assert "0 of 1 faults caught (0 %)" in report
    assert MISSED in report


def test_a_fault_that_another_sample_of_the_operator_catches_is_caught() -> None:
    """Whatever case that sample is of, and however its shapes are laid out."""
    other = measured(CATCHES, {"ADD": 1, "RESHAPE": 2}, case="add_edges", sample="b")

    assert "2 of 2 faults caught (100 %)" in summary(measured(MISSES), other)


def test_a_fault_of_another_graph_operator_or_profile_is_another_fault() -> None:
    for other in (
        measured(CATCHES, {"ADD": 1, "MUL": 1}, sample="b"),
        measured(CATCHES, operator="aten.sub.Tensor", sample="b"),
        measured(CATCHES, profile="INT", sample="b"),
    ):
        assert "1 of 2 faults caught (50 %)" in summary(measured(MISSES), other)


def test_faults_of_the_quantise_stage_are_reported_by_kind() -> None:
    """Each has to be caught by its own sample."""
    lost = "bias lost (conv2d)"
    survives = Sensitivity(
        tried=3, equivalent=1, caught=1, survivors=[f"{lost}: why"], mutants=["bias lost (a)"]
    )
    catches = Sensitivity(tried=1, caught=1, mutants=[lost])
    records = [record(quantise_sensitivity=survives), record(quantise_sensitivity=catches, sample="b")]

    page = sensitivity_report(Results(records=records))

    assert "2 of 3 faults of the quantise stage caught (66.7 %) with 2 samples. 1 more" in page
    assert re.search(r"\| bias lost +\| 3 +\| 2 +\| 66.7 % +\|", page)
    assert f"{lost}: why" in page.partition("Survivors of the quantise stage")[2]
    assert "quantise" not in sensitivity_report(Results(records=[measured(MISSES)]))


def test_a_fault_of_an_output_is_caught_by_its_own_sample_alone() -> None:
    missed = Sensitivity(
        tried=1, survivors=["tail unwritten in output 0: within the tolerance (0% of it used)"]
    )
    caught = Sensitivity(tried=1, caught=1)

    assert "1 of 2 faults caught (50 %)" in summary(measured(missed), measured(caught, sample="b"))
