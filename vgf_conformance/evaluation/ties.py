"""What a lowered quantised program may differ by: roundings so near to a tie that they may go either way.

PyTorch runs a quantised program in fp32 (dequantise, compute, quantise); TOSA runs it in integers with
scales of 31 bits. Both must round every value to the same integer, except where it lies within fp32's own
error of a tie, or within what TOSA's operators round before (``evaluation.windows``). So the quantised
program is run again for each quantisation that has such values, with these rounded the other way, and what
that does to the user's outputs is what the lowering may differ by: 1 LSB per requantisation, propagated
exactly, and only where it can happen. An output whose own quantisation has no known window may be off by
1 LSB anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from vgf_conformance.evaluation.eager import tensors
from vgf_conformance.evaluation.windows import QUANTISE, Window, Windows
from vgf_conformance.lowering.program import AfterStep, Program, State, Step
from vgf_conformance.lowering.tensors import to_numpy

#: Runs a program on its inputs and returns the user's outputs; the function given sees each step.
Walk = Callable[[AfterStep | None], Sequence[torch.Tensor]]
#: How near to a tie fp32 may err, as a share of the value in LSB: 2^-24 a step, over up to about 2^10
#: accumulated terms.
TIE = Window(share=2.0**-14)
#: The same for a kernel that quantises a value that is known exactly: the scale rounds, so do its reciprocal
#: and the product (2^-24 each).
KERNEL_TIE = Window(share=2.0**-22)
#: Outputs computed in floating point after the last dequantisation carry fp32's own rounding too: 64 ULP of
#: the tensor's largest element.
FLOAT_SHARE = 2.0**-18


def quantised_errors(
    program: Program,
    calls: Sequence[Sequence[Any]],
    scales: Sequence[float | None],
    buffers: Sequence[str] = (),
) -> list[np.ndarray[Any, Any]]:
    """What the lowered program may differ by: for each user output, then each of ``buffers``, in its units.

    The last of ``calls`` counts: those before it only leave their buffers. ``scales`` are the quantisation
    steps, None where there is none.
    """
    windows = Windows(program)
    outputs = [*program.outputs, *(program.writes.get(name) for name in buffers)]
    walk = walking(program, calls, buffers)
    right = walk(None)
    ties = tie_errors(walk, right, lambda name: TIE + (windows.of(name) or Window()))
    requantises = _requantises(program)
    return [
        np.maximum(error + float_error(value), _own_error(windows, output, scale) if requantises else 0.0)
        for error, value, output, scale in zip(ties, right, outputs, scales, strict=True)
    ]


def _own_error(windows: Windows, output: object, scale: float | None) -> float:
    """One step, where nothing is known of the window in which the output's own quantisation may err."""
    name = windows.quantisation_of(output)
    known = scale is None or (name is not None and windows.of(name) is not None)
    return 0.0 if known else float(scale or 0.0)


def walking(program: Program, calls: Sequence[Sequence[Any]], buffers: Sequence[str] = ()) -> Walk:
    """Runs ``program`` on ``calls`` in turn: the outputs of the last, then ``buffers`` as it left them."""

    def walk(after: AfterStep | None) -> Sequence[torch.Tensor]:
        state: State = {}
        for inputs in calls:
            outputs = program.walk(inputs, after=after, state=state)
        return [*tensors(outputs), *(state[name] for name in buffers)]

    return walk


def _requantises(program: Program) -> bool:
    """Whether values change scale on their way; data movement alone has to be exact."""
    steps = [step for step in program.all_steps if step.operator.startswith(QUANTISE)]
    return len({step.args[1:3] for step in steps}) > 1


def tie_errors(
    walk: Walk, right: Sequence[torch.Tensor], window: Callable[[str], Window]
) -> list[np.ndarray[Any, Any]]:
    """What roundings at ties alone may change of each user output ``right``, in the output's units.

    ``window`` gives that of a quantisation by its name. Whatever ``walk`` raises passes through.
    """
    errors = [np.zeros(tuple(output.shape)) for output in right]
    for name in _doubtful(walk, window):
        flipped = walk(_flipping(name, window(name)))
        for error, one, other in zip(errors, right, flipped, strict=True):
            error += np.abs(_wide(one) - _wide(other))
    return errors


def float_error(output: torch.Tensor) -> float:
    """What fp32's own rounding may change of an output that is computed in floating point at the end."""
    if not output.dtype.is_floating_point:
        return 0.0
    return FLOAT_SHARE * float(np.abs(_wide(output)).max(initial=0.0))


def _doubtful(walk: Walk, window: Callable[[str], Window]) -> list[str]:
    """Names of the quantisations with a value near a tie."""
    names: dict[str, None] = {}

    def look(step: Step, args: tuple[Any, ...], result: Any) -> Any:
        if step.operator.startswith(QUANTISE) and bool(window(step.name).near_tie(_scaled(args)).any()):
            names[step.name] = None
        return result

    walk(look)
    return list(names)


def _flipping(name: str, window: Window) -> AfterStep:
    def flip(step: Step, args: tuple[Any, ...], result: Any) -> Any:
        if step.name != name:
            return result
        exact, (zero, low, high) = _scaled(args), args[2:5]
        # The neighbour that fp32 did not choose: seen in fp64 it may well be the nearer one.
        chosen = result.double() - zero
        other = (exact.floor() + exact.ceil() - chosen + zero).clamp(low, high)
        return torch.where(window.near_tie(exact), other, result.double()).to(result.dtype)

    return flip


def _scaled(args: tuple[Any, ...]) -> torch.Tensor:
    scaled: torch.Tensor = args[0].double() / float(args[1])
    return scaled


def _wide(output: torch.Tensor) -> np.ndarray[Any, Any]:
    return to_numpy(output).astype(np.float64)
