"""A program in fp64: what it computes without the rounding of its own dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from vgf_conformance.evaluation.eager import NO_FP64, tensors
from vgf_conformance.lowering.program import AfterStep, Program


def run_in_fp64(
    program: Program, calls: Sequence[Sequence[Any]], after: AfterStep | None = None
) -> list[torch.Tensor] | None:
    """The outputs of the last of ``calls``, computed in fp64; None where an operator has no form in it.

    ``after`` is as Program.walk takes it. A prepared program keeps its state in constants, so that each call
    leaves it to the next. Raises EagerFailure for an output that is neither tensor nor number.
    """
    try:
        return tensors(walk_in_sequence(in_fp64(program), in_fp64(list(calls)), after))
    except NO_FP64:
        return None


def walk_in_sequence(program: Program, calls: Sequence[Sequence[Any]], after: AfterStep | None = None) -> Any:
    """What the last of ``calls`` gives; ``program`` and inputs may be written to."""
    for inputs in calls[:-1]:
        program.walk(inputs, after=after)
    return program.walk(calls[-1], after=after)


def in_fp64(value: Any) -> Any:
    """``value`` with copies of the tensors in it, those of floating-point numbers in fp64."""
    if isinstance(value, torch.Tensor):
        return value.to(torch.float64 if value.is_floating_point() else value.dtype, copy=True)
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else value
    if isinstance(value, Program):
        steps = tuple(
            replace(step, args=in_fp64(step.args), keywords=in_fp64(step.keywords)) for step in value.steps
        )
        return replace(value, constants=_constants(value), steps=steps)
    if isinstance(value, tuple):
        return tuple(in_fp64(item) for item in value)
    if isinstance(value, list):
        return [in_fp64(item) for item in value]
    if isinstance(value, dict):
        return {key: in_fp64(item) for key, item in value.items()}
    return value


def _constants(program: Program) -> dict[str, Any]:
    """Copies of the constants; those that are one tensor stay one."""
    copies = {id(value): in_fp64(value) for value in program.constants.values()}
    return {name: copies[id(value)] for name, value in program.constants.items()}
