"""Smaller inputs, with a made-up failure in place of the stack's."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tests.subjects import Function, randn
from vgf_conformance.evaluation.eager import leaves
from vgf_conformance.reduction.candidate import Candidate, Cutter
from vgf_conformance.reduction.shrink import shrunk
from vgf_conformance.reduction.trace import trace


def candidate(
    function: Callable[..., object],
    *inputs: torch.Tensor,
    calibration: list[tuple[torch.Tensor, ...]] | None = None,
) -> Candidate:
    traced = trace("model.py", Function(function), inputs)
    return Cutter(traced, leaves(inputs), calibration or []).cut(range(len(traced.units)))


def runs(tried: Candidate) -> bool:
    """Whether eager PyTorch takes the inputs, as the evaluation asks first."""
    try:
        tried.trace.program.walk([tried.inputs[name] for name in tried.trace.program.inputs])
    except RuntimeError:
        return False
    return True


def test_one_bad_element_is_all_that_stays() -> None:
    x = randn(6, 7)
    x[4, 5] = 123.456

    def fails(tried: Candidate) -> bool:
        return bool((tried.inputs["x"] > 100).any())

    found = shrunk(candidate(lambda x: torch.exp(x), x), lambda tried: fails(renamed(tried)))
    (value,) = found.inputs.values()
    assert value.tolist() == [[123.0]] or value.tolist() == [[120.0]]


def renamed(tried: Candidate) -> Candidate:
    (value,) = tried.inputs.values()
    return tried.with_values({"x": value})


def test_axes_that_mean_the_same_shrink_together() -> None:
    made = candidate(lambda a, b: torch.matmul(a, b), randn(4, 6), randn(6, 3, seed=1))
    found = shrunk(made, runs)
    assert [list(value.shape) for value in found.inputs.values()] == [[1, 1], [1, 1]]


def test_elements_that_are_not_needed_become_zero() -> None:
    x = torch.tensor([[1.5, 2.5], [-3.5, 4.5]])

    def fails(tried: Candidate) -> bool:
        (value,) = tried.inputs.values()
        return value.shape == x.shape and bool(value[0, 1] == 2.5 and value[1, 0] == -3.5)

    (value,) = shrunk(candidate(torch.exp, x), fails).inputs.values()
    assert value.tolist() == [[0.0, 2.5], [-3.5, 0.0]]


def test_calibration_and_outputs_that_are_not_needed_go() -> None:
    x = randn(3, 4)
    sets = [(x * number,) for number in range(1, 5)]

    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(x)
        return y, torch.exp(y)

    made = candidate(both, x, calibration=sets)
    assert (len(made.calibration), len(made.outputs)) == (4, 2)
    found = shrunk(made, lambda tried: bool(tried.calibration))
    assert (len(found.calibration), found.outputs) == (1, ("exp",))
    assert shrunk(made, lambda tried: True).calibration == ()
