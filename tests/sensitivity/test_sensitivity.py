"""Planted faults are counted as caught, equivalent or survived, each for the right reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.attribution.graphs import InProcess, chain
from tests.comparison.build import GraphBuilder
from tests.subjects import FP, INT, randn, subject
from vgf_conformance.attribution.cut import as_delegate
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.formats.tosa_write import write_graph
from vgf_conformance.results.record import Sensitivity
from vgf_conformance.sensitivity.faults import FAULTS, inject
from vgf_conformance.sensitivity.measure import measure
from vgf_conformance.sensitivity.mutants import mutants
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: A row of eight with something for every fault: NaN, an infinity, neighbours that differ.
FLOATS = np.array([[1.0, -2.0, np.nan, 4.0], [0.5, np.inf, -7.0, 8.0]], np.float32)


def measured(data: bytes, *inputs: NDArray[Any]) -> Sensitivity:
    graph = read_graph(data)
    outputs = InProcess("reference")
    outputs.load([as_delegate(graph, dict(zip(graph.inputs, inputs, strict=True)))])
    right = outputs.run(0, inputs).arrays
    return measure(graph, list(inputs), right, InProcess("reference"))


def test_every_fault_changes_an_output_that_has_what_it_spoils() -> None:
    faults = {item.fault for item in inject([FLOATS])}
    assert faults == set(FAULTS) - {"one integer step"}
    assert {item.fault for item in inject([np.array([[3, 4], [5, -6]], np.int8)])} == {
        *("one element off by 10 % of RMS", "one element zeroed", "neighbours swapped", "tail unwritten"),
        *("one integer step", "axes swapped"),
    }
    assert "one integer step" in {item.fault for item in inject([np.array([True])])}


def test_a_fault_leaves_the_right_outputs_alone() -> None:
    before = FLOATS.copy()
    for item in inject([FLOATS, FLOATS]):
        assert np.array_equal(item.outputs[1 - item.output], before, equal_nan=True)
    assert np.array_equal(FLOATS, before, equal_nan=True)


def test_mutants_keep_shapes_and_can_be_written() -> None:
    graph = read_graph(chain(6))
    found = list(mutants(graph))
    names = {item.name for item in found}
    assert names >= {"ADD made SUB (ADD 1)", "SIGMOID made TANH (SIGMOID 1)", "operands exchanged (SUB 1)"}
    assert len(names) == len(found)
    for item in found:
        again = read_graph(write_graph(item.graph))
        assert [again.tensors[name].shape for name in again.outputs] == [(4, 6)]


def test_a_chain_of_floats_catches_every_fault() -> None:
    array = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    found = measured(chain(6), array)
    assert found.tried > 10
    assert found.caught == found.faults, found.survivors


def test_a_fault_that_nothing_can_show_is_equivalent() -> None:
    """x and x is x or x."""
    build = GraphBuilder()
    x = build.input("x", [4], "int32")
    y = build.operator("BITWISE_AND", [x, x], [4], "int32")
    found = measured(build.finish(y), np.array([1, -2, 3, 4], np.int32))
    # BITWISE_AND made BITWISE_OR.
    assert found.equivalent == 1
    assert found.survivors == []


def test_a_fault_that_the_samples_values_do_not_reach_survives() -> None:
    """Only a zero tells greater from greater or equal."""
    build = GraphBuilder()
    x = build.input("x", [20], "int32")
    zero = build.constant(np.zeros(20, np.int32), "int32")
    data = build.finish(build.operator("GREATER", [x, zero], [20], "bool"))
    found = measured(data, np.array([-1, 1] * 10, np.int32))
    assert [text for text in found.survivors if "made" in text] == [
        "GREATER made GREATER_EQUAL (GREATER 1): the sample's values do not reach it"
    ]
    reached = measured(data, np.array([-1, 0, 1, 1] * 5, np.int32))
    assert [text for text in reached.survivors if "made" in text] == []


@pytest.mark.parametrize(("profile", "scheme"), [(FP, "none"), (INT, "a8w8-pc")], ids=["FP", "INT"])
def test_a_real_case_is_measured(profile: Any, scheme: str, evaluator: Evaluator) -> None:
    asked = subject(lambda x, y: x * y, randn(3, 4), randn(3, 4, seed=1))
    record = evaluator.evaluate(asked, profile, scheme, "reference")
    evaluator.measure_sensitivity(record, asked, profile, scheme)
    assert record.verdict is Verdict.PASS
    assert record.sensitivity is not None
    assert record.sensitivity.caught == record.sensitivity.faults > 3


def test_a_case_that_is_lowered_wrong_is_measured_and_keeps_its_verdict(evaluator: Evaluator) -> None:
    """Its graph runs all the same: what it is judged by on a device can be measured."""
    # TOSA's lowering rounds halves up, torch to even.
    asked = subject(lambda x: x.round(), torch.tensor([0.5, 2.5, 3.25, -4.75, 7.0]))
    record = evaluator.evaluate(asked, FP, "none", "reference")
    evaluator.measure_sensitivity(record, asked, FP, "none")
    assert (record.verdict, record.stage) == (Verdict.FAIL, Stage.LOWER)
    assert record.sensitivity is not None
    assert record.sensitivity.caught > 3


def test_a_case_that_catches_nothing_fails(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(*_: object) -> Sensitivity:
        return Sensitivity(tried=4, equivalent=1, caught=0, survivors=["a", "b", "c"])

    monkeypatch.setattr("vgf_conformance.evaluation.evaluate.measure", blind)
    asked = subject(torch_abs, randn(3, 4))
    record = evaluator.evaluate(asked, FP, "none", "reference")
    evaluator.measure_sensitivity(record, asked, FP, "none")
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.RUN, Finding.BLIND)
    assert record.message == "none of 3 planted faults is caught"


def torch_abs(x: Any) -> Any:
    return x.abs()
