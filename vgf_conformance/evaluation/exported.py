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

#: Eager may take a fused kernel where the exported program has its parts (the fast path of attention, a GRU's
#: weights laid out for it). One of 1,846 samples differed, by 1.5 ULP of the tensor's largest element; of 11
#: modules written to provoke it five did, by 2.1 at most. The rest is room for depth.
_KERNEL_ULP = 16


def check_export(exported: ExportedProgram, subject: Subject, eager: Sequence[torch.Tensor]) -> Undefined:
    """Hold ``exported`` against ``eager`` on the subject's inputs, and return what is undefined of them.

    Raises LoweringFailure where a defined element differs, the program raises, or nothing is defined.
    """
    try:
        program, _ = read_program(exported)
    except NotRepresentable:
        return Undefined()  # lowering says that it cannot be walked, and why
    watch = Watch()
    given = _walked(program, subject, watch)
    undefined = watch.found(program, given)
    defined = undefined.without(given, eager)
    if len(defined) == len(eager):
        defined = [_settled(one, right) for one, right in zip(defined, eager, strict=True)]
    if difference := first_difference(eager, defined, "is {} in eager, {} as exported"):
        message = f"the exported program differs from eager: {difference}"
        raise LoweringFailure(Verdict.FAIL, Stage.EXPORT, Finding.WRONG, message)
    if undefined.is_everything:
        # A pass would say that something was compared.
        message = f"nothing to judge, choose other inputs: {'; '.join(undefined.notes())}"
        raise LoweringFailure(Verdict.ERROR, Stage.EXPORT, Finding.INPUT, message)
    return undefined


def _settled(value: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """``value`` with the elements that only a kernel's rounding tells from ``right`` as they are there."""
    same_kind = (value.dtype, value.shape) == (right.dtype, right.shape)
    if not same_kind or not right.dtype.is_floating_point or torch.equal(value, right):
        return value
    sizes = right.double().abs()
    largest = sizes[sizes.isfinite()].max() if bool(sizes.isfinite().any()) else sizes.new_zeros(())
    near = (value.double() - right.double()).abs() <= _KERNEL_ULP * torch.finfo(right.dtype).eps * largest
    # Zeros are told apart by their sign.
    return torch.where(near & (value != right), right, value)


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
