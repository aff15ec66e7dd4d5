"""The static check of a delegate: the program, the TOSA graph and the VGF must say the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch

from tests.subjects import randn, request, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.formats.boundary import Problem, check_tosa, check_vgf
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.formats.vgf import read_vgf
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict


@pytest.fixture(scope="module")
def delegate(cache: Cache) -> Delegate:
    (found,) = lower(request(torch.add, randn(3, 5), randn(5)), cache).delegates
    return found


def problems(delegate: Delegate) -> list[Problem]:
    graph = read_graph(delegate.tosa)
    return [*check_tosa(delegate, graph), *check_vgf(delegate, graph, read_vgf(delegate.vgf))]


def test_a_sound_delegate_has_no_problems(delegate: Delegate) -> None:
    assert problems(delegate) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda port: dataclasses.replace(port, dtype="int8"), "is float32, the program says int8"),
        (
            lambda port: dataclasses.replace(port, shape=(5, 3)),
            "has shape [3, 5], the program says [5, 3]",
        ),
        (
            lambda port: dataclasses.replace(port, dim_order=(1, 0)),
            "has shape [3, 5], the program says [5, 3]",
        ),
        (
            lambda port: Port((3, 5, 1), "float32", (0, 1, 2)),
            "has shape [3, 5], the program says [3, 5, 1]",
        ),
    ],
)
@pytest.mark.parametrize("side", ["input", "output"])
def test_a_boundary_that_differs_is_the_lowerings(
    side: str, change: Callable[[Port], Port], message: str, delegate: Delegate
) -> None:
    if side == "input":
        other = dataclasses.replace(delegate, inputs=(change(delegate.inputs[0]), delegate.inputs[1]))
    else:
        other = dataclasses.replace(delegate, outputs=(change(delegate.outputs[0]),))
    assert problems(other) == [
        Problem(Stage.LOWER, Finding.BOUNDARY, f"delegate 0, TOSA graph: {side} 0 {message}")
    ]


def test_a_missing_tensor_is_the_lowerings(delegate: Delegate) -> None:
    other = dataclasses.replace(delegate, inputs=delegate.inputs[:1])
    assert [problem.message for problem in problems(other)] == [
        "delegate 0, TOSA graph: 2 inputs, the program has 1"
    ]


def test_a_vgf_that_differs_from_a_sound_graph_is_the_converters(cache: Cache, delegate: Delegate) -> None:
    (other,) = lower(request(torch.add, randn(4, 5), randn(5)), cache).delegates
    mixed = dataclasses.replace(delegate, vgf=other.vgf)
    assert problems(mixed) == [
        Problem(
            Stage.CONVERT,
            Finding.BOUNDARY,
            f"delegate 0, VGF: {side} has shape [4, 5], the program says [3, 5]",
        )
        for side in ("input 0", "output 0")
    ]


def test_a_real_output_that_nothing_writes_is_found(evaluator: Evaluator) -> None:
    """x * 1.0 is folded onto the input, and the converter's VGF has no segment that writes it."""
    folded = subject(lambda x: (x * 1.0, torch.exp(x)), randn(3, 5))
    assert evaluator.evaluate(folded, Profile.parse("FP"), "none", "reference").verdict is Verdict.PASS
    record = evaluator.evaluate(folded, Profile.parse("FP"), "none", "emulation")
    assert (record.verdict, record.stage, record.finding) == (
        Verdict.FAIL,
        Stage.CONVERT,
        Finding.UNWRITTEN,
    )
    assert record.message == "delegate 0, VGF: output 0 is written by no segment"
