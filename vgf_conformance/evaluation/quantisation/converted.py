"""Step ``convert`` of the quantise stage: the converted program against the prepared one, quantised exactly.

The prepared program is interpreted in fp64. Where an observer stands, each value is rounded to the nearest of
its codes, ties to even, and goes on as what the code stands for. Both programs then round every value alike,
but for those that lie so near to a tie that fp32 cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from vgf_conformance.comparison.lowering import outputs_count
from vgf_conformance.comparison.rewriting import judged_elements
from vgf_conformance.evaluation.quantisation.precise import run_in_fp64
from vgf_conformance.evaluation.ties import FLOAT_SHARE, TIE, tie_errors, walking
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.lowering.program import OBSERVED, Program, Step
from vgf_conformance.lowering.scheme import Parameters
from vgf_conformance.lowering.steps import Steps
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.results.record import Comparison
from vgf_conformance.vocabulary import Stage

PAIR = "quantised/prepared"
RULE = "ties propagated"


def judge_converted(
    calls: Sequence[Sequence[Any]],
    steps: Steps,
    quantised: Program,
    outputs: Sequence[torch.Tensor],
    undefined: Undefined,
) -> list[Comparison]:
    """Judge the ``outputs`` of the ``quantised`` program; nothing where the other one cannot run in fp64."""
    exact = run_in_fp64(steps.prepared, calls, after=_quantising(steps.parameters))
    if exact is None:
        return []
    if wrong := outputs_count(PAIR, Stage.QUANTISE, outputs, exact):
        return [wrong]
    exact = undefined.without(exact, outputs)
    pairs = [(to_numpy(one), to_numpy(other)) for one, other in zip(outputs, exact, strict=True)]
    if any(actual.shape != right.shape for actual, right in pairs):
        return []  # eager tells
    rounding = [_rounding(right) for _, right in pairs]
    near = [_near(*pair, error) for pair, error in zip(pairs, rounding, strict=True)]
    if not all(right.all() for right in near):
        ties = tie_errors(walking(quantised, calls), outputs, lambda _: TIE)
        errors = [one + other for one, other in zip(rounding, ties, strict=True)]
        near = [_near(*pair, error) for pair, error in zip(pairs, errors, strict=True)]
    return [
        judged_elements(PAIR, number, RULE, actual, expected, right, str(actual.dtype))
        for number, ((actual, expected), right) in enumerate(zip(pairs, near, strict=True))
    ]


def _quantising(parameters: dict[str, Parameters]) -> Any:
    def quantise(step: Step, args: tuple[Any, ...], result: Any) -> Any:
        found = parameters.get(args[1]) if step.operator == OBSERVED else None
        if found is None or not isinstance(result, torch.Tensor):
            return result
        return torch.from_numpy(np.asarray(found.nearest(to_numpy(result)))).to(result.dtype)

    return quantise


def _rounding(exact: Any) -> Any:
    """What fp32 adds after the last dequantisation, in the output's units."""
    if exact.dtype.kind != "f":
        return np.zeros(exact.shape)
    finite = np.abs(exact[np.isfinite(exact)])
    return np.full(exact.shape, FLOAT_SHARE * float(finite.max(initial=0.0)))


def _near(actual: Any, exact: Any, error: Any) -> Any:
    one, other = actual.astype(np.float64), exact.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= error)
