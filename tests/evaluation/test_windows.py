"""How near to a tie a quantisation must be to go either way, and what is wrong further from one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from executorch.backends.arm.quantizer import get_symmetric_quantization_config
from torch import nn

from tests.subjects import INT, randn, request, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.windows import QUANTISE, Window, Windows
from vgf_conformance.lowering.lower import quantised_for
from vgf_conformance.lowering.program import Program, read_program
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Outputs, Target
from vgf_conformance.targets.process import reference_target
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

X, QUARTER = randn(3, 5), 0.25 * randn(3, 5, seed=1)


def quantised(function: Any, *inputs: torch.Tensor, profile: str = "INT", scheme: str = "a8w8-pc") -> Program:
    """The quantised program of ``function``, calibrated on ``inputs``."""
    asked = request(function, *inputs, profile=Profile.parse(profile), scheme=scheme)
    program, _ = read_program(quantised_for(asked, torch.export.export(asked.module, inputs)).program)
    return program


def scales(program: Program) -> list[float]:
    """The scales of its quantisations, in order: those of the inputs first."""
    return [float(step.args[1]) for step in program.steps if step.operator.startswith(QUANTISE)]


def last_window(program: Program) -> Window | None:
    """The window of the quantisation of its output."""
    name = Windows(program).quantisation_of(program.outputs[0])
    assert name is not None
    return Windows(program).of(name)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y,
        lambda x, y: torch.relu(x) + x,
        lambda x, y: torch.matmul(x, y.transpose(0, 1)),
        lambda x, y: torch.sigmoid(x),
        lambda x, y: torch.cat([x, y]),
        lambda x, y: x.sum(1),
    ],
)
def test_what_rounds_once_has_no_window_of_its_own(function: Callable[..., Any]) -> None:
    assert last_window(quantised(function, X, X * 0.5)) == Window()


@pytest.mark.parametrize(("profile", "scheme", "bits"), [("INT", "a8w8-pc", 20), ("INT+int16", "a16w8", 12)])
def test_the_smaller_operand_of_a_sum_is_rounded_to_the_scale_of_both(
    profile: str, scheme: str, bits: int
) -> None:
    # Far above the least scale that int16 is given.
    program = quantised(lambda x, y: x - y, 100.0 * X, 100.0 * QUARTER, profile=profile, scheme=scheme)
    wide, narrow, out = scales(program)
    assert wide > narrow
    assert last_window(program) == Window(0.5 * 2.0 * wide / 2.0**bits / out)


def test_operands_of_a_maximum_are_rounded_to_the_smallest_scale() -> None:
    program = quantised(torch.maximum, X, QUARTER)
    _, narrow, out = scales(program)
    assert last_window(program) == Window(0.5 * narrow / out)


def test_sums_of_int16_have_a_multiplier_of_15_bits() -> None:
    program = quantised(lambda x, y: torch.matmul(x, y.T), X, QUARTER, profile="INT+int16", scheme="a16w8")
    assert last_window(program) == Window(share=2.0**-15)


def test_a_rounding_that_the_backend_drops_between_two_sums_counts() -> None:
    """The first sum spans less than the wider operand, so that both are added at one scale."""
    program = quantised(lambda x, y: (x + y) + x, X, -0.5 * X)
    _, _, first, out = scales(program)
    window = last_window(program)
    assert window is not None
    assert window.steps >= 0.5 * first / out > 0.1
    # Where it spans more, the pair of RESCALEs stays, and so does the rounding.
    kept = last_window(quantised(lambda x, y: (x + y) + x, X, X * 0.5))
    assert kept is not None and kept.steps < 1e-5


def test_of_other_operators_nothing_is_known() -> None:
    assert last_window(quantised(lambda x: torch.cumsum(x, 1), X)) is None


def test_where_a_tie_is() -> None:
    values = torch.tensor([0.5, 0.5004, 0.49, -1.5, 2.0, 1000.6])
    assert Window(0.001).near_tie(values).tolist() == [True, True, False, True, False, False]
    assert Window(share=0.0001).near_tie(values).tolist() == [True, False, False, True, False, True]


class OneLower:
    """A reference model whose int8 outputs are one too low, but for those at the end of their range."""

    name, driver = "reference", ""

    def __init__(self, reference: Target) -> None:
        self._reference = reference
        self.load, self.close = reference.load, reference.close

    def run(self, index: int, inputs: Any) -> Outputs:
        outputs = self._reference.run(index, inputs)
        codes: list[Any] = list(outputs.arrays)
        outputs.arrays = [np.where(array > -128, array - 1, array).astype(np.int8) for array in codes]
        return outputs


def evaluated(module: Any, *inputs: torch.Tensor, **more: Any) -> Record:
    """The record of ``module`` in INT on the reference model, or on what ``wrapped`` makes of it."""
    reference = reference_target()
    wrapped = more.pop("wrapped", lambda target: target)
    try:
        return Evaluator({"reference": wrapped(reference)}).evaluate(
            subject(module, *inputs, **more), INT, "a8w8-pc", "reference"
        )
    finally:
        reference.close()


@pytest.mark.parametrize("function", [lambda x, y: x + y, lambda x, y: x * y, torch.maximum])
def test_an_output_one_step_too_low_is_wrong(function: Callable[..., Any]) -> None:
    assert evaluated(function, X, X * 0.5).verdict is Verdict.PASS
    record = evaluated(function, X, X * 0.5, wrapped=OneLower)
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.LOWER, Finding.WRONG)


def test_zero_after_a_rectifier_is_exact() -> None:
    """Where codes begin at -127, the backend's rectifier is a clamp at the lowest code: a step below zero."""

    def configure(quantizer: Any) -> None:
        quantizer.set_global(get_symmetric_quantization_config(act_qmin=-127, act_qmax=127))

    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(2, 2, 1), nn.ReLU())
    record = evaluated(module, randn(1, 2, 3, 3), configure_quantizer=configure)
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.LOWER, Finding.WRONG)
    assert record.message.endswith("should be 0")
