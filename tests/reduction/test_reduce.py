"""Failing models through the real stack, and on targets with planted faults: what is left of them."""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from vgf_conformance.cases.userfile import load_user_model
from vgf_conformance.cli import main
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.reduction import reduce
from vgf_conformance.reduction.reduce import Options, Reducer, Reduction
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.process import ProcessTarget, reference_target
from vgf_conformance.targets.runtime_choice import INSTALLED
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Finding, Stage, UserError

HEAD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Sigmoid())
        self.middle = nn.Linear(4, 4)
        self.back = nn.Sequential(nn.ReLU(), nn.Linear(4, 3))

    def forward(self, x):
        y = self.front(x)
        {body}

def model():
    return Net()

def inputs():
    return (torch.randn(5, 6),)

profiles = ["{profile}"]
"""

#: TOSA's FP profile has no ABS of int32, which the backend delegates nevertheless.
INTEGER = "return self.back(self.middle(y)), torch.abs((x * 4).to(torch.int32) - 3) * 2"


def model_file(folder: Path, body: str, profile: str = "FP", more: str = "") -> Path:
    path = folder / "net.py"
    path.write_text(HEAD.replace("{body}", body).replace("{profile}", profile) + more)
    return path


class Bench:
    """A reference model, and fakes beside it; keeps what was said."""

    def __init__(self, cache: Cache) -> None:
        self.said: list[str] = []
        self._cache = cache
        self._opened: dict[str, Target] = {"reference": reference_target()}

    def reduce(self, file: Path, target: str = "reference", budget: float = 600.0) -> Reduction | None:
        if target not in self._opened:
            self._opened[target] = ProcessTarget(target, f"tests.reduction.planted:{target}", time_limit=3)
        reducer = Reducer(self._opened, self._cache, self.said.append)
        options = Options((), (), (target,), 0, budget, DriverChoice(), INSTALLED)
        return reducer.reduce(str(file), options, file.with_name("net_reduced.py"))

    def close(self) -> None:
        for target in self._opened.values():
            target.close()


@pytest.fixture
def bench(cache: Cache) -> Iterator[Bench]:
    made = Bench(cache)
    yield made
    made.close()


def left(found: Reduction | None) -> list[str]:
    assert found is not None
    return [operator.split(".")[1] for operator in found.operators]


def test_a_lowering_that_raises(bench: Bench, tmp_path: Path) -> None:
    """The compiler's last words name the operator."""
    found = bench.reduce(model_file(tmp_path, INTEGER))
    assert left(found) == ["abs"]
    assert found is not None and found.complete and found.before == 11
    record = found.failure.record
    assert (record.stage, record.finding) == (Stage.LOWER, Finding.RAISED)
    assert bench.said[-1].startswith("1 of 11 nodes")
    text = found.files[0].read_text()
    assert "Reduced from net.py by vgf-conformance reduce: 1 of 11 nodes." in text
    assert "torch.ops.aten.abs.default(sub)  # net.py:14" in text
    # The inputs shrink too: from [5, 6] to one plain element.
    (value,) = load_user_model(str(found.files[0]), 0).samples[0]
    assert value.numel() == 1


@pytest.fixture
def only_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs stay as they are: shrinking them takes as many lowerings again."""
    monkeypatch.setattr(reduce, "shrunk", lambda candidate, fails: candidate)


@pytest.mark.usefixtures("only_nodes")
def test_a_wrong_lowering_of_a_quantised_model(bench: Bench, tmp_path: Path) -> None:
    """One quantisation for both operands of cat loses the relu."""
    body = "z = torch.tanh(x); return torch.cat([z, torch.relu(self.front[0](z))], 1)"
    calibration = "\ndef calibration():\n    return [inputs(), (2 * inputs()[0],)]\n"
    found = bench.reduce(model_file(tmp_path, body, "INT", calibration))
    assert {"relu", "cat"} <= set(left(found))
    assert found is not None and len(found.operators) <= 3
    assert len(load_user_model(str(found.files[0]), 0).calibration) == 2


def test_a_target_that_errs_at_one_operator(bench: Bench, tmp_path: Path) -> None:
    found = bench.reduce(model_file(tmp_path, "return self.back(self.middle(y))"), "WrongAtTanh")
    assert left(found) == ["tanh"]


@pytest.mark.usefixtures("only_nodes")
def test_a_target_that_crashes_at_two_operators_together(bench: Bench, tmp_path: Path) -> None:
    body = "return self.back(nn.functional.max_pool2d(torch.tanh(y)[None, None], 1))"
    found = bench.reduce(model_file(tmp_path, body), "CrashesAtPair")
    assert {"sigmoid", "max_pool2d"} <= set(left(found))
    assert found is not None and len(found.operators) <= 3
    assert found.failure.record.finding is Finding.CRASHED


def test_a_budget_that_is_used_up_gives_the_best_so_far(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands for two questions, and then jumps beyond every deadline."""
    ticks = itertools.chain([0.0, 0.0], itertools.repeat(math.inf))
    clock = types.SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr("vgf_conformance.reduction.trial.time", clock)
    found = bench.reduce(model_file(tmp_path, INTEGER))
    assert found is not None and not found.complete
    assert "the time ran out" in str(found)


def test_a_failure_that_needs_more_than_a_row_of_operators(bench: Bench, tmp_path: Path) -> None:
    """The failure is the quantiser's configuration, which a case file of its own does not have."""
    more = "\ndef configure_quantizer(quantizer):\n    quantizer.set_global('none of its own')\n"
    file = model_file(tmp_path, "return self.back(y)", "INT", more)
    with pytest.raises(UserError, match=r"do not fail in the same way .*configure_quantizer"):
        bench.reduce(file)


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = model_file(tmp_path, INTEGER)
    assert main(["reduce", "net.py", "--target", "reference"]) == 1
    output = capsys.readouterr()
    assert "1 of 11 nodes left: aten.abs.default" in output.out
    assert "reduce: 1 of 11 nodes" in output.err
    assert (tmp_path / "net_reduced.py").is_file()
    assert main(["check", "net_reduced.py", "--target", "reference"]) == 1
    capsys.readouterr()
    assert main(["reduce", str(file), "-o", "net.py"]) == 2
    assert main(["reduce", str(file), "-o", "net.txt"]) == 2
    assert main(["reduce", "none.py", "--target", "reference"]) == 2
    model_file(tmp_path, "return self.back(y)")
    assert main(["reduce", "net.py", "--target", "reference"]) == 0
    assert "nothing fails" in capsys.readouterr().out
