"""Eager PyTorch comes first: a model whose result does not repeat is no model to compare with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.subjects import FP, INT, randn, subject
from vgf_conformance.evaluation.bisect import bisect_file
from vgf_conformance.evaluation.eager import NotRepeatable, repeated_eager, run_eager, run_eager_fp64
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.targets.process import reference_target
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

X = randn(2, 3)


class Counts(nn.Module):
    """Adds the number of its calls to one element."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        self.calls += 1
        step = torch.zeros_like(x)
        step[1, 2] = self.calls
        return [x, step]


class Remembers(nn.Module):
    """Adds what it was given before, kept in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(x)
        return torch.cat(self.seen)


class Dropped(nn.Module):
    """Drops elements whether it is trained or not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, training=True)


class Alternates(nn.Module):
    """Gives 1, then 1 of another type, and so on."""

    def __init__(self) -> None:
        super().__init__()
        self.odd = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.odd = not self.odd
        return x if self.odd else x.double()


class SignOfZero(nn.Module):
    """Gives zeros of either sign in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.value = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.value = -self.value
        return (x * 0).abs().sum() * math.copysign(1.0, self.value)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Counts(), "output 1, element [1, 2] was 1.0, then 2.0"),
        (Remembers(), "output 0 was float32[2, 3], then float32[4, 3]"),
        (Alternates(), "output 0 was float32[2, 3], then float64[2, 3]"),
        (SignOfZero(), "output 0, the number was -0.0, then 0.0"),
        (Dropped(), "output 0, element ["),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_does_not_repeat_is_refused(module: nn.Module, said: str) -> None:
    torch.manual_seed(0)
    with pytest.raises(NotRepeatable, match="keep state in buffers") as caught:
        repeated_eager(module, (X,))
    assert str(caught.value).startswith(f"not repeatable: {said}")


@pytest.mark.parametrize(("profile", "scheme"), [(FP, "none"), (INT, "a8w8-pc")])
def test_it_is_an_error_at_export(profile: Any, scheme: str, evaluator: Evaluator) -> None:
    record = evaluator.evaluate(subject(Counts(), X), profile, scheme, "reference")
    assert (record.verdict, record.stage) == (Verdict.ERROR, Stage.EXPORT)
    assert record.finding is Finding.UNREPEATABLE
    assert record.message.startswith("not repeatable: output 1, element [1, 2] was ")
    evaluator.measure_sensitivity(record, subject(Counts(), X), profile, scheme)
    assert record.sensitivity is None


FILE = """
import torch

class Model(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        {body}

def model():
    return Model()

def inputs():
    return (torch.zeros(2),)
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return x + self.calls", "not repeatable: output 0, element [0] was 1.0, then 2.0"),
        ("raise ValueError('too small')", "the model itself raises on these inputs: ValueError: too small"),
    ],
)
def test_bisect_has_nothing_to_compare_with(tmp_path: Path, body: str, said: str) -> None:
    # No target gets so far as to be started.
    targets = dict.fromkeys(("reference", "emulation"), reference_target())
    file = tmp_path / "case.py"
    file.write_text(FILE.format(body=body))
    with pytest.raises(UserError) as caught:
        bisect_file(print, str(file), targets, FP, None, seed=0, output=tmp_path / "out")
    assert str(caught.value).startswith(f"{file}: {said}")


class Cache(nn.Module):
    """Writes its input to a buffer, and gives the buffer itself."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(4, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept[1:3] += x
        return self.kept


def seeded(x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(3)
    return x + torch.rand(2, 3)


def in_place(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1.0)


def not_numbers(x: torch.Tensor) -> torch.Tensor:
    return (x - x) / 0.0


def test_state_in_buffers_and_seeded_numbers_repeat() -> None:
    cache = Cache()
    (kept,) = repeated_eager(cache, (X,))
    assert torch.equal(kept[1:3], X)
    assert not cache.kept.any()
    for function in (seeded, in_place, not_numbers):
        given = X.clone()
        repeated_eager(subject(function).module, (given,))
        assert torch.equal(given, X), function.__name__


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.bool, torch.int64])
def test_every_type_is_compared(dtype: torch.dtype) -> None:
    (value,) = repeated_eager(nn.Identity(), (X.to(dtype),))
    assert value.dtype == dtype


def test_inputs_of_64_bits_are_not_written_to() -> None:
    given = X.double()
    module = subject(in_place).module
    run_eager_fp64(module, (given,))
    run_eager(module, (given,))
    assert torch.equal(given, X.double())


def test_gelu_where_eager_overflows_alone(evaluator: Evaluator) -> None:
    large = torch.tensor([1.0, 2e38, math.inf, -1.0, -2e38, 0.5, 3.4e38, 2.0])
    record = evaluator.evaluate(subject(F.gelu, large), FP, "none", "reference")
    assert record.verdict is Verdict.PASS, record.message
