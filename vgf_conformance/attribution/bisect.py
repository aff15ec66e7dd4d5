"""Finds the first TOSA operator of a delegate that a target computes wrongly.

Three looks, from the cheapest to the closest:

1. every intermediate result made an output, in one run: the first operator whose result is wrong
   for what the target itself gave it. It is then run alone, on the reference's intermediates.
2. every operator alone, on the reference's intermediates: faults that the first look hides, because
   a tensor that is an output is laid out and kept otherwise.
3. the first operators together, by bisection: a fault that needs its neighbours (fusion, memory
   that is used again).

Each result is judged by the operator's own bound (``comparison.device``); what several together give too
noisily is right where each is within its own (``attribution.noisy``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vgf_conformance.attribution.cut import Convert, Piece, alone, as_delegate, first, pieces, visible
from vgf_conformance.attribution.noisy import only_noisy, outside
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.propagation import NotCovered
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, read_graph
from vgf_conformance.results.record import Comparison
from vgf_conformance.targets.base import Array, Outputs, Target, TargetFailure
from vgf_conformance.vocabulary import Finding, Stage, Verdict


class Company(str, enum.Enum):
    """How much of the graph the fault needs to show."""

    ALONE = "alone"
    BEFORE = "with the operators before it"
    WHOLE = "with the whole graph around it"


@dataclass(frozen=True)
class Culprit:
    """The first operator that the target computes wrongly.

    ``position`` counts the graph's operators from 0. ``comparison`` is its worst result and its
    bound, None where ``failure`` says that the target gave none. ``delegate`` is the smallest graph
    that shows it, with ``inputs``, ``expected`` and ``actual`` in memory order.
    """

    operator: TosaOperator
    position: int
    company: Company
    delegate: Delegate
    inputs: list[Array]
    expected: list[Array]
    actual: list[Array]
    comparison: Comparison | None
    failure: TargetFailure | None = None

    @property
    def message(self) -> str:
        """What is wrong, in words: the worst element, its index and what it should be."""
        if self.failure is not None:
            return self.failure.message
        assert self.comparison is not None
        return self.comparison.message


class Bisection:
    """The search in one delegate with one set of inputs (in memory order).

    ``reference`` is the TOSA reference model; ``convert`` makes the VGFs of the cut graphs.
    """

    def __init__(
        self,
        delegate: Delegate,
        inputs: Sequence[Array],
        *,
        reference: Target,
        target: Target,
        convert: Convert,
    ) -> None:
        self._delegate = delegate
        self._graph = read_graph(delegate.tosa)
        self._inputs = dict(zip(self._graph.inputs, inputs, strict=True))
        self._reference = reference
        self._target = target
        self._convert = convert
        self._pieces = pieces(self._graph)
        self._expected: dict[str, Array] = {}
        self._got: dict[str, Array] = {}

    def culprit(self) -> Culprit | None:
        """The first wrong operator; None where the target is right on these inputs.

        Raises TargetFailure where the reference model refuses the graph, and whatever ``convert`` raises.
        """
        self._expected = {**self._inputs, **self._all(self._reference).values}
        return self._seen_through() or self._seen_alone() or self._seen_together()

    def behind(self, output: int, outputs: Sequence[Array], fault: Comparison | TargetFailure) -> Culprit:
        """The operator that makes a graph's wrong output, alone where that shows the fault.

        ``outputs`` are what the target gave for the whole graph, and ``fault`` what is wrong with that one.
        Raises as culprit does.
        """
        self._expected = {**self._inputs, **self._all(self._reference).values}
        name = self._graph.outputs[output]
        piece = next((piece for piece in self._pieces if name in piece.writes), None)
        if piece is not None:
            found = self._tried(alone(self._graph, piece), piece, Company.ALONE, fault)
            if found is not None:
                return found
        # An input that is an output as well has no operator: the first one stands for the graph.
        position = piece.operators[-1] if piece else 0
        return Culprit(
            operator=self._graph.operators[position],
            position=position,
            company=Company.WHOLE,
            delegate=self._delegate,
            inputs=list(self._inputs.values()),
            expected=[self._expected[name] for name in self._graph.outputs],
            actual=list(outputs),
            comparison=fault if isinstance(fault, Comparison) else None,
            failure=fault if isinstance(fault, TargetFailure) else None,
        )

    def _seen_through(self) -> Culprit | None:
        try:
            shown = self._all(self._target)
        except TargetFailure:
            # Which operator the target cannot run is found by running each alone.
            return None
        self._got = got = {**self._inputs, **shown.values}
        for piece in self._pieces:
            if shown.unwritten.isdisjoint(piece.writes) and not self._right_for_its_own_inputs(piece, got):
                return self._tried(alone(self._graph, piece), piece, Company.ALONE)
        return None

    def _seen_alone(self) -> Culprit | None:
        found = (self._tried(alone(self._graph, piece), piece, Company.ALONE) for piece in self._pieces)
        return next((culprit for culprit in found if culprit is not None), None)

    def _seen_together(self) -> Culprit | None:
        """The fewest operators from the start that go wrong together."""
        low, high, found = 0, len(self._pieces), None
        while low < high:
            middle = (low + high) // 2
            graph = first(self._graph, self._pieces[: middle + 1])
            culprit = self._tried(graph, self._pieces[middle], Company.BEFORE)
            if culprit is None:
                low = middle + 1
            else:
                found, high = culprit, middle
        return found

    def _all(self, target: Target) -> _Shown:
        """Every intermediate result on ``target``.

        One that is not written, since the converter folds its operator to a constant, is the reference
        model's: what reads it reads that constant.
        """
        graph = visible(self._graph, self._pieces)
        if target is self._reference:
            delegate = as_delegate(graph, self._inputs)
        else:
            delegate = as_delegate(graph, self._inputs, self._convert)
        outputs = self._outputs(target, graph, delegate, self._inputs)
        unwritten = {graph.outputs[number] for number in outputs.unwritten}
        values = {
            name: self._expected[name] if name in unwritten else array
            for name, array in zip(graph.outputs, outputs.arrays, strict=True)
        }
        return _Shown(values, unwritten)

    def _right_for_its_own_inputs(self, piece: Piece, got: Mapping[str, Array]) -> bool:
        graph = alone(self._graph, piece)
        expected = self._run(self._reference, graph, as_delegate(graph, got), got)
        judged = judge_device(
            graph,
            [got[name] for name in graph.inputs],
            [got[name] for name in graph.outputs],
            expected,
            target=self._target.name,
            delegate="",
        )
        return all(comparison.passed for comparison in judged)

    def _tried(
        self,
        graph: TosaGraph,
        piece: Piece,
        company: Company,
        fault: Comparison | TargetFailure | None = None,
    ) -> Culprit | None:
        """``graph`` on the target with the reference's inputs; a Culprit where that goes wrong.

        Alone the converter folds some operators to constants, and nothing writes their results: that is a
        fault only where ``fault`` says that nothing did in the whole graph either.
        """
        sought = fault.finding if isinstance(fault, TargetFailure) else None
        values = self._expected
        delegate = as_delegate(graph, values, self._convert)
        inputs = [values[name] for name in graph.inputs]
        expected = [values[name] for name in graph.outputs]
        failure, actual, worst = None, [], None
        try:
            outputs = self._outputs(self._target, graph, delegate, values)
            actual = list(outputs.arrays)
            _raise_faults(outputs, sought)
        except TargetFailure as error:
            failure = error
        else:
            if outputs.unwritten:
                return None
            judged = judge_device(graph, inputs, actual, expected, target=self._target.name, delegate="")
            noisy = only_noisy(judged) and self._explained(graph, actual)
            worst = None if noisy else next((item for item in judged if not item.passed), None)
        if failure is None and worst is None:
            return None
        position = piece.operators[-1]
        return Culprit(
            self._graph.operators[position],
            position,
            company,
            delegate,
            inputs,
            expected,
            actual,
            worst,
            failure,
        )

    def _explained(self, graph: TosaGraph, actual: Sequence[Array]) -> bool:
        """Whether the target's own intermediate results lead to ``actual``, operator by operator."""
        seen = {**self._got, **dict(zip(graph.outputs, actual, strict=True))}
        try:
            return len(graph.operators) > 1 and bool(self._got) and outside(graph, seen) is None
        except NotCovered:
            return False

    def _run(
        self, target: Target, graph: TosaGraph, delegate: Delegate, values: Mapping[str, Array]
    ) -> list[Array]:
        return list(self._outputs(target, graph, delegate, values).arrays)

    def _outputs(
        self, target: Target, graph: TosaGraph, delegate: Delegate, values: Mapping[str, Array]
    ) -> Outputs:
        target.load([delegate])
        return target.run(0, [values[name] for name in graph.inputs])


@dataclass(frozen=True)
class _Shown:
    """Intermediate results by name, and which of them nothing wrote."""

    values: dict[str, Array]
    unwritten: set[str]


def _raise_faults(outputs: Outputs, sought: Finding | None) -> None:
    """Raise TargetFailure where the outputs have the fault that is sought."""
    for finding, message in outputs.faults():
        if finding is sought:
            raise TargetFailure(Verdict.FAIL, Stage.RUN, finding, message)
