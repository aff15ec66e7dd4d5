"""Which step and operator is blamed for faults planted in real lowered graphs, and for the stack's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.evaluation.planted_graphs import BIAS, WEIGHT, Plant, attribute_of, constant, plant
from tests.subjects import FP, INT, randn, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.results.record import FirstWrong, Record
from vgf_conformance.targets.process import reference_target
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict


class Fused(torch.nn.Module):
    """Convolutions with a ReLU and a batch norm fused into them, and operators behind each to be blamed."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.second = torch.nn.Conv2d(4, 5, 3)
        self.norm = torch.nn.BatchNorm2d(5)
        self.norm.running_mean.normal_()
        self.norm.running_var.fill_(2.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.max_pool2d(torch.relu(self.first(x)), 2)
        return torch.relu(self.norm(self.second(y))).flatten(1)


class Permuted(torch.nn.Module):
    """A permutation of equal axes between operators that compute."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)
        self.last = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.linear(x).permute(0, 2, 1))


class Limits(torch.nn.Module):
    """A clamp between two operators."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.clamp(x * 3.0, -1.0, 0.5)) * 2.0


IMAGE = randn(1, 3, 8, 8, seed=1)
MATRIX = randn(1, 4, 4, seed=1)


@pytest.fixture
def blame(cache: Cache, tmp_path: Path) -> Callable[..., FirstWrong]:
    """The first wrong operator on the reference model of a module with a planted fault."""

    def run(
        patch: pytest.MonkeyPatch, module: torch.nn.Module, x: torch.Tensor, profile: Profile, fault: Plant
    ) -> FirstWrong:
        scheme = "a8w8-pc" if profile is INT else "none"
        asked = subject(module, x)
        with patch.context() as context:
            plant(context, fault)
            evaluator = Evaluator({"reference": reference_target()}, cache)
            record = evaluator.evaluate(asked, profile, scheme, "reference")
            evaluator.attribute(record, asked, profile, scheme, tmp_path)
            evaluator.close()
        seen = (record.verdict, record.stage, record.finding)
        assert seen == (Verdict.FAIL, Stage.LOWER, Finding.WRONG), record.log
        return _found(record)

    return run


def _found(record: Record) -> FirstWrong:
    assert record.first_wrong is not None, record.notes
    assert Path(record.first_wrong.repro, "graph.tosa").is_file()
    return record.first_wrong


CASES = {
    "lost bias, ReLU fused": (Fused, IMAGE, INT, constant("CONV2D", 0, BIAS, np.zeros_like)),
    "lost bias, FP": (Fused, IMAGE, FP, constant("CONV2D", 0, BIAS, np.zeros_like)),
    "lost bias, batch norm folded, INT": (Fused, IMAGE, INT, constant("CONV2D", 1, BIAS, np.zeros_like)),
    "lost bias, batch norm folded, FP": (Fused, IMAGE, FP, constant("CONV2D", 1, BIAS, np.zeros_like)),
    "wrong weight, INT": (Fused, IMAGE, INT, constant("CONV2D", 1, WEIGHT, lambda held: held // 2)),
    "wrong weight, FP": (Fused, IMAGE, FP, constant("CONV2D", 1, WEIGHT, lambda held: held * 0.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_constant_of_a_fused_convolution(
    name: str, blame: Callable[..., FirstWrong], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, x, profile, fault = CASES[name]
    found = blame(monkeypatch, module(), x, profile, fault)
    what, layer = (
        name.split()[1].strip(","),
        "first" if "norm" not in name and "weight" not in name else "second",
    )
    assert found.operator == "CONV2D"
    assert found.origin.startswith(f"aten.conv2d.default, {layer} (Conv2d), test_blame.py:")
    assert found.message.startswith(f"its {what} is not the program's; ")
    assert found.became[0] == f"CONV2D {found.position}"


@pytest.mark.parametrize("profile", [FP, INT], ids=str)
def test_a_swapped_permutation(
    profile: Profile, blame: Callable[..., FirstWrong], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = blame(monkeypatch, Permuted(), MATRIX, profile, attribute_of("TRANSPOSE", 0, perms=(1, 2, 0, 3)))
    assert found.operator == "TRANSPOSE"
    assert found.origin.startswith("aten.permute.default")
    assert found.message.startswith("its data lies elsewhere; ")


@pytest.mark.parametrize("profile", [FP, INT], ids=str)
def test_a_wrong_limit(
    profile: Profile, blame: Callable[..., FirstWrong], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = 0.25 if profile is FP else 24
    found = blame(
        monkeypatch, Limits(), randn(4, 8, seed=1), profile, attribute_of("CLAMP", 0, min_val=wrong)
    )
    assert found.operator == "CLAMP"
    assert found.origin.startswith("aten.clamp.default")


def test_a_wrong_table_whose_origin_is_not_noted(
    blame: Callable[..., FirstWrong], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = constant("TABLE", 0, 1, lambda held: held[::-1])
    found = blame(monkeypatch, Limits(), randn(4, 8, seed=1), INT, fault)
    assert (found.operator, found.origin.partition(",")[0]) == ("TABLE", "aten.tanh.default")


class Beyond(torch.nn.Module):
    """A conversion whose first element is beyond int32, which PyTorch leaves undefined, before a clamp."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.to(torch.int32), torch.clamp(x, -1.0, 0.5)


def test_what_pytorch_leaves_undefined_is_not_to_blame(
    blame: Callable[..., FirstWrong], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.tensor([3e9, 1.0, -2.0, 0.25])
    found = blame(monkeypatch, Beyond(), x, FP, attribute_of("CLAMP", 0, min_val=0.25))
    assert (found.operator, found.origin.partition(",")[0]) == ("CLAMP", "aten.clamp.default")
