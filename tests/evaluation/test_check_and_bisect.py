"""check and bisect say the same of programs that the stack gets wrong, or right, each for another reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from vgf_conformance.evaluation.bisect import bisect_file
from vgf_conformance.evaluation.check import Selection
from vgf_conformance.evaluation.userfiles import check_file
from vgf_conformance.report.failure import bisection_text
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.runtime_choice import INSTALLED
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Profile, Stage, Verdict


@dataclass(frozen=True)
class Program:
    """A model file's module, its inputs and what is wrong first: stage, TOSA operator, PyTorch operator."""

    setup: str
    forward: str
    inputs: str
    profile: str
    stage: Stage | None = None
    operator: str = ""
    origin: str = ""


PROGRAMS = {
    # ExecuTorch rounds halves away from zero; beside 1e10 the error is no noise at all.
    "rounded halves": Program(
        "pass",
        "torch.round(x), torch.floor(x)",
        "torch.tensor([0.5, 1.5, -0.5, 8388607.5, 1e10])",
        "FP",
        Stage.LOWER,
        "SELECT",
        "aten.round.default",
    ),
    "one convolution, two norms": Program(
        "self.c = torch.nn.Conv2d(3, 4, 3)\n"
        "        self.n = torch.nn.ModuleList(torch.nn.BatchNorm2d(4) for _ in range(2))\n"
        "        self.n[0].running_var.fill_(4.0)",
        "self.n[0](self.c(x)) + self.n[1](self.c(x * 2.0))",
        "torch.randn(1, 3, 6, 6)",
        "FP",
        Stage.LOWER,
        "CONV2D",
        "aten.conv2d.default, c (Conv2d)",
    ),
    "a ReLU beside its input": Program(
        "self.l = torch.nn.Linear(4, 4)",
        "torch.cat([x, torch.relu(self.l(x))], 1)",
        "torch.randn(2, 4)",
        "INT",
        Stage.LOWER,
        "RESCALE",
        "aten.relu.default",
    ),
    "a constant of another dtype": Program(
        "self.e = torch.nn.Embedding(4, 3)",
        "x + self.e(torch.arange(4))",
        "torch.randn(2, 4, 3)",
        "FP",
        Stage.LOWER,
        "CONST",
    ),
    "equal outputs": Program(
        "pass",
        "torch.relu(x), x.clamp(min=0.0)",
        "torch.randn(2, 3)",
        "FP",
        Stage.RUN,
        "IDENTITY",
        "aten.relu.default",
    ),
    "a similarity along another axis": Program(
        "pass",
        "torch.nn.functional.cosine_similarity(x, x + 1.0, dim=-1)",
        "torch.rand(2, 4, 5)",
        "INT",
        Stage.QUANTISE,
        origin="aten.cosine_similarity.default",
    ),
    "what lowering refuses": Program("pass", "x.sum()", "torch.randn(2, 3)", "FP", Stage.LOWER),
    "two delegates": Program(
        "self.e, self.a, self.b = torch.nn.Embedding(30, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)",
        "(lambda h: (h + torch.relu(self.a(h)) * torch.sigmoid(self.b(h)))"
        "[torch.arange(1), (x.to(torch.int) == 29).int().argmax(-1)])(self.e(x))",
        "torch.arange(14, 30).reshape(1, 16)",
        "INT",
    ),
}

FILE = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {setup}

    def forward(self, x):
        return {forward}


def model():
    torch.manual_seed(0)
    return Model().eval()


def inputs():
    torch.manual_seed(1)
    return ({inputs},)
"""


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    opened = dict(open_targets(["emulation"], DriverChoice(), tmp_path_factory.mktemp("layers")))
    yield opened
    for target in opened.values():
        target.close()


def _checked(file: Path, profile: Profile, targets: dict[str, Target]) -> Record | None:
    """The first failure on the reference model and on emulation."""
    sent: list[Record] = []
    selection = Selection((profile,), (), ("reference", "emulation"), 0, DriverChoice(), INSTALLED)
    check_file(lambda _, document: sent.append(Record.from_json(document)), str(file), targets, selection)
    assert len(sent) == 2
    return next((record for record in sent if record.verdict is not Verdict.PASS), None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_step_is_named(name: str, targets: dict[str, Target], tmp_path: Path) -> None:
    program = PROGRAMS[name]
    file, profile, output = tmp_path / "model.py", Profile.parse(program.profile), tmp_path / "shown"
    file.write_text(FILE.format(setup=program.setup, forward=program.forward, inputs=program.inputs))
    record, said = _checked(file, profile, targets), []
    bisect_file(lambda _, text: said.append(text), str(file), targets, profile, None, 0, output)
    if program.stage is None:
        assert (record, said) == (None, [])
        return
    assert record is not None
    assert record.stage is program.stage
    if not program.operator:
        assert record.first_wrong is None
        assert said == [bisection_text(record)]
        assert (program.origin or "no operator can be named") in said[0]
        return
    found = record.first_wrong
    assert found is not None, record.notes
    assert (found.stage, found.operator) == (program.stage, program.operator)
    assert found.origin.startswith(program.origin)
    (folder,) = output.iterdir()
    assert folder.name == f"{found.operator.lower()}-{found.position}"
    assert (folder / "graph.tosa").is_file()
    assert said == [bisection_text(replace(record, first_wrong=replace(found, repro=str(folder))))]
