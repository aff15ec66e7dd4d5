"""Names the operator that is to blame where a program goes wrong: inside a delegate, or in the lowering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.export import ExportedProgram

from vgf_conformance.attribution.bisect import Bisection, Culprit
from vgf_conformance.attribution.origin import Origin, origin, source_line
from vgf_conformance.attribution.repro import write_repro
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.evaluation.divergence import Divergence, first_divergence
from vgf_conformance.evaluation.eager import leaves
from vgf_conformance.evaluation.subject import Subject, request_of
from vgf_conformance.evaluation.walk import Call, walk_program
from vgf_conformance.formats.tosa import TosaOperator, read_graph
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.lowering.program import read_program
from vgf_conformance.results.record import FirstWrong
from vgf_conformance.targets.base import Array, Target
from vgf_conformance.vocabulary import Profile, Stage


@dataclass(frozen=True)
class Attribution:
    """The first operator to blame: a TOSA operator (its position in the delegate's graph) and its origin.

    ``stage`` is run where the target computes it wrongly, lower where the graph does not say what the
    PyTorch program does. ``repro`` is the folder that shows it, None at lower.
    """

    stage: Stage
    delegate: str
    operator: TosaOperator
    position: int
    origin: Origin
    rule: str
    message: str
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
        )

    def __str__(self) -> str:
        place = f"number {self.position} of {self.delegate}"
        lines = [
            f"{self.stage.value}: {self.operator.name} is the first wrong operator ({place})",
            f"  from {self.origin}",
            f"  {self.message}; judged by: {self.rule}",
        ]
        return "\n".join([*lines, *([f"  shown by {self.repro}"] if self.repro else [])])


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
        self, subject: Subject, profile: Profile, scheme: str, stage: Stage | None = None
    ) -> Attribution | None:
        """The first operator to blame, lowering before target; None where all are right.

        ``stage`` (lower or run) is where it is known to be.

        Raises LoweringFailure, and TargetFailure where the reference model refuses a graph.
        """
        artifact = lower(request_of(subject, profile, scheme, located=True), self._cache)
        exported = torch.export.export(subject.module, subject.example, dynamic_shapes=subject.dynamic_shapes)
        lines = _source_lines(exported)
        found = None if stage is Stage.RUN else self._lowering(subject, artifact, exported, lines)
        return found if found or stage is Stage.LOWER else self._device(subject, artifact, lines)

    def _lowering(
        self, subject: Subject, artifact: Artifact, exported: ExportedProgram, lines: Mapping[str, str]
    ) -> Attribution | None:
        inputs = leaves(subject.inputs)
        walk = walk_program(artifact, inputs, self._reference)
        if walk.failure is not None:
            raise walk.failure
        program = artifact.quantised
        if program is None:
            program, _ = read_program(exported)
        outermost = {step.delegate for step in artifact.program.steps}
        calls = [call for call in walk.calls if call.delegate in outermost]
        found = first_divergence(program, inputs, artifact.delegates, calls, self._reference)
        return None if found is None else _of_divergence(found, lines)

    def _device(self, subject: Subject, artifact: Artifact, lines: Mapping[str, str]) -> Attribution | None:
        walk = walk_program(artifact, leaves(subject.inputs), self._target)
        calls = walk.calls
        if walk.failure is not None and not calls:
            # The target gave nothing at all: the reference says what the first delegate is given.
            calls = walk_program(artifact, leaves(subject.inputs), self._reference).calls[:1]
        for call in calls:
            if walk.failure is None and self._right(artifact, call):
                continue
            delegate = artifact.delegates[call.delegate]
            culprit = Bisection(
                delegate,
                call.inputs,
                reference=self._reference,
                target=self._target,
                convert=self._convert,
            ).culprit()
            if culprit is not None:
                return self._of_culprit(culprit, delegate.name, lines)
        return None

    def _right(self, artifact: Artifact, call: Call) -> bool:
        self._reference.load(artifact.delegates)
        reference: list[Array] = self._reference.run(call.delegate, call.inputs).arrays
        graph = read_graph(artifact.delegates[call.delegate].tosa)
        judged = judge_device(
            graph, call.inputs, call.outputs.arrays, reference, target=self._target.name, delegate=""
        )
        return all(comparison.passed for comparison in judged)

    def _of_culprit(self, culprit: Culprit, delegate: str, lines: Mapping[str, str]) -> Attribution:
        folder = self._folder
        if folder is not None:
            folder = folder / f"{culprit.operator.name.lower()}-{culprit.position}"
            write_repro(culprit, folder, self._target.name, self._target.driver)
        rule = culprit.comparison.rule if culprit.comparison else "runs at all"
        message = f"{culprit.message} ({culprit.company.value})"
        place = _placed(origin(culprit.operator), lines)
        return Attribution(
            Stage.RUN, delegate, culprit.operator, culprit.position, place, rule, message, folder
        )


def _of_divergence(found: Divergence, lines: Mapping[str, str]) -> Attribution:
    made = found.made
    rule = "1 LSB" if found.step.operator.startswith("quantized_decomposed") else "as the PyTorch operator"
    place = _placed(origin(made.operator), lines)
    return Attribution(Stage.LOWER, made.delegate, made.operator, made.position, place, rule, found.message)


def _placed(found: Origin, lines: Mapping[str, str]) -> Origin:
    """The origin with the user's line, which the backend's own passes lose, from the exported program."""
    if found.source:
        return found
    line = next((lines[node] for node in reversed(found.nodes) if node in lines), "")
    return Origin(found.nodes, found.operator, found.module, found.kind, line)


def _source_lines(exported: ExportedProgram) -> dict[str, str]:
    found = {node.name: source_line(node.meta.get("stack_trace") or "") for node in exported.graph.nodes}
    return {name: line for name, line in found.items() if line}
