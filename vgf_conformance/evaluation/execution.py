"""A whole program in the ExecuTorch runtime, judged by its delegates on the same driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from vgf_conformance.comparison.lowering import Expected, judge_output, outputs_count, same_bits
from vgf_conformance.evaluation.ties import KERNEL_TIE, TIE, float_error, tie_errors
from vgf_conformance.evaluation.walk import walk_program
from vgf_conformance.formats.pte import read_executable
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import AfterStep, Ref, Step, reached_from
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.results.record import Comparison
from vgf_conformance.targets.base import Outputs, Target, TargetFailure
from vgf_conformance.targets.runtime import RuntimeTarget
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: Their kernels do one multiplication, which is the same everywhere, or round at a tie, which is looked at.
_EXACT = ("quantized_decomposed.quantize_per_tensor", "quantized_decomposed.dequantize_per_tensor")


@dataclass
class Execution:
    """One run of a program, up to its end or its failure; ``raw`` is what the target gave."""

    outputs: list[torch.Tensor] = field(default_factory=list)
    raw: Outputs | None = None
    failure: TargetFailure | None = None


def execute_program(artifact: Artifact, inputs: Sequence[Any], target: RuntimeTarget) -> Execution:
    """Execute the artifact's .pte on flattened ``inputs``."""
    values = [to_numpy(value) if isinstance(value, torch.Tensor) else value for value in inputs]
    try:
        raw = target.execute(read_executable(artifact.pte), values)
    except TargetFailure as failure:
        return Execution(failure=failure)
    except ValueError as error:
        return Execution(
            failure=TargetFailure(Verdict.FAIL, Stage.LOWER, Finding.INVALID, f"the program: {error}")
        )
    # Inputs that the program writes to come before its outputs.
    outputs = raw.arrays[artifact.program.written_inputs :]
    return Execution([from_numpy(array) for array in outputs], raw)


def judge_execution(
    artifact: Artifact,
    inputs: Sequence[Any],
    actual: Sequence[torch.Tensor],
    walked: Sequence[torch.Tensor],
    peer: Target,
) -> list[Comparison]:
    """The runtime's outputs against ``walked``, those of ``peer`` on the same VGFs.

    They must be equal bit for bit, but for two liberties of the runtime's own kernels: a value that they
    quantise may round the other way where it lies at a tie, and operators outside the delegates that compute
    are held, in what they reach, to the noise that eager itself is held to. Raises TargetFailure where
    ``peer`` does not run the program with such values rounded the other way.
    """
    pair = f"runtime/{peer.name}"
    if wrong := outputs_count(pair, Stage.RUN, actual, walked):
        comparisons = [wrong]
    else:
        liberties = _liberties(artifact, inputs, actual, walked, peer)
        comparisons = [
            judge_output(
                number,
                to_numpy(output),
                Expected(
                    pair,
                    to_numpy(right),
                    to_numpy(right),
                    liberty.error,
                    scale,
                    artifact.quantised is not None,
                    bits=liberty.bits,
                ),
            )
            for number, (output, right, liberty, scale) in enumerate(
                zip(actual, walked, liberties, artifact.output_scales, strict=True)
            )
        ]
    for comparison in comparisons:
        comparison.stage = Stage.RUN
        if not comparison.passed:
            what = f"the runtime differs from {peer.name} on the same VGFs"
            comparison.message = f"{what}: {comparison.message}"
    return comparisons


@dataclass(frozen=True)
class _Liberty:
    """What an output may differ by: ``error`` in its units, None for noise; bit for bit where that is 0."""

    error: np.ndarray[Any, Any] | None
    bits: bool


def _liberties(
    artifact: Artifact,
    inputs: Sequence[Any],
    actual: Sequence[torch.Tensor],
    walked: Sequence[torch.Tensor],
    peer: Target,
) -> list[_Liberty]:
    program = artifact.program
    reached = reached_from(program, _computes)
    computed = [isinstance(output, Ref) and output.name in reached for output in program.outputs]
    if artifact.quantised is None:
        return [_Liberty(None, bits=not noisy) for noisy in computed]

    def walk(after: AfterStep | None) -> Sequence[torch.Tensor]:
        done = walk_program(artifact, inputs, peer, after)
        if done.failure is not None:
            raise done.failure
        return done.outputs

    errors = [np.zeros(tuple(right.shape)) for right in walked]
    if not all(map(_same, actual, walked)):
        errors = tie_errors(walk, walked, lambda _: TIE if reached else KERNEL_TIE)
    return [
        _Liberty(error + float_error(right), bits=False) if noisy else _Liberty(error, bits=True)
        for error, right, noisy in zip(errors, walked, computed, strict=True)
    ]


def _same(actual: torch.Tensor, right: torch.Tensor) -> bool:
    one, other = to_numpy(actual), to_numpy(right)
    return one.dtype == other.dtype and one.shape == other.shape and bool(same_bits(one, other).all())


def _computes(step: Step) -> bool:
    """Whether a kernel of the runtime's may give other numbers than PyTorch's.

    Control flow computes nothing itself: what its branches hold counts.
    """
    if step.delegate is not None:
        return False
    if step.operator.startswith("higher_order."):
        return any(_computes(inner) for program in step.nested for inner in program.all_steps)
    return not (step.operator.startswith(_EXACT) or moves_data(step.operator))
