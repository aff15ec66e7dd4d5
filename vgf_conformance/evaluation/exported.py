"""The exported program against eager, before anything is lowered: export has faults of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.export import ExportedProgram

from vgf_conformance.evaluation.eager import copied, first_difference, leaves, tensors
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.undefined import Undefined, Watch
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.causes import describe, whole
from vgf_conformance.lowering.program import NotRepresentable, Program, read_program
from vgf_conformance.vocabulary import Finding, Stage, Verdict


def check_export(exported: ExportedProgram, subject: Subject, eager: Sequence[torch.Tensor]) -> Undefined:
    """Hold ``exported`` against ``eager`` on the subject's inputs, and return what is undefined of them.

    Raises LoweringFailure where a defined element differs, or the program raises.
    """
    try:
        program, _ = read_program(exported)
    except NotRepresentable:
        return Undefined()  # lowering says that it cannot be walked, and why
    watch = Watch()
    given = _walked(program, subject, watch)
    undefined = watch.found(program, given)
    if difference := first_difference(
        eager, undefined.without(given, eager), "is {} in eager, {} as exported"
    ):
        message = f"the exported program differs from eager: {difference}"
        raise LoweringFailure(Verdict.FAIL, Stage.EXPORT, Finding.WRONG, message)
    return undefined


def _walked(program: Program, subject: Subject, watch: Watch | None) -> list[torch.Tensor]:
    """The program's outputs; it writes to copies of buffers and inputs. Raises LoweringFailure."""
    try:
        return tensors(program.with_own_constants().walk(copied(leaves(subject.inputs)), after=watch))
    except Exception as error:
        if watch is not None:
            _walked(program, subject, None)
            raise  # the program runs: it was the watch
        message = f"the exported program raises on the sample's inputs: {describe(error)}"
        raise LoweringFailure(Verdict.FAIL, Stage.EXPORT, Finding.RAISED, message, whole(error)) from error
