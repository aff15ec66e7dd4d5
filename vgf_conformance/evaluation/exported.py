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
from vgf_conformance.lowering.program import NotRepresentable, read_program
from vgf_conformance.vocabulary import Finding, Stage, Verdict


def check_export(exported: ExportedProgram, subject: Subject, eager: Sequence[torch.Tensor]) -> Undefined:
    """Hold ``exported`` against ``eager`` on the subject's inputs, and return what is undefined of them.

    Raises LoweringFailure where a defined element differs, or the program raises.
    """
    try:
        program, _ = read_program(exported)
    except NotRepresentable:
        return Undefined()  # it has control flow, of which lowering says that it cannot be walked
    watch = Watch()
    try:
        # The program writes to buffers and inputs as the module does.
        given = tensors(program.with_own_constants().walk(copied(leaves(subject.inputs)), after=watch))
    except Exception as error:
        message = f"the exported program raises on the sample's inputs: {describe(error)}"
        raise LoweringFailure(Verdict.FAIL, Stage.EXPORT, Finding.RAISED, message, whole(error)) from error
    undefined = watch.found(program)
    if difference := first_difference(
        eager, undefined.without(given, eager), "is {} in eager, {} as exported"
    ):
        message = f"the exported program differs from eager: {difference}"
        raise LoweringFailure(Verdict.FAIL, Stage.EXPORT, Finding.WRONG, message)
    return undefined
