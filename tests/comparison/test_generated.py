"""Propagation against the reference model, operator by operator, on TOSA's own conformance tests."""

from __future__ import annotations

import numpy as np
import pytest

from tests.comparison.conftest import OPERATORS, GeneratedCase
from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.propagation import propagate, single_operator


@pytest.mark.parametrize("operator", OPERATORS)
def test_agrees_with_the_reference_model(operator: str, generated: dict[str, list[GeneratedCase]]) -> None:
    assert generated[operator], "the generator wrote no test for this operator"
    judged = 0
    for case in generated[operator]:
        results = propagate(case.graph, case.inputs)
        for result, output in zip(results, case.reference() or [], strict=False):
            judged += 1
            assert result.value.shape == output.shape == result.error.shape, case.name
            if result.floating:
                inside = bounds.within(output, result.value, result.error, result.dtype)
                assert inside.all(), case.name
                assert bounds.headroom(output, result.value, result.error, result.dtype) <= 1, case.name
            elif "rmI" in case.name:
                # INEXACT_ROUND leaves a choice, and the reference model takes it.
                assert (np.abs(output - result.value) <= result.error).all(), case.name
            else:
                np.testing.assert_array_equal(output.astype(np.int64), result.value, case.name)
    assert judged


def test_a_device_that_computes_in_fp64_passes_everywhere(
    generated: dict[str, list[GeneratedCase]],
) -> None:
    for case in (case for cases in generated.values() for case in cases):
        reference = case.reference()
        if reference is None:
            continue
        exact = propagate(case.graph, case.inputs)
        with np.errstate(over="ignore"):
            actual = [result.value.astype(item.dtype) for result, item in zip(exact, reference, strict=True)]
        judged = judge_device(case.graph, case.inputs, actual, reference, target="emulation", delegate="d")
        assert all(item.passed for item in judged), (case.name, [item.message for item in judged])


@pytest.mark.parametrize("operator", ["exp", "conv2d", "rescale", "pow"])
def test_names_the_single_operator(operator: str, generated: dict[str, list[GeneratedCase]]) -> None:
    assert {single_operator(case.graph) for case in generated[operator]} == {operator.upper()}
