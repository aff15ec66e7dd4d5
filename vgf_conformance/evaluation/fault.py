"""One thing found wrong with a subject on a target."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: The converter's verifiers on an operator that TOSA does not have in this form (types, ranks, attributes).
_ILLEGAL_OPERATOR = re.compile(r"'tosa\.\w+' op |'spirv\.Tosa\.\w+' op failed to verify")


@dataclass(frozen=True)
class Fault:
    """What was found, where (None: in the harness itself), and the last words of whoever found it."""

    verdict: Verdict
    stage: Stage | None
    finding: Finding
    message: str
    log: str = ""


def of_target(failure: TargetFailure) -> Fault:
    """The fault that ended a run on a target."""
    return Fault(failure.verdict, failure.stage, failure.finding, failure.message, failure.log)


def of_lowering(failure: LoweringFailure, rejected: Path | None = None) -> Fault:
    """The fault that ended lowering; ``rejected`` is where the graph that the converter rejects was kept.

    A graph that the converter rejects because an operator has no such form in TOSA was
    wrong before it got there: that is the lowering's fault, not the converter's.
    """
    log = failure.log
    if rejected is not None:
        log = f"reproduce: model-converter -i {shlex.quote(str(rejected))} -o rejected.vgf\n\n{log}"
    if failure.stage is Stage.CONVERT and _ILLEGAL_OPERATOR.search(failure.log):
        return Fault(failure.verdict, Stage.LOWER, Finding.INVALID, failure.message, log)
    return Fault(failure.verdict, failure.stage, failure.finding, failure.message, log)
