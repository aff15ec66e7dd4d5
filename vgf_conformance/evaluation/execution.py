"""A whole program in the ExecuTorch runtime, judged by its delegates on the same driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from vgf_conformance.comparison.lowering import Expected, judge_output, outputs_count
from vgf_conformance.evaluation.ties import tie_errors
from vgf_conformance.formats.pte import read_executable
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.results.record import Comparison
from vgf_conformance.targets.base import Outputs, TargetFailure
from vgf_conformance.targets.runtime import RuntimeTarget
from vgf_conformance.vocabulary import Finding, Stage, Verdict


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
    return Execution([from_numpy(array) for array in raw.arrays], raw)


def judge_execution(
    artifact: Artifact,
    inputs: Sequence[Any],
    actual: Sequence[torch.Tensor],
    walked: Sequence[torch.Tensor],
    peer: str,
) -> list[Comparison]:
    """The runtime's outputs against ``walked``, those of ``peer`` on the same VGFs.

    They must be equal bit for bit, but for two liberties: a value that the program quantises outside its
    delegates may round the other way where it lies at a tie, and floating-point operators outside the
    delegates are kernels of another make, held to the noise that eager itself is held to.
    """
    pair = f"runtime/{peer}"
    if wrong := outputs_count(pair, Stage.RUN, actual, walked):
        comparisons = [wrong]
    else:
        errors = _liberties(artifact, inputs, walked)
        comparisons = [
            judge_output(
                number,
                to_numpy(output),
                Expected(
                    pair, to_numpy(right), to_numpy(right), error, scale, artifact.quantised is not None
                ),
            )
            for number, (output, right, error, scale) in enumerate(
                zip(actual, walked, errors, artifact.output_scales, strict=True)
            )
        ]
    for comparison in comparisons:
        comparison.stage = Stage.RUN
        if not comparison.passed:
            comparison.message = f"the runtime differs from {peer} on the same VGFs: {comparison.message}"
    return comparisons


def _liberties(
    artifact: Artifact, inputs: Sequence[Any], walked: Sequence[torch.Tensor]
) -> list[np.ndarray[Any, Any] | None]:
    if artifact.quantised is not None:
        return list(tie_errors(artifact.quantised, inputs))
    # Control flow computes nothing itself: what its branches hold is listed beside it.
    leftovers = [
        node.operator for node in artifact.leftovers if not node.operator.startswith("higher_order.")
    ]
    if not all(map(moves_data, leftovers)):
        return [None] * len(walked)
    return [np.zeros(tuple(output.shape)) for output in walked]
