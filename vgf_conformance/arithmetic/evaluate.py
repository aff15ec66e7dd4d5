"""One property of one type on one target: asked of every operator that shows it, into a record."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.arithmetic.declare import Property, Typed
from vgf_conformance.arithmetic.probe import Answer, Probe
from vgf_conformance.attribution.cut import as_delegate
from vgf_conformance.formats.convert import Refusal, convert
from vgf_conformance.results.facts import delegate_facts
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import OnTargets, TargetFailure
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Finding, Stage, Verdict


class ArithmeticEvaluator(OnTargets):
    """Evaluates properties on named targets."""

    def evaluate(self, asked: Property, typed: Typed, target: str) -> Record:
        """Ask every operator; the answers are the record's notes, and what TOSA forbids its failure."""
        record = Record(
            id=f"{asked.file}::{asked.name}[{typed.name}-{typed.profile}-none-{target}]",
            case=asked.name,
            sample=typed.name,
            kind="arithmetic",
            suite=asked.file,
            profile=typed.profile,
            scheme="none",
            target=target,
            verdict=Verdict.PASS,
            file=asked.file,
            tier=asked.tier_of(typed),
            driver=self._targets[target].driver,
        )
        start = time.perf_counter()
        try:
            answers = [(item.operator, self._ask(record, item)) for item in asked.probes(typed.name)]
        except TargetFailure as failure:
            record.verdict, record.stage, record.finding = failure.verdict, failure.stage, failure.finding
            record.message, record.log = failure.message, failure.log
            return record
        except Refusal as refusal:
            record.verdict, record.stage, record.finding = refusal.verdict, Stage.CONVERT, refusal.finding
            record.message, record.log = refusal.message, refusal.log
            return record
        finally:
            record.seconds["run"] = time.perf_counter() - start
        record.notes = _summary(answers)
        record.message = _fault(asked, answers, record.notes)
        if record.message:
            record.verdict, record.stage, record.finding = Verdict.FAIL, Stage.RUN, Finding.WRONG
        return record

    def _ask(self, record: Record, item: Probe) -> Answer:
        """Raises TargetFailure where the target does not run the graph, Refusal where it has no VGF."""
        target = self._targets[record.target]
        values = dict(zip(item.graph.inputs, item.inputs, strict=True))
        delegate = (
            as_delegate(item.graph, values)
            if record.target == "reference"
            else as_delegate(item.graph, values, convert)
        )
        record.delegates.append(delegate_facts(item.operator, 0, item.graph, delegate.tosa, delegate.vgf))
        target.load((delegate,))
        outputs = target.run(0, list(item.inputs))
        record.worker_bytes = outputs.worker_bytes
        for _, text in outputs.faults():
            return Answer(text, wrong=True)
        return item.answer(outputs.arrays[0])


def _summary(answers: Sequence[tuple[str, Answer]]) -> list[str]:
    operators: dict[str, dict[str, None]] = defaultdict(dict)
    for operator, answer in answers:
        operators[answer.text][operator] = None
    return [f"{text}: {', '.join(names)}" for text, names in operators.items()]


def _fault(asked: Property, answers: Sequence[tuple[str, Answer]], summary: list[str]) -> str:
    wrong = [f"{operator}: {answer.text}" for operator, answer in answers if answer.wrong]
    if wrong:
        return "; ".join(wrong)
    if asked.alike and len(summary) > 1:
        return f"not alike everywhere: {'; '.join(summary)}"
    return ""


def open_arithmetic_evaluator(
    targets: Sequence[str], choice: DriverChoice, folder: Path, time_limit: float
) -> ArithmeticEvaluator:
    """An evaluator as ``evaluation.session.open_evaluator`` gives one, for properties."""
    return ArithmeticEvaluator(open_targets(targets, choice, folder, time_limit))
