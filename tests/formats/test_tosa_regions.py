"""Branches and loops in TOSA graphs: regions are read, counted, written back and run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch._higher_order_ops.while_loop import while_loop

from tests.subjects import Function, randn
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.propagation import NotCovered, propagate
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph, read_graph
from vgf_conformance.formats.tosa_rules import unsound
from vgf_conformance.formats.tosa_write import write_graph
from vgf_conformance.targets.base import Array
from vgf_conformance.targets.reference import ReferenceRunner
from vgf_conformance.untrusted import Malformed

X = randn(3, 4).abs()


def branch(x: torch.Tensor) -> torch.Tensor:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 1e3, lambda x: x * 2.0, lambda x: torch.tanh(x), (x,))

    return torch.cond(x.sum() > 0.0, inner, lambda x: x - 1.0, (x,))


def loop(x: torch.Tensor) -> torch.Tensor:
    return while_loop(lambda x: (x.sum() < 100.0).reshape(()), lambda x: (x * 2.0,), (x,))[0]


@pytest.fixture(scope="module")
def graph() -> bytes:
    return lowered(branch)


def lowered(function: Callable[..., torch.Tensor]) -> bytes:
    exported = torch.export.export(Function(function), (X,))
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP+cf"))
    module = to_edge_transform_and_lower(exported, partitioner=[partitioner]).exported_program().graph_module
    return bytes(module.lowered_module_0.processed_bytes)


def run(tosa: bytes, *inputs: torch.Tensor) -> list[Array]:
    delegate = Delegate("delegate 0", tosa, b"", (), (), 1)
    return ReferenceRunner().build(delegate).run([value.numpy() for value in inputs], 0)


def test_branches_are_read_counted_and_written_back(graph: bytes) -> None:
    read = read_graph(graph)
    assert len(read.regions) == 4
    counts = read.operator_counts()
    assert (counts["COND_IF"], counts["TANH"], counts["SUB"]) == (2, 1, 1)
    assert read.operator_dtypes()["COND_IF"] == {"float32": 2}
    assert set(read.operator_dtypes()) == set(counts)
    again = read_graph(write_graph(read))
    assert (again.operator_counts(), list(again.regions)) == (counts, list(read.regions))
    assert [part.outputs for part in again.parts] == [part.outputs for part in read.parts]


@pytest.mark.parametrize("x", [X, -X, X * 1e4], ids=["inner else", "outer else", "inner then"])
def test_branches_run_on_the_reference_model(graph: bytes, x: torch.Tensor) -> None:
    for tosa in (graph, write_graph(read_graph(graph))):
        (made,) = run(tosa, x)
        assert np.allclose(made, branch(x).numpy(), rtol=1e-6)


def test_loops_run_on_the_reference_model() -> None:
    from vgf_conformance.formats import tosa_write

    tosa = lowered(loop)
    read = read_graph(tosa)
    assert read.operator_counts()["WHILE_LOOP"] == 1
    assert len(read.regions) == 2
    for data in (tosa, tosa_write.write_graph(read)):
        (made,) = run(data, X)
        assert np.array_equal(made, loop(X).numpy())


def test_branches_are_judged_without_propagation(graph: bytes) -> None:
    read, inputs = read_graph(graph), [X.numpy()]
    with pytest.raises(NotCovered, match="COND_IF"):
        propagate(read, inputs)
    reference = run(graph, X)
    for noise, passed in ((1e-8, True), (1e-2, False)):
        actual = [(reference[0].astype(np.float64) * (1 + noise) + noise).astype(np.float32)]
        (judged,) = judge_device(read, inputs, actual, reference, target="device", delegate="delegate 0")
        assert (judged.passed, judged.rule.startswith("sqnr")) == (passed, True)


def renamed(graph: TosaGraph, name: str) -> TosaGraph:
    """With ``name`` for the first branch of all control flow."""
    changed = {
        part: dataclasses.replace(
            held,
            operators=tuple(
                dataclasses.replace(item, attributes={**item.attributes, "then_graph": name})
                if item.name == "COND_IF"
                else item
                for item in held.operators
            ),
        )
        for part, held in {"": graph, **graph.regions}.items()
    }
    return dataclasses.replace(changed.pop(""), regions=changed)


def test_regions_that_are_not_there_or_go_round_are_refused(graph: bytes) -> None:
    read = read_graph(graph)
    with pytest.raises(Malformed, match="names regions that are not there: nowhere"):
        read_graph(write_graph(renamed(read, "nowhere")))
    inside = next(name for name, part in read.regions.items() if "COND_IF" in part.operator_counts())
    with pytest.raises(Malformed, match=f"goes round in a circle: main, {inside}"):
        read_graph(write_graph(renamed(read, inside)))
    with pytest.raises(Malformed, match="there twice"):
        read_graph(write_graph(dataclasses.replace(read, regions={**read.regions, "main": read})))


def test_a_pack_has_no_control_flow(graph: bytes) -> None:
    assert unsound(read_graph(graph)) == "it has control flow (4 regions), which no VGF has"
