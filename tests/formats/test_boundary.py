"""The static check of a delegate: the program, the TOSA graph and the VGF must say the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.subjects import randn, request, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.formats.boundary import (
    Problem,
    _storage_problems,
    check_shared_outputs,
    check_tosa,
    check_vgf,
)
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.formats.vgf import Vgf, VgfTensor, read_vgf
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
    graph = read_graph(other.tosa)
    tensor = (graph.inputs if side == "input" else graph.outputs)[0]
    said = f"delegate 0, TOSA graph: {side} 0 {message}"
    assert problems(other) == [Problem(Stage.LOWER, Finding.BOUNDARY, said, tensor)]


def test_a_missing_tensor_is_the_lowerings(delegate: Delegate) -> None:
    other = dataclasses.replace(delegate, inputs=delegate.inputs[:1])
    assert [problem.message for problem in problems(other)] == [
        "delegate 0, TOSA graph: 2 inputs, the program has 1"
    ]


def test_a_vgf_that_differs_from_a_sound_graph_is_the_converters(cache: Cache, delegate: Delegate) -> None:
    (other,) = lower(request(torch.add, randn(4, 5), randn(5)), cache).delegates
    mixed, graph = dataclasses.replace(delegate, vgf=other.vgf), read_graph(delegate.tosa)
    assert problems(mixed) == [
        Problem(
            Stage.CONVERT,
            Finding.BOUNDARY,
            f"delegate 0, VGF: {side} has shape [4, 5], the program says [3, 5]",
            tensor,
        )
        for side, tensor in (("input 0", graph.inputs[0]), ("output 0", graph.outputs[0]))
    ]


def test_an_output_in_the_storage_of_an_input_is_right(evaluator: Evaluator) -> None:
    """x * 1.0 is folded onto the input, whose storage it shares: no segment writes it, and none has to."""
    folded = subject(lambda x: (x * 1.0, torch.exp(x)), randn(3, 5))
    for target in ("reference", "emulation"):
        record = evaluator.evaluate(folded, Profile.parse("FP"), "none", target)
        assert record.verdict is Verdict.PASS, record.message


SHARED = VgfTensor(0, "input", (3, 5), "float32", True, 7)
OUTPUT = VgfTensor(1, "output", (3, 5), "float32", True, 7)
ALONE = dataclasses.replace(OUTPUT, alias_group=None)
ELSEWHERE = dataclasses.replace(ALONE, index=3)
OTHER_GROUP = dataclasses.replace(OUTPUT, alias_group=8)


def made(outputs: list[VgfTensor], written: set[int] = set()) -> Vgf:  # noqa: B006 - never changed
    """A VGF with one input and ``outputs``."""
    return Vgf(
        version=(0, 5, 0),
        resources=(SHARED, *dict.fromkeys(outputs)),
        inputs=((0, SHARED),),
        outputs=tuple(enumerate(outputs, 1)),
        written=frozenset(written),
        segments=("graph",),
    )


def storage(vgf: Vgf, delegate: Delegate) -> list[str]:
    return [
        problem.message
        for number in range(len(vgf.outputs))
        for problem in _storage_problems(delegate, vgf, number)
    ]


@pytest.mark.parametrize(
    ("vgf", "messages"),
    [
        pytest.param(made([OUTPUT]), [], id="an input's storage"),
        pytest.param(made([ALONE], {1}), [], id="written"),
        pytest.param(made([ALONE]), ["delegate 0, VGF: output 0 is written by no segment"], id="neither"),
        pytest.param(
            made([OTHER_GROUP]),
            ["delegate 0, VGF: output 0 is written by no segment"],
            id="a group of its own",
        ),
        pytest.param(
            made([dataclasses.replace(OUTPUT, shape=(3, 6))]),
            ["delegate 0, VGF: output 0 shares its storage with input 0, but has 72 bytes, the input 60"],
            id="another size",
        ),
        pytest.param(
            made(
                [
                    dataclasses.replace(OUTPUT, alias_group=8),
                    VgfTensor(2, "output", (3, 5), "float32", True, 8),
                ],
                {2},
            ),
            [],
            id="the storage of an output that is written",
        ),
    ],
)
def test_the_storage_of_outputs(vgf: Vgf, messages: list[str], delegate: Delegate) -> None:
    assert storage(vgf, delegate) == messages


def test_outputs_in_one_storage_must_be_equal(delegate: Delegate) -> None:
    vgf = made([OUTPUT, dataclasses.replace(OUTPUT, index=2), ELSEWHERE])
    one, other = np.zeros((3, 5), np.float32), np.ones((3, 5), np.float32)
    assert check_shared_outputs(delegate, vgf, [one, one, other]) == []
    assert [problem.message for problem in check_shared_outputs(delegate, vgf, [one, other, one])] == [
        "delegate 0, VGF: outputs 0 and 1 share their storage, but the TOSA graph gives different values "
        "for them"
    ]
