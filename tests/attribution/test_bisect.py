"""A fault planted in one operator is named, wherever it hides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.attribution.graphs import SHAPE, InProcess, chain, planted
from vgf_conformance.attribution.bisect import Bisection, Company, Culprit
from vgf_conformance.attribution.cut import as_delegate, pieces
from vgf_conformance.attribution.repro import write_repro
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.vocabulary import Finding, Stage, Verdict

LENGTH = 60
INPUT = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)


def search(spoil: Callable[[Delegate], bytes]) -> tuple[Culprit | None, InProcess]:
    graph = read_graph(chain(LENGTH))
    target = InProcess("emulation", spoil)
    bisection = Bisection(
        as_delegate(graph, {"x": INPUT}),
        [INPUT],
        reference=InProcess("reference"),
        target=target,
        convert=lambda tosa: tosa,
    )
    return bisection.culprit(), target


def written(position: int) -> str:
    """The tensor that the operator at ``position``, constants not counted, writes."""
    return pieces(read_graph(chain(LENGTH)))[position].writes[0]


@pytest.mark.parametrize("position", [0, 7, 22, 38, 51, 59])
def test_a_wrong_operator_of_sixty_is_named_in_two_runs(position: int) -> None:
    name = written(position)
    culprit, target = search(lambda delegate: planted(delegate.tosa, name))
    assert culprit is not None
    assert (culprit.operator.outputs, culprit.company) == ((name,), Company.ALONE)
    assert culprit.comparison is not None
    assert culprit.comparison.passed is False
    assert "worst at [" in culprit.message
    assert target.runs == 2


def test_a_right_target_has_no_culprit() -> None:
    assert search(lambda delegate: delegate.tosa)[0] is None


def test_a_fault_that_intermediate_outputs_hide_is_found_alone() -> None:
    name = written(40)

    def spoil(delegate: Delegate) -> bytes:
        shown = len(delegate.outputs) > 1
        return delegate.tosa if shown else planted(delegate.tosa, name)

    culprit, _ = search(spoil)
    assert culprit is not None
    assert (culprit.operator.outputs, culprit.company) == ((name,), Company.ALONE)


def test_a_fault_that_needs_its_neighbours_is_found_with_them() -> None:
    name = written(23)

    def spoil(delegate: Delegate) -> bytes:
        operators = len(pieces(read_graph(delegate.tosa)))
        whole = operators > 1 and len(delegate.outputs) <= 2
        return planted(delegate.tosa, name) if whole else delegate.tosa

    culprit, _ = search(spoil)
    assert culprit is not None
    assert (culprit.operator.outputs, culprit.company) == ((name,), Company.BEFORE)


def test_an_operator_that_the_target_cannot_run_is_named() -> None:
    name = written(17)

    def spoil(delegate: Delegate) -> bytes:
        if any(name in item.outputs for item in read_graph(delegate.tosa).operators):
            raise TargetFailure(Verdict.CRASH, Stage.RUN, Finding.CRASHED, "ended by SIGSEGV")
        return delegate.tosa

    culprit, _ = search(spoil)
    assert culprit is not None
    assert culprit.operator.outputs == (name,)
    assert culprit.message == "ended by SIGSEGV"


def test_the_folder_shows_the_operator_on_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    from vgf_conformance.formats.convert import convert

    name = written(5)
    graph = read_graph(chain(LENGTH))
    culprit = Bisection(
        as_delegate(graph, {"x": INPUT}),
        [INPUT],
        reference=InProcess("reference"),
        target=InProcess("emulation", lambda delegate: planted(delegate.tosa, name)),
        convert=convert,
    ).culprit()
    assert culprit is not None
    folder = write_repro(culprit, tmp_path_factory.mktemp("repro"), "emulation", "lvp")
    assert sorted(path.name for path in folder.iterdir()) == [
        *("README.txt", "actual0.npy", "expected0.npy", "graph.tosa", "graph.vgf"),
        *("input0.npy", "input1.npy", "scenario.json"),
    ]
    small = read_graph((folder / "graph.tosa").read_bytes())
    assert [item.name for item in small.operators] == ["MAXIMUM"]
    expected = np.maximum(np.load(folder / "input0.npy"), np.load(folder / "input1.npy"))
    assert np.array_equal(np.load(folder / "expected0.npy"), expected)
    assert np.array_equal(np.load(folder / "actual0.npy"), expected[:, ::-1])
