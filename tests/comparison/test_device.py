"""The judgement of a device: what passes, what fails, and how it is told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.comparison.build import GraphBuilder
from tests.comparison.conftest import run_reference
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.signal import signal_budget
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.results.record import Comparison
from vgf_conformance.vocabulary import Stage

RNG = np.random.default_rng(11)
X = RNG.normal(size=(2, 8)).astype(np.float32)


def unary(name: str, dtype: str = "float32", count: int = 1, **attributes: Any) -> bytes:
    """``count`` times the operator; all intermediate results are outputs."""
    build = GraphBuilder()
    names = [build.input("x", [2, 8], dtype)]
    for _ in range(count):
        names.append(build.operator(name, [names[-1]], [2, 8], dtype, **attributes))
    return build.finish(*names[1:])


def judge(
    data: bytes,
    inputs: list[NDArray[Any]],
    *actual: NDArray[Any],
    reference: list[NDArray[Any]] | None = None,
) -> list[Comparison]:
    graph = read_graph(data)
    if reference is None:
        reference = run_reference(data, graph, inputs)
    assert reference is not None
    return judge_device(graph, inputs, list(actual), reference, target="emulation", delegate="tag0")


def run(data: bytes, *inputs: NDArray[Any]) -> list[NDArray[Any]]:
    outputs = run_reference(data, read_graph(data), list(inputs))
    assert outputs is not None
    return outputs


def test_equal_bit_for_bit() -> None:
    data = unary("EXP")
    (judged,) = judge(data, [X], *run(data, X))
    assert (judged.pair, judged.stage, judged.delegate) == ("emulation/reference", Stage.RUN, "tag0")
    assert (judged.passed, judged.rule, judged.headroom, judged.message) == (True, "tosa-1.0.2 EXP", 0.0, "")
    assert judged.metrics is not None
    assert judged.metrics.differing == 0
    assert judged.histogram[0] == 16


def test_within_the_bound_and_beyond() -> None:
    data = unary("EXP")
    (expected,) = run(data, X)
    (judged,) = judge(data, [X], np.nextafter(expected, np.float32(0)))
    assert judged.passed
    assert judged.headroom is not None
    assert 0 < judged.headroom <= 1
    wrong = expected.copy()
    wrong[1, 6] *= 1.001
    (judged,) = judge(data, [X], wrong)
    assert judged.passed is False
    worst, right = f"{wrong[1, 6]:.6g}", f"{expected[1, 6]:.6g}"
    assert judged.message == f"output 0, 1 of 16 elements, worst at [1, 6]: {worst}, should be {right}"
    assert judged.metrics is not None and judged.metrics.wrong == 1
    assert judged.headroom is not None
    assert judged.headroom > 1


def test_nan_made_finite_fails() -> None:
    data, x = unary("LOG"), np.full((2, 8), -1.0, np.float32)
    (judged,) = judge(data, [x], np.zeros((2, 8), np.float32))
    assert judged.passed is False
    assert "should be nan" in judged.message


@pytest.mark.parametrize(
    ("name", "at", "wrong"),
    [
        ("EXP", math.inf, 1.0),
        ("EXP", 3e38, 1.0),
        ("SIGMOID", math.inf, 0.0),
        ("TANH", -math.inf, 0.0),
        ("LOG", 0.0, 1.0),
    ],
)
def test_a_limit_at_infinity_is_exact(name: str, at: float, wrong: float) -> None:
    """The bound's formula is infinite there, but the specification's table says what the result is."""
    inputs = [np.full((2, 8), at, np.float32)]
    (expected,) = run(unary(name), *inputs)
    assert judge(unary(name), inputs, expected)[0].passed
    spoilt = expected.copy()
    spoilt[1, 3] = wrong
    assert judge(unary(name), inputs, spoilt)[0].passed is False


def test_integers_are_exact() -> None:
    data = unary("BITWISE_NOT", "int8")
    x = RNG.integers(-128, 128, (2, 8)).astype(np.int8)
    (expected,) = run(data, x)
    assert judge(data, [x], expected)[0].rule == "exact"
    off = expected.copy()
    off[0, 3] ^= 1
    (judged,) = judge(data, [x], off)
    assert judged.passed is False
    assert (
        judged.message
        == f"output 0, 1 of 16 elements, worst at [0, 3]: {off[0, 3]}, should be {expected[0, 3]}"
    )


def test_one_failure_hides_no_other() -> None:
    data = unary("TANH", count=3)
    first, second, third = run(data, X)
    judged = judge(data, [X], first[:1], second.astype(np.float64), third + 1)
    assert [item.passed for item in judged] == [False, False, False]
    assert judged[0].message == "output 0: shape [1, 8], should be [2, 8]"
    assert judged[1].message == "output 1: float64, should be float32"
    assert judged[2].message.startswith("output 2, 16 of 16 elements, worst at")
    assert [item.passed for item in judge(data, [X], first)] == [True, False, False]
    assert judge(data, [X], first, second, third, third)[3].message == "output 3: 4 outputs, should be 3"


def test_long_graphs_are_judged_by_their_noise() -> None:
    data = unary("SIN", count=257)
    expected = run(data, X)
    near = [item * np.float32(1 + 2.0**-20) for item in expected]
    judged = judge(data, [X], *near)
    assert {item.rule for item in judged} == {"sqnr >= 100 dB"}
    assert all(item.passed for item in judged)
    (first, *_) = judge(data, [X], *(item * np.float32(1.001) for item in expected))
    assert first.passed is False
    assert first.message.startswith("output 0: SQNR 60")


def test_in_a_long_graph_the_references_own_noise_counts() -> None:
    """Both 60 dB off in opposite directions: peers against what is exact, 54 dB from each other."""
    data = unary("SIN", count=257)
    exact = run(data, X)
    reference = [item * np.float32(0.999) for item in exact]
    actual = [item * np.float32(1.001) for item in exact]
    graph = read_graph(data)

    def judged(outputs: list[Any]) -> bool | None:
        found = judge_device(graph, [X], outputs, reference, target="t", delegate="d", precise=lambda: exact)
        return found[0].passed

    assert judged(actual) is True
    assert judge_device(graph, [X], actual, reference, target="t", delegate="d")[0].passed is False
    assert judged([item * np.float32(1.02) for item in exact]) is False


@pytest.mark.parametrize(("dtype", "budget"), [("float32", 100), ("float16", 45.8), ("bfloat16", 33.3)])
def test_the_noise_budget_follows_the_format(dtype: str, budget: float) -> None:
    assert signal_budget(dtype) == pytest.approx(budget, abs=0.05)


def test_a_reference_outside_the_bound_is_told_and_not_trusted_blindly() -> None:
    data = unary("ABS")
    (expected,) = run(data, X)
    off = expected * np.float32(1.01)
    (judged,) = judge(data, [X], expected, reference=[off])
    assert judged.rule.startswith("sqnr")
    assert judged.passed is False
    (judged,) = judge(data, [X], off * np.float32(1 + 2.0**-22), reference=[off])
    assert judged.passed
    assert "one of the two is off" in judged.message


def test_an_unbounded_element_must_still_be_of_the_same_class() -> None:
    build = GraphBuilder()
    x = build.input("x", [2, 8], "float16")
    double = build.operator("ADD", [x, x], [2, 8], "float16")
    data = build.finish(build.operator("SUB", [double, x], [2, 8], "float16"))
    inputs = [np.full((2, 8), 60000, np.float16)]
    (expected,) = run(data, *inputs)
    assert np.isinf(expected).all()
    assert judge(data, inputs, np.full((2, 8), math.nan, np.float16))[0].passed is False


def test_the_sum_of_squares_of_a_dot_product() -> None:
    build = GraphBuilder()
    a, b = build.input("a", [1, 16, 32], "float32"), build.input("b", [1, 32, 16], "float32")
    zero = build.constant([0.0], "float32")
    data = build.finish(build.operator("MATMUL", [a, b, zero, zero], [1, 16, 16], "float32"))
    inputs = [
        RNG.uniform(0.5, 1, (1, 16, 32)).astype(np.float32),
        RNG.uniform(0.5, 1, (1, 32, 16)).astype(np.float32),
    ]
    (expected,) = run(data, *inputs)
    # Each element 14 units of 64 off: within its bound, too much for all of them together.
    (judged,) = judge(data, inputs, expected * np.float32(1 + 14 * 2.0**-24))
    assert judged.passed is False
    assert "allowed sum of squares" in judged.message
    (judged,) = judge(data, inputs, np.nextafter(expected, np.float32(0)))
    assert judged.passed


def test_integers_downstream_of_floats_may_move_where_the_floats_may() -> None:
    build = GraphBuilder()
    curve = build.operator("EXP", [build.input("x", [4], "float32")], [4], "float32")
    data = build.finish(build.operator("CAST", [curve], [4], "int32"))
    # e^x is 20.5 but for an error that EXP is allowed; elsewhere the cast leaves no choice.
    inputs = [np.array([math.log(20.5), 1, 2, 3], np.float32)]
    (expected,) = run(data, *inputs)
    moved = expected.copy()
    moved[0] = 41 - moved[0]
    (judged,) = judge(data, inputs, moved)
    assert (judged.passed, judged.rule) == (True, "tosa-1.0.2 propagated")
    assert judge(data, inputs, expected + np.array([0, 1, 0, 0], np.int32))[0].passed is False


def test_a_reference_that_does_not_fit_is_the_harness_s_fault() -> None:
    data = unary("ABS")
    with pytest.raises(ValueError, match="the reference has 0 outputs"):
        judge(data, [X], X, reference=[])
