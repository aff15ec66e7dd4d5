"""The first wrong operator of a whole model, through the real stack: in the lowering, and on a target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.export import ExportedProgram

from tests.attribution.graphs import planted
from tests.subjects import FP, INT, randn, subject
from vgf_conformance.attribution.cut import pieces
from vgf_conformance.evaluation import attribute as module
from vgf_conformance.evaluation.attribute import Attribution, Attributor
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.formats.convert import convert
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import Request, lower
from vgf_conformance.results.record import Record
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict


class Net(torch.nn.Module):
    """Two layers, so that an operator's module says which."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(6, 5)
        self.second = torch.nn.Linear(5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.second(torch.tanh(self.first(x))), -1)


class ReluOfHalf(torch.nn.Module):
    """Concatenates the input with a relu's result: one quantisation for both loses the relu."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, torch.relu(self.linear(x))], 1)


def attribute(
    asked: Subject,
    profile: Profile,
    scheme: str,
    cache: Cache,
    folder: Path,
    stage: Stage,
    wrong: str | None = None,
) -> Attribution | None:
    """Of wrong results at ``stage``, with a converter that swaps the columns of the tensor ``wrong``."""
    record = Record(
        *("id", "case", "sample", "model", "tests", profile.name, scheme, "emulation"),
        verdict=Verdict.FAIL,
        stage=stage,
        finding=Finding.WRONG,
    )
    targets = open_targets(["emulation"], DriverChoice(), folder / "layers")
    attributor = Attributor(
        reference=targets["reference"],
        target=targets["emulation"],
        convert=lambda tosa: convert(planted(tosa, wrong) if wrong else tosa),
        cache=cache,
        folder=folder,
    )
    try:
        return attributor.attribute(asked, profile, scheme, record)
    finally:
        for target in targets.values():
            target.close()


def test_a_right_model_has_nothing_wrong(cache: Cache, tmp_path: Path) -> None:
    """What adds most is named where the record fails all the same, and that it is not wrong by itself."""
    assert attribute(subject(Net(), randn(3, 6)), FP, "none", cache, tmp_path, Stage.RUN) is None
    assert attribute(subject(Net(), randn(3, 6)), INT, "a8w8-pc", cache, tmp_path, Stage.LOWER) is None
    found = attribute(subject(Net(), randn(3, 6)), FP, "none", cache, tmp_path, Stage.LOWER)
    assert found is not None
    assert (found.rule, found.message[:26]) == ("adds most", "no step by itself is wrong")


def test_a_step_that_lowering_gets_wrong_is_named(cache: Cache, tmp_path: Path) -> None:
    found = attribute(
        subject(ReluOfHalf(), randn(2, 4, seed=1)), INT, "a8w8-pc", cache, tmp_path, Stage.LOWER
    )
    assert found is not None
    assert (found.stage, found.operator.name) == (Stage.LOWER, "RESCALE")
    assert found.origin.operator == "aten.relu.default"
    assert found.origin.source.startswith("test_attribution.py:")
    assert found.repro is not None
    shown = {path.name for path in found.repro.iterdir()}
    assert shown == {"README.txt", "graph.tosa", "input0.npy", "expected0.npy", "actual0.npy"}


def test_an_operator_that_the_target_gets_wrong_is_named(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The artifact's own VGF is spoilt as well: what a converter that errs would have made."""
    asked = subject(Net(), randn(3, 6))
    request = Request(asked.module, asked.inputs, FP, "none", located=True)
    graph = read_graph(lower(request, cache).delegates[0].tosa)
    (tanh,) = [part.writes[0] for part in pieces(graph) if graph.operators[part.operators[0]].name == "TANH"]
    _spoil(monkeypatch, tanh)
    found = attribute(asked, FP, "none", cache, tmp_path, Stage.RUN, wrong=tanh)
    assert found is not None
    assert (found.stage, found.operator.name) == (Stage.RUN, "TANH")
    assert found.origin.operator == "aten.tanh.default"
    assert found.repro is not None
    assert (found.repro / "scenario.json").is_file()
    assert found.became == (f"TANH {found.position}",)


def _spoil(patch: pytest.MonkeyPatch, name: str) -> None:
    """Lowering gives artifacts whose VGFs compute the tensor ``name`` wrongly."""

    def spoilt(request: Request, cache: Cache | None, exported: ExportedProgram | None) -> object:
        artifact = lower(request, cache, exported)
        delegates = tuple(replace(item, vgf=convert(planted(item.tosa, name))) for item in artifact.delegates)
        return replace(artifact, delegates=delegates)

    patch.setattr(module, "lower", spoilt)
