"""Carries a delegate's error bound out to the user's outputs, where only data movement lies between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import Program, Ref, Step, function, resolve

_DEQUANTISE = "quantized_decomposed.dequantize_per_tensor"


def is_direct(program: Program) -> bool:
    """Whether no delegate's inputs depend on another delegate: its bound is then the whole error.

    Not where there is control flow, which may take another way with other values.
    """
    tainted: set[str] = set()
    for step in program.steps:
        if step.nested:
            return False
        depends = bool(step.reads & tainted)
        if depends and step.delegate is not None:
            return False
        if depends or step.delegate is not None:
            tainted.add(step.name)
    return True


def output_errors(
    program: Program, delegates: Sequence[Delegate], errors: dict[int, list[torch.Tensor]]
) -> list[np.ndarray[Any, Any] | None]:
    """The bound at each user output, in its units; None where more than data movement lies between.

    ``errors`` holds, by delegate number, the bound of each of its outputs in logical shape.
    An output that no delegate contributes to has a bound of zero.
    """
    bounds: dict[str, Any] = {}
    opaque: set[str] = set()
    for step in program.steps:
        names = step.reads
        if step.delegate is not None:
            if step.delegate in errors:
                bounds[step.name] = errors[step.delegate]
            else:
                opaque.add(step.name)
        elif names & opaque:
            opaque.add(step.name)
        elif names & bounds.keys():
            moved = _moved(step, bounds)
            if moved is None:
                opaque.add(step.name)
            else:
                bounds[step.name] = moved
    return [_output_error(output, bounds, opaque) for output in program.outputs]


def _output_error(output: Any, bounds: dict[str, Any], opaque: set[str]) -> np.ndarray[Any, Any] | None:
    if not isinstance(output, Ref):
        return np.zeros(())
    if output.name in opaque:
        return None
    if output.name in bounds:
        array: np.ndarray[Any, Any] = bounds[output.name].numpy()
        return array
    return np.zeros(())


def _moved(step: Step, bounds: dict[str, Any]) -> Any | None:
    if step.operator.startswith(_DEQUANTISE):
        return bounds[step.args[0].name] * float(step.args[1])
    if not moves_data(step.operator) or step.reads - bounds.keys():
        return None
    keywords = {key: value for key, value in step.keywords.items() if key != "dtype"}
    return function(step.operator)(*resolve(step.args, bounds), **resolve(keywords, bounds))
