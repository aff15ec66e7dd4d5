"""The exported program against eager, before anything is lowered: export has faults of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.export import ExportedProgram

from vgf_conformance.comparison.metrics import same_class
from vgf_conformance.comparison.signal import noise_share
from vgf_conformance.evaluation.eager import copied, first_difference, leaves, run_eager_fp64, tensors
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.undefined import Undefined, Watch
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.causes import describe, whole
from vgf_conformance.lowering.program import NotRepresentable, Program, State, read_program
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.vocabulary import Finding, Stage, Verdict


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
    if len(defined) == len(eager) and first_difference(eager, defined):
        defined = _settled(defined, eager, subject)
    if difference := first_difference(eager, defined, "is {} in eager, {} as exported"):
        message = f"the exported program differs from eager: {difference}"
        raise LoweringFailure(Verdict.FAIL, Stage.EXPORT, Finding.WRONG, message)
    if undefined.is_everything:
        # A pass would say that something was compared.
        message = f"nothing to judge, choose other inputs: {'; '.join(undefined.notes())}"
        raise LoweringFailure(Verdict.ERROR, Stage.EXPORT, Finding.INPUT, message)
    return undefined


def _settled(
    given: Sequence[torch.Tensor], eager: Sequence[torch.Tensor], subject: Subject
) -> list[torch.Tensor]:
    """``given`` with the outputs that are as good as ``eager`` as they are there.

    Eager may take a fused kernel where the exported program has its parts (the fast path of attention, a
    GRU's weights laid out for it), and both round. Neither may have much more noise than the other, as
    for any two implementations (``comparison.signal``).
    """
    exact = run_eager_fp64(subject.module, subject.inputs, subject.before or ())
    precise = eager if exact is None else tensors(exact)
    # Zeros are told apart by their sign.
    return [
        torch.where(value != right, right, value) if _as_good(value, right, best) else value
        for value, right, best in zip(given, eager, precise, strict=True)
    ]


def _as_good(value: torch.Tensor, right: torch.Tensor, exact: torch.Tensor) -> bool:
    same_kind = (value.dtype, value.shape) == (right.dtype, right.shape)
    if not same_kind or not right.dtype.is_floating_point:
        return False
    ours, theirs, dtype = to_numpy(value), to_numpy(right), str(right.dtype).removeprefix("torch.")
    # Without a signal nothing is noise.
    noisy = not bool(exact.any()) or noise_share(ours, to_numpy(exact), theirs, dtype) > 1
    return not noisy and bool(same_class(ours, theirs).all())


def _walked(program: Program, subject: Subject, watch: Watch | None) -> list[torch.Tensor]:
    """The program's outputs; it writes to copies of buffers and inputs. Raises LoweringFailure."""
    try:
        own, state = program.with_own_constants(), State()
        for earlier in subject.before or ():
            own.walk(copied(leaves(earlier)), state=state)
        return tensors(own.walk(copied(leaves(subject.inputs)), after=watch, state=state))
    except Exception as error:
        if watch is not None:
            _walked(program, subject, None)
            raise  # the program runs: it was the watch
        message = f"the exported program raises on the sample's inputs: {describe(error)}"
        raise LoweringFailure(Verdict.FAIL, Stage.EXPORT, Finding.RAISED, message, whole(error)) from error
