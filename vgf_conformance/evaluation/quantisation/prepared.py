"""Step ``prepare`` of the quantise stage: a program rewritten for annotation computes what the model does."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from vgf_conformance.comparison.lowering import outputs_count
from vgf_conformance.comparison.rewriting import judge_rewritten
from vgf_conformance.evaluation.eager import is_floating, leaves, run_eager_fp64, tensors
from vgf_conformance.evaluation.quantisation.precise import run_in_fp64, walk_in_sequence
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.lowering.program import Program
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.results.record import Comparison
from vgf_conformance.vocabulary import Stage

PAIR = "prepared/eager"

#: What rounding in fp64 may leave of a result that is 0, as a share of the largest input: 256 ULP.
_FP64_SHARE = 2.0**-44


class Identity:
    """What a rewritten program of ``subject`` should give: eager's outputs, in fp64 where that can be."""

    def __init__(self, subject: Subject, eager: Sequence[torch.Tensor], undefined: Undefined) -> None:
        before = subject.before or ()
        self.calls = [leaves(inputs) for inputs in (*before, subject.inputs)]
        self._eager, self._undefined = eager, undefined
        precise = run_eager_fp64(subject.module, subject.inputs, before)
        self._slack = _FP64_SHARE * _largest(self.calls)
        self._precise = None if precise is None else tensors(precise)

    def judge(self, program: Program) -> list[Comparison]:
        """Run ``program`` on the subject's inputs, and judge each output at the stage ``quantise``."""
        outputs, exact = self._run(program)
        if wrong := outputs_count(PAIR, Stage.QUANTISE, outputs, exact):
            return [wrong]
        outputs = self._undefined.without(outputs, exact)
        return [
            judge_rewritten(PAIR, number, to_numpy(actual), to_numpy(right), to_numpy(native), self._slack)
            for number, (actual, right, native) in enumerate(zip(outputs, exact, self._eager, strict=True))
        ]

    def _run(self, program: Program) -> tuple[list[torch.Tensor], Sequence[torch.Tensor]]:
        """The outputs and what they should be; in the program's own dtypes where it has no form in fp64."""
        outputs = None if self._precise is None else run_in_fp64(program, self.calls)
        if outputs is not None and self._precise is not None:
            return outputs, self._precise
        own = replace(program, constants=copy.deepcopy(program.constants))
        return tensors(walk_in_sequence(own, copy.deepcopy(self.calls))), self._eager


def _largest(calls: Sequence[Sequence[Any]]) -> float:
    """The largest finite magnitude among floating-point inputs; 0 without one."""
    values = [value.double().abs() for inputs in calls for value in inputs if is_floating(value)]
    return max(
        (float(value[value.isfinite()].max()) for value in values if value.isfinite().any()), default=0.0
    )
