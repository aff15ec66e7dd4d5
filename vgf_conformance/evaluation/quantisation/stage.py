"""The quantise stage of one subject, judged step by step; the first wrong step is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from vgf_conformance.evaluation.quantisation.converted import judge_converted
from vgf_conformance.evaluation.quantisation.passes import Change, first_change, origin_of
from vgf_conformance.evaluation.quantisation.prepared import Identity
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.causes import describe
from vgf_conformance.lowering.edges import Problem
from vgf_conformance.lowering.lower import Request
from vgf_conformance.lowering.program import Program
from vgf_conformance.lowering.steps import Steps
from vgf_conformance.quiet import quiet
from vgf_conformance.results.record import Comparison, QuantiseFault


@dataclass
class Judgement:
    """What was compared, and the fault where something is wrong."""

    comparisons: list[Comparison] = field(default_factory=list)
    fault: QuantiseFault | None = None

    @property
    def message(self) -> str:
        """The fault with its step, for a record; empty where nothing is wrong."""
        if self.fault is None:
            return ""
        named = self.fault.step != "prepare" and self.fault.tensor
        return f"{self.fault.step}: {self.fault.tensor + ': ' if named else ''}{self.fault.message}"


@dataclass(frozen=True)
class Quantised:
    """The quantised program with its outputs on a sample."""

    program: Program
    outputs: Sequence[torch.Tensor]


@dataclass
class QuantiseFailure(LoweringFailure):
    """Lowering ended early, and what was quantised before that is wrong already."""

    judgement: Judgement = field(default_factory=Judgement)


def judge_quantise(
    subject: Subject,
    request: Request,
    steps: Steps | None,
    eager: Sequence[torch.Tensor],
    undefined: Undefined,
    quantised: Quantised | None = None,
) -> Judgement:
    """Judge the ``steps`` by which ``request`` was quantised, on ``subject``'s sample; None: it was not.

    What is ``undefined`` of the outputs is not judged. ``quantised`` is what came of the steps, where that
    can be run.
    """
    if steps is None:
        return Judgement()
    identity = Identity(subject, eager, undefined)
    comparisons = identity.judge(steps.prepared)
    wrong = next((item for item in comparisons if not item.passed), None)
    fault = None if wrong is None else _prepare_fault(wrong, _change(subject, request, identity))
    if quantised is not None:
        converted = judge_converted(identity.calls, steps, quantised.program, quantised.outputs, undefined)
        comparisons += converted
        wrong = wrong or next((item for item in converted if not item.passed), None)
    if fault is None:
        fault = next(map(_fault_of, steps.problems), None)
    if fault is None and wrong is not None:
        fault = QuantiseFault("convert", "", "", "", wrong.message)
    return Judgement(comparisons, fault)


def _fault_of(problem: Problem) -> QuantiseFault:
    origin = origin_of(problem.place)
    return QuantiseFault(problem.step, problem.tensor, str(origin), "", problem.message)


def _prepare_fault(wrong: Comparison, change: Change | None) -> QuantiseFault:
    known = change or Change("", "", None)
    return QuantiseFault(
        step="prepare",
        tensor=known.node,
        origin=str(known.origin or ""),
        cause=known.cause,
        message=wrong.message,
    )


def _change(subject: Subject, request: Request, identity: Identity) -> Change | None:
    """The pass and the node to blame; None where the search finds none, or cannot be made."""

    def is_right(program: Program) -> bool:
        return all(item.passed for item in identity.judge(program))

    try:
        with quiet():
            return first_change(request, identity.calls, is_right)
    except Exception as error:  # the verdict stands without it
        return Change(f"a pass that was not found ({describe(error)})", "", None)
