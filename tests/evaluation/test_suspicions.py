"""Models and data that nothing can be said of: each is told, and none is taken for a fault of the backend."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import nn

from tests.subjects import FP, INT, randn, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.vocabulary import Finding, Stage, Verdict

X = randn(2, 3)


def model(module: nn.Module) -> Subject:
    return dataclasses.replace(subject(module, X), kind="model")


def broken_linear() -> nn.Module:
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight[0, 0] = math.nan
    return nn.Sequential(layer, nn.ReLU())


def test_weights_with_nan(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(model(broken_linear()), FP, "none", "reference")
    assert (record.verdict, record.stage, record.finding) == (Verdict.ERROR, Stage.EXPORT, Finding.INPUT)
    assert record.message == "the model's weights hold NaN: 0.weight"


def test_an_operators_weights_may_be_special(evaluator: Evaluator) -> None:
    table = nn.Embedding(3, 2)
    with torch.no_grad():
        table.weight[1, 0] = math.nan
    asked = subject(table, torch.tensor([0, 1, 2, 1]))
    assert asked.kind == "operator"
    assert evaluator.evaluate(asked, FP, "none", "reference").verdict is Verdict.PASS


def test_running_statistics_with_nan_but_not_a_constant(evaluator: Evaluator) -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("constant", torch.tensor([math.nan, 1.0, 2.0]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.constant

    norm = nn.BatchNorm1d(3)
    norm.running_mean.fill_(math.nan)
    record = evaluator.evaluate(model(norm), FP, "none", "reference")
    assert record.message == "the model's weights hold NaN: running_mean"
    assert evaluator.evaluate(model(Constant()), FP, "none", "reference").verdict is Verdict.PASS


def test_a_model_that_stays_in_train_mode(evaluator: Evaluator) -> None:
    class Stubborn(nn.Dropout):
        def train(self, mode: bool = True) -> nn.Module:
            return super().train(True)

    record = evaluator.evaluate(subject(nn.Sequential(Stubborn()), X), FP, "none", "reference")
    assert (record.verdict, record.finding) == (Verdict.ERROR, Finding.INPUT)
    assert record.message == "in train mode in spite of eval(): 0"


def test_inputs_of_a_wrong_shape_and_dtype(evaluator: Evaluator) -> None:
    for wrong, words in ((randn(2, 4), "shapes cannot be multiplied"), (X.to(torch.int32), "dtype")):
        record = evaluator.evaluate(subject(nn.Linear(3, 2), wrong), FP, "none", "reference")
        assert (record.verdict, record.stage, record.finding) == (Verdict.ERROR, Stage.EXPORT, Finding.INPUT)
        assert record.message.startswith("the model itself raises on these inputs: RuntimeError")
        assert words in record.message


def test_a_model_without_operators(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(subject(nn.Sequential(), X, delegated=True), FP, "none", "reference")
    assert (record.verdict, record.stage) == (Verdict.UNSUPPORTED, Stage.LOWER)
    assert "the program has no operators, and only gives back its inputs or constants" in record.message


def test_constant_calibration_data_is_noted(evaluator: Evaluator) -> None:
    constant = [(torch.full((2, 3), 0.5),), (torch.full((2, 3), 0.5),)]
    asked = subject(nn.Linear(3, 2), X, kind="model", calibration=constant)
    record = evaluator.evaluate(asked, INT, "a8w8-pc", "reference")
    assert "calibration data: input 0 is 0.5 everywhere, which says nothing of its range" in record.notes
    fine = evaluator.evaluate(subject(nn.Linear(3, 2), X, kind="model"), INT, "a8w8-pc", "reference")
    assert not any("calibration data" in note for note in fine.notes)
