"""Names the step and the operator that are to blame where a program goes wrong: in the lowering, on a target.

What is wrong, and at which stage, is what ``evaluation.evaluate`` found: suites, ``check`` and ``bisect`` ask
with its record, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgf_conformance.attribution.bisect import Bisection, Culprit
from vgf_conformance.attribution.cut import as_delegate
from vgf_conformance.attribution.origin import Origin
from vgf_conformance.attribution.prefix import first_failing
from vgf_conformance.attribution.region import Seen, see
from vgf_conformance.attribution.repro import Lowered, write_lowered, write_repro
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.evaluation.eager import leaves
from vgf_conformance.evaluation.lowered import Blamed, blamed, delegate_outputs
from vgf_conformance.evaluation.places import Places
from vgf_conformance.evaluation.subject import Subject, request_of
from vgf_conformance.evaluation.walk import Asked, Call, Walk, walk_program
from vgf_conformance.formats.boundary import Problem, check_shared_outputs, check_tosa, check_vgf
from vgf_conformance.formats.convert import Refusal
from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator, read_graph
from vgf_conformance.formats.tosa_write import write_graph
from vgf_conformance.formats.vgf import read_vgf
from vgf_conformance.lowering.artifact import Artifact, LoweringFailure
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import export, lower
from vgf_conformance.lowering.program import Program, read_program
from vgf_conformance.results.record import Comparison, FirstWrong, Record
from vgf_conformance.targets.base import Array, Target, TargetFailure
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict


@dataclass(frozen=True)
class Attribution:
    """What is to blame: a TOSA operator (its position in the delegate's graph) and the step that it is of.

    ``stage`` is that of the record. ``became`` are the TOSA operators of the same step with their positions
    (``CONV2D 5``), this one first. ``repro`` is the folder that shows it, None where none was asked for.
    """

    stage: Stage
    delegate: str
    operator: TosaOperator
    position: int
    origin: Origin
    rule: str
    message: str
    became: tuple[str, ...]
    repro: Path | None = None

    def recorded(self) -> FirstWrong:
        """The same as plain values, for a record."""
        return FirstWrong(
            stage=self.stage,
            delegate=self.delegate,
            operator=self.operator.name,
            position=self.position,
            origin=str(self.origin),
            rule=self.rule,
            message=self.message,
            repro=str(self.repro or ""),
            became=list(self.became),
        )


@dataclass(frozen=True)
class _Subject:
    """A subject lowered with notes of where operators come from, and its program on flattened inputs."""

    artifact: Artifact
    program: Program
    inputs: list[Any]
    places: Places


@dataclass(frozen=True)
class _Found:
    """An operator in the graph of a delegate, and what is wrong with it."""

    delegate: str
    graph: TosaGraph
    position: int
    message: str


class Attributor:
    """Looks for culprits with ``reference`` and one ``target``.

    A folder that shows the operator goes below ``folder``, and is not written where that is None.
    """

    def __init__(
        self,
        *,
        reference: Target,
        target: Target,
        convert: Callable[[bytes], bytes],
        cache: Cache | None,
        folder: Path | None,
    ) -> None:
        self._reference = reference
        self._target = target
        self._convert = convert
        self._cache = cache
        self._folder = folder

    def attribute(
        self, subject: Subject, profile: Profile, scheme: str, record: Record
    ) -> Attribution | None:
        """What is to blame for what ``record`` says; None where no TOSA operator is.

        Before there is a graph (export, quantisation, a lowering that raises) none is. Raises TargetFailure
        where the reference model refuses a graph that it took before.
        """
        if record.verdict is Verdict.PASS or record.stage not in (Stage.LOWER, Stage.CONVERT, Stage.RUN):
            return None
        request = request_of(subject, profile, scheme, located=True)
        try:
            exported = export(request)
            artifact = lower(request, self._cache, exported)
        except LoweringFailure as failure:
            return self._rejected(failure, record.stage) if failure.tosa else None
        program = artifact.quantised or read_program(exported)[0]
        asked = _Subject(artifact, program, leaves(subject.inputs), Places.of(program, exported))
        if record.stage is Stage.LOWER:
            return self._lowering(asked, record)
        if record.stage is Stage.CONVERT:
            return self._static(asked, record.stage) or self._refused(asked, record)
        return self._device(asked)

    def _lowering(self, asked: _Subject, record: Record) -> Attribution | None:
        if record.finding is Finding.BOUNDARY:
            return self._static(asked, Stage.LOWER)
        walk = walk_program(asked.artifact, asked.inputs, self._reference)
        if walk.failure is not None:
            return self._ends(asked, walk, walk.failure, record.message)
        if record.finding is not Finding.WRONG:
            return None
        outermost = {step.delegate for step in asked.artifact.program.steps}
        calls = [call for call in walk.calls if call.delegate in outermost]
        seen = [self._see(asked, call) for call in calls]
        sources = delegate_outputs(asked.artifact, calls, seen)
        found = blamed(asked.program, asked.inputs, seen, walk.outputs, sources)
        return None if found is None else self._of_lowered(asked, seen[found.call], found)

    def _see(self, asked: _Subject, call: Call) -> Seen:
        delegate = asked.artifact.delegates[call.delegate]
        return see(delegate, call.inputs, self._reference, asked.places.operators)

    def _of_lowered(self, asked: _Subject, seen: Seen, found: Blamed) -> Attribution:
        operator = seen.graph.operators[found.position]
        folder = self._below(operator, found.position)
        if folder is not None:
            shown = Lowered(write_graph(found.graph), found.inputs, found.expected, found.actual)
            write_lowered(shown, folder, operator.name, found.message)
        return Attribution(
            Stage.LOWER,
            seen.delegate,
            operator,
            found.position,
            asked.places.of_step(found.step.name, operator),
            found.rule,
            found.message,
            tuple(_numbered(seen.graph, at) for at in found.became),
            folder,
        )

    def _ends(self, asked: _Subject, walk: Walk, failure: TargetFailure, message: str) -> Attribution | None:
        """The first operator without which the reference model does not end early."""
        call = walk.unanswered
        if call is None:
            return None
        delegate = asked.artifact.delegates[call.delegate]
        graph = read_graph(delegate.tosa)
        values = dict(zip(graph.inputs, call.inputs, strict=True))

        def ends(part: TosaGraph) -> bool:
            try:
                self._reference.load([as_delegate(part, values)])
                self._reference.run(0, call.inputs)
            except TargetFailure as other:
                return other.finding is failure.finding
            return False

        prefix = first_failing(graph, ends)
        if prefix is None:
            return None
        found = _Found(delegate.name, graph, prefix.position, message)
        return self._named(asked.places, Stage.LOWER, found, Lowered(write_graph(prefix.graph), call.inputs))

    def _refused(self, asked: _Subject, record: Record) -> Attribution | None:
        """The first operator without which the converter takes the graph."""
        number = next(iter(asked.artifact.refusals), None)
        if number is None:
            return None
        delegate = asked.artifact.delegates[number]
        return self._unconverted(asked.places, Stage.CONVERT, delegate.name, delegate.tosa, record.message)

    def _rejected(self, failure: LoweringFailure, stage: Stage) -> Attribution | None:
        """As _refused, where lowering itself ended with the converter: nothing is known but the graph."""
        return self._unconverted(Places(), stage, "the rejected graph", failure.tosa, failure.message)

    def _unconverted(
        self, places: Places, stage: Stage, delegate: str, tosa: bytes, message: str
    ) -> Attribution | None:
        graph = read_graph(tosa)

        def refused(part: TosaGraph) -> bool:
            try:
                self._convert(write_graph(part))
            except Refusal:
                return True
            return False

        prefix = first_failing(graph, refused)
        if prefix is None:
            return None
        found = _Found(delegate, graph, prefix.position, message)
        return self._named(places, stage, found, Lowered(write_graph(prefix.graph)))

    def _static(self, asked: _Subject, stage: Stage) -> Attribution | None:
        """The operator at a boundary that is not what the program says, or that is not written."""
        calls = walk_program(asked.artifact, asked.inputs, self._reference).calls
        for number, delegate in enumerate(asked.artifact.delegates):
            graph = read_graph(delegate.tosa)
            problems = _problems(asked.artifact, number, graph, stage, calls)
            problem = next((item for item in problems if item.stage is stage), None)
            if problem is not None:
                found = _Found(delegate.name, graph, _at_boundary(graph, problem.tensor), problem.message)
                return self._named(asked.places, stage, found, Lowered(delegate.tosa))
        return None

    def _named(self, places: Places, stage: Stage, found: _Found, shown: Lowered) -> Attribution:
        """An operator for which numbers say nothing."""
        operator = found.graph.operators[found.position]
        folder = self._below(operator, found.position)
        if folder is not None:
            write_lowered(shown, folder, operator.name, found.message)
        return Attribution(
            stage,
            found.delegate,
            operator,
            found.position,
            places.of_operator(operator),
            "holds for every graph",
            found.message,
            _became(places, found.graph, found.position),
            folder,
        )

    def _device(self, asked: _Subject) -> Attribution | None:
        walk = walk_program(asked.artifact, asked.inputs, self._target)
        if walk.unanswered is not None:
            delegate = walk.unanswered.delegate
            culprit = self._bisection(asked, walk.unanswered).culprit()
            return None if culprit is None else self._of_culprit(asked, culprit, delegate)
        for call in walk.calls:
            fault = self._fault(asked, call)
            if fault is not None:
                culprit = self._culprit(asked, call, fault)
                return self._of_culprit(asked, culprit, call.delegate)
        return None

    def _fault(self, asked: _Subject, call: Call) -> _Fault | None:
        """The first output of a call that is wrong."""
        graph = read_graph(asked.artifact.delegates[call.delegate].tosa)
        number = next(iter([*call.outputs.unwritten, *call.outputs.unrepeatable]), None)
        if number is not None:
            finding, text = next(call.outputs.faults())
            return _Fault(number, TargetFailure(Verdict.FAIL, Stage.RUN, finding, text))
        self._reference.load(asked.artifact.delegates)
        reference: list[Array] = self._reference.run(call.delegate, call.inputs).arrays
        judged = judge_device(
            graph, call.inputs, call.outputs.arrays, reference, target=self._target.name, delegate=""
        )
        wrong = next((comparison for comparison in judged if not comparison.passed), None)
        return None if wrong is None else _Fault(wrong.output, wrong)

    def _culprit(self, asked: _Subject, call: Call, fault: _Fault) -> Culprit:
        bisection = self._bisection(asked, Asked(call.delegate, call.inputs))
        # Who should have written an output is known; it is not looked for in others.
        found = None if isinstance(fault.what, TargetFailure) else bisection.culprit()
        return found or bisection.behind(fault.output, call.outputs.arrays, fault.what)

    def _bisection(self, asked: _Subject, call: Asked) -> Bisection:
        return Bisection(
            asked.artifact.delegates[call.delegate],
            call.inputs,
            reference=self._reference,
            target=self._target,
            convert=self._convert,
        )

    def _of_culprit(self, asked: _Subject, culprit: Culprit, number: int) -> Attribution:
        folder = self._below(culprit.operator, culprit.position)
        if folder is not None:
            write_repro(culprit, folder, self._target.name, self._target.driver)
        delegate = asked.artifact.delegates[number]
        return Attribution(
            Stage.RUN,
            delegate.name,
            culprit.operator,
            culprit.position,
            asked.places.of_operator(culprit.operator),
            culprit.comparison.rule if culprit.comparison else "runs at all",
            f"{culprit.message} ({culprit.company.value})",
            _became(asked.places, read_graph(delegate.tosa), culprit.position),
            folder,
        )

    def _below(self, operator: TosaOperator, position: int) -> Path | None:
        return self._folder and self._folder / f"{operator.name.lower()}-{position}"


@dataclass(frozen=True)
class _Fault:
    """A delegate's output by number, and what is wrong with it."""

    output: int
    what: Comparison | TargetFailure


def _problems(
    artifact: Artifact, number: int, graph: TosaGraph, stage: Stage, calls: Sequence[Call]
) -> list[Problem]:
    delegate = artifact.delegates[number]
    problems = check_tosa(delegate, graph)
    if stage is Stage.CONVERT and number not in artifact.refusals:
        vgf = read_vgf(delegate.vgf)
        problems += check_vgf(delegate, graph, vgf)
        for call in calls:
            if call.delegate == number:
                problems += check_shared_outputs(delegate, vgf, call.outputs.arrays)
    return problems


def _at_boundary(graph: TosaGraph, tensor: str) -> int:
    """The operator that makes an output, or the first that reads an input; else the last that computes."""
    made = [at for at, operator in enumerate(graph.operators) if tensor in operator.outputs]
    read = [at for at, operator in enumerate(graph.operators) if tensor in operator.inputs]
    computing = [at for at, operator in enumerate(graph.operators) if operator.name not in CONSTANTS]
    return next(iter([*made, *read, *reversed(computing)]), 0)


def _became(places: Places, graph: TosaGraph, position: int) -> tuple[str, ...]:
    return tuple(_numbered(graph, at) for at in places.siblings(graph, position))


def _numbered(graph: TosaGraph, position: int) -> str:
    return f"{graph.operators[position].name} {position}"
