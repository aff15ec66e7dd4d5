"""Parts of models as files: what is written is what was meant, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.subjects import Function, randn
from vgf_conformance.cases.userfile import UserModel, load_user_model
from vgf_conformance.evaluation.eager import leaves
from vgf_conformance.reduction.candidate import Cutter
from vgf_conformance.reduction.source import write_case
from vgf_conformance.reduction.trace import Trace, trace
from vgf_conformance.vocabulary import UserError


class Everything(torch.nn.Module):
    """Arguments of every kind, operators in place, several results, a parameter, a buffer, a constant."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)
        self.relu = torch.nn.ReLU(inplace=True)
        self.register_buffer("seen", torch.ones(4))

    def forward(self, x: torch.Tensor, k: int, none: None, more: dict[str, torch.Tensor]) -> Any:
        y = self.relu(self.linear(x))
        self.seen.add_(1.0)
        left, right = y.split(2, -1)
        z = more["lambda"] * k + self.seen
        z[0] = float("inf")
        return torch.cat([right, left], -1), z.max(-1), y.to(torch.bfloat16), torch.tensor([1, 2]) + k


INPUTS = (randn(3, 4), 2, None, {"lambda": randn(3, 4, seed=1)})


def written(traced: Trace, kept: range | list[int], inputs: Any, folder: Path) -> UserModel:
    candidate = Cutter(traced, leaves(inputs), [leaves(inputs)]).cut(kept)
    write_case(folder / "case.py", candidate, "FP", "none", 'Says "much" \\ more.')
    return load_user_model(str(folder / "case.py"), 0)


def test_a_whole_model_computes_what_it_did(tmp_path: Path) -> None:
    module = Everything().eval()
    traced = trace("model.py", module, INPUTS)
    user = written(traced, range(len(traced.units)), INPUTS, tmp_path)
    expected = leaves(module(*INPUTS))
    actual = leaves(user.module(*user.samples[0]))
    assert [item.dtype for item in actual] == [item.dtype for item in expected]
    assert all(map(torch.equal, actual, expected))
    assert len(user.calibration) == 1
    assert all(map(torch.equal, user.calibration[0], user.samples[0]))


def test_every_single_node_is_a_model_that_computes_its_part(tmp_path: Path) -> None:
    traced = trace("model.py", Everything().eval(), INPUTS)
    names = [unit.operator for unit in traced.units]
    assert "aten.relu.default" in names
    assert not any("getitem" in name or name.endswith("_.Tensor") for name in names)
    for number, unit in enumerate(traced.units):
        user = written(traced, [number], INPUTS, tmp_path)
        actual = leaves(user.module(*user.samples[0]))
        expected = traced.values(unit.results, leaves(INPUTS))
        assert any(torch.equal(actual[0], value) for value in expected.values()), unit.name


@pytest.mark.parametrize(
    "tensor",
    [
        randn(2, 3),
        randn(20, 30),
        randn(1, 2, 3, 2).to(memory_format=torch.channels_last),
        randn(40, 3).T,
        randn(3, 4, dtype=torch.bfloat16),
        randn(8, 9, dtype=torch.bfloat16),
        randn(8, 9).to(torch.float8_e4m3fn),
        randn(3, dtype=torch.float16),
        torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 1e-45, 16777217.0]),
        torch.tensor([0.1, 1 / 3], dtype=torch.float64),
        torch.tensor(3.5),
        torch.tensor([True, False, True]),
        torch.tensor([-(2**63), 2**63 - 1]),
        torch.full((50, 50), 0.1),
        torch.zeros(2, 0, 3),
    ],
    ids=lambda tensor: f"{tensor.dtype}-{list(tensor.shape)}".replace("torch.", ""),
)
def test_inputs_keep_their_bits_and_the_order_of_their_axes(tensor: torch.Tensor, tmp_path: Path) -> None:
    traced = trace("model.py", Function(torch.ops.aten.view_as.default), (tensor, tensor))
    user = written(traced, [0], (tensor, tensor), tmp_path)
    found = user.samples[0][0]
    assert (found.dtype, found.shape, found.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
    wide, expected = found.double(), tensor.double()
    assert torch.equal(wide.isnan(), expected.isnan())
    assert torch.equal(wide.nan_to_num(), expected.nan_to_num())
    assert torch.equal(wide.signbit(), expected.signbit())


def test_control_flow_is_refused() -> None:
    def either(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    with pytest.raises(UserError, match=r"model.py: cannot be reduced: it has control flow"):
        trace("model.py", Function(either), (randn(3),))
