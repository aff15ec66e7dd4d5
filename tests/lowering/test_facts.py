"""What is kept of a lowering: passes that changed the graph, scales, and what stayed in floating point."""

from __future__ import annotations

import pytest
import torch
from executorch.backends.arm._passes import arm_pass_manager
from executorch.backends.arm.operators.op_tosa_rescale import RescaleVisitor
from executorch.backends.arm.quantizer import quantizer_support

from tests.subjects import INT, randn, request, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.formats.rescales import check_rescales
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

MIXED = Profile.parse("FP+INT")


class Weighted(torch.nn.Module):
    """A convolution of three channels, and a sum of two scales."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.convolution = torch.nn.Conv2d(2, 3, 1)

    def forward(self, image: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self.convolution(image) + other


@pytest.fixture(scope="module")
def artifact(cache: Cache) -> Artifact:
    inputs = (randn(1, 2, 3, 3), 5.0 * randn(1, 3, 3, 3, seed=1))
    return lower(request(Weighted(), *inputs, profile=INT, scheme="a8w8-pc"), cache)


def test_passes_count_where_the_graph_changed_alone(artifact: Artifact) -> None:
    assert {"FoldAndAnnotateQParamsPass", "InsertRescaleInt32Pass", "RewriteConvPass"} <= {*artifact.passes}
    # They ran, and say that they modified the graph.
    assert not {"DecomposeGluPass", "BroadcastArgsPass", "InsertTableOpsPass"} & {*artifact.passes}


def test_nothing_listens_after_a_lowering(artifact: Artifact) -> None:
    assert RescaleVisitor.define_node.__module__ == RescaleVisitor.__module__
    adapter = arm_pass_manager._ExportedProgramGraphPassAdapter
    assert adapter.__init__.__module__ == adapter.__module__
    assert isinstance(arm_pass_manager.GraphModulePassManager, type)


def test_the_scale_of_each_rescale_is_known(artifact: Artifact) -> None:
    (delegate,) = artifact.delegates
    graph = read_graph(delegate.tosa)
    outputs = [item.outputs[0] for item in graph.operators if item.name == "RESCALE"]
    assert outputs and {*outputs} == delegate.scales.keys()
    assert sorted({len(scales) for scales in delegate.scales.values()}) == [1, 3]
    assert sorted({len(scales) for scales in delegate.parameters}) == [1, 3]
    assert check_rescales(delegate, graph) == []


def without_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the quantizer leave tanh alone."""
    monkeypatch.delitem(quantizer_support.TOSA_QUANTIZER_SUPPORT_DICT, (torch.ops.aten.tanh.default,))


def test_a_dropped_annotation_is_a_failure_at_quantise(
    monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator
) -> None:
    def between(tensor: torch.Tensor) -> torch.Tensor:
        return torch.abs(torch.tanh(torch.abs(tensor)))

    # Without the cache, which knows nothing of what is patched here.
    evaluator = Evaluator({"reference": evaluator._targets["reference"]})
    whole = subject(between, randn(2, 5), floating=())
    assert evaluator.evaluate(whole, MIXED, "a8w8-pc", "reference").verdict is Verdict.PASS
    without_tanh(monkeypatch)
    dropped = subject(between, randn(2, 5), floating=())
    found = evaluator.evaluate(dropped, MIXED, "a8w8-pc", "reference")
    assert (found.verdict, found.stage, found.finding) == (Verdict.FAIL, Stage.QUANTISE, Finding.UNQUANTISED)
    assert found.message == "the quantiser leaves in floating point: TANH (1); the case declares nothing"
    assert found.delegates[0].floating == {"TANH": 1}
    # Of a user's own model nothing is declared: a note says so.
    dropped.floating = None
    found = evaluator.evaluate(dropped, MIXED, "a8w8-pc", "reference")
    assert found.verdict is Verdict.PASS
    assert "FP+INT a8w8-pc: the quantiser leaves in floating point: TANH (1)" in found.notes
