"""Faults planted in the steps of the quantise stage are counted as caught, equivalent or survived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.subjects import FP, INT, randn, subject
from vgf_conformance.evaluation.eager import repeated_eager
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.quantisation import measure
from vgf_conformance.evaluation.quantisation.faults import FAULTS
from vgf_conformance.evaluation.quantisation.measure import MOST_PLACES, measure_quantise
from vgf_conformance.evaluation.subject import request_of
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.results.record import Sensitivity


class Net(nn.Module):
    """Something for every fault: square weights with biases, a batch norm, a ReLU that cuts, a sum."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
        self.norm.running_mean.normal_()
        self.norm.running_var.fill_(2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.two(torch.clamp(self.one(x), -0.1, 0.2))) + x


def measured(module: nn.Module | Callable[..., Any], *inputs: torch.Tensor) -> Sensitivity:
    one = subject(module, *inputs)
    eager = repeated_eager(one.module, one.inputs)
    return measure_quantise(one, request_of(one, INT, "a8w8-pc"), eager, Undefined())


def kinds(names: list[str]) -> set[str]:
    return {name.partition(" (")[0] for name in names}


def test_every_fault_of_the_stage_is_planted_and_caught() -> None:
    found = measured(Net(), randn(1, 3, 6, 6))
    assert kinds(found.mutants) == FAULTS.keys()
    assert found.survivors == []
    assert found.caught == found.faults
    assert sum(name.startswith("scale off by 2x") for name in found.mutants) <= MOST_PLACES


def test_a_program_without_layers_has_fewer_faults() -> None:
    found = measured(lambda x: x.abs(), randn(4, 4))
    assert kinds(found.mutants) == {
        *("observers swapped", "calibration data ignored", "other calibration data"),
        *("scale off by 2 %", "scale off by 2x", "zero point off by one", "output one step lower"),
        *("requantisation dropped", "requantisation doubled", "layer left unquantised"),
    }


def test_a_relu_that_quantising_does_as_well_is_an_equivalent_fault() -> None:
    """The range that it leaves begins at 0, and quantising cuts off what is below."""
    found = measured(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), randn(4, 4))
    assert not [name for name in found.mutants if name.startswith("ReLU lost (")]
    assert "ReLU lost in preparing" in kinds(found.mutants)


def test_a_fault_that_no_value_shows_is_equivalent() -> None:
    """Zeros have the code of the zero point, at any scale."""
    found = measured(lambda x: x + torch.zeros(3), randn(2, 3))
    constant = "dequantize_per_tensor_default"
    assert found.equivalent >= 2
    assert not [name for name in found.mutants if name == f"scale off by 2x ({constant})"]


def test_what_a_blind_judgement_misses_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "judge_converted", lambda *_: [])
    monkeypatch.setattr("vgf_conformance.lowering.quantise.problems", lambda *_: [])
    found = measured(lambda x: x.abs(), randn(4, 4))
    assert found.caught == 0
    assert len(found.survivors) == found.faults > 10
    assert "layer left unquantised (abs_1): within the tolerance" in found.survivors


def test_what_is_quantised_wrong_already_is_not_measured() -> None:
    """One norm of two that share a layer is folded into it: whatever is planted, the stage fails."""

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.one, self.two = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.BatchNorm2d(3)
            self.two.running_var.fill_(4.0)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.one(self.layer(x)) + self.two(self.layer(x * 2.0))

    assert measured(Shared(), randn(1, 3, 4, 4)) == Sensitivity()


def test_a_record_has_the_faults_of_its_stage_apart(evaluator: Evaluator) -> None:
    asked = subject(lambda x: x.flip(0), randn(3, 4))
    for profile, scheme in ((FP, "none"), (INT, "a8w8-pc")):
        record = evaluator.evaluate(asked, profile, scheme, "reference")
        evaluator.measure_sensitivity(record, asked, profile, scheme)
        found = record.quantise_sensitivity
        assert (found is None) == (scheme == "none")
    assert found is not None
    assert found.caught == found.faults > 10
    assert "lowered outputs one step lower (all)" in found.mutants
