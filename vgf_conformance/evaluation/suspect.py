"""Which step, and which of its TOSA operators, makes the first tensor that is wrong.

Several steps may lie between what is right and what is not. Asked in this order:

1. Does a convolution hold the step's weights and bias? Where a batch norm follows, with that folded in.
2. Is a step in front of the last right by itself, before it was fused? Then it is one of those behind it.
3. Is the last step right for what its TOSA operators really read? Then a step in front of it was lost, or its
   data went somewhere else.
4. Otherwise it is the last step that computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vgf_conformance.attribution.region import MOVEMENT, Seen
from vgf_conformance.evaluation.divergence import DEQUANTISE, Comparing, Wrong
from vgf_conformance.evaluation.layouts import layouts
from vgf_conformance.evaluation.windows import QUANTISE
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import Ref, Step
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.targets.base import Array

_CONVOLUTIONS = frozenset({"CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"})
#: Operators that a step's own operator needs around it.
_AROUND = MOVEMENT | {"CAST", "RESCALE"}
#: What operators read is tried in so many layouts at most.
_MOST_TRIED = 48
#: Of folded weights: scaled in fp32 on either side.
_FOLDED = 1e-5

LOST = "no TOSA operator was made from it"


@dataclass(frozen=True)
class Suspect:
    """The step and the position of the operator, and the reason where there is more than numbers."""

    step: Step
    position: int
    reason: str = ""


def suspect(comparing: Comparing, wrong: Wrong) -> Suspect:
    """The step and the operator that are to blame for ``wrong``."""
    return (
        _wrong_constant(comparing, wrong)
        or _behind_right_ones(comparing, wrong)
        or _lost_or_moved(comparing, wrong)
        or _last(comparing, wrong)
    )


def operators_of(comparing: Comparing, wrong: Wrong, found: Suspect) -> tuple[int, ...]:
    """The TOSA operators that the step became, by position, the one to blame first."""
    seen = comparing.seen[wrong.made.call]
    own = [at for at in wrong.region if seen.steps.get(at) == found.step.name]
    return tuple(dict.fromkeys([found.position, *own]))


def _wrong_constant(comparing: Comparing, wrong: Wrong) -> Suspect | None:
    seen = comparing.seen[wrong.made.call]
    for name in wrong.cone:
        convolutions = [
            at
            for at in wrong.region
            if seen.graph.operators[at].name in _CONVOLUTIONS and seen.steps.get(at) == name
        ]
        if not convolutions:
            continue
        step = comparing.steps[name]
        expected = _parameters(comparing, wrong, step)
        for operand, (what, right) in enumerate(zip(("weight", "bias"), expected, strict=False), start=1):
            held = [_constant(seen, at, operand) for at in convolutions]
            if right is None or any(array is None for array in held):
                continue
            arrays = [array for array in held if array is not None]
            if _same_numbers(np.concatenate([array.reshape(-1) for array in arrays]), right):
                continue
            at = next(
                (at for at, array in zip(convolutions, arrays, strict=True) if _foreign(array, right)),
                convolutions[0],
            )
            return Suspect(step, at, f"its {what} is not the program's")
    return None


def _constant(seen: Seen, position: int, operand: int) -> Array | None:
    names = seen.graph.operators[position].inputs
    return seen.graph.tensors[names[operand]].data if len(names) > operand else None


def _parameters(comparing: Comparing, wrong: Wrong, step: Step) -> list[Array | None]:
    """The step's weight and bias as its operators should hold them."""
    found = [_parameter(comparing, argument) for argument in step.args[1:3]]
    behind = wrong.cone[wrong.cone.index(step.name) + 1 :]
    norms = (comparing.steps[other] for other in behind)
    norm = next((other for other in norms if other.operator.startswith("aten.batch_norm.")), None)
    return found if norm is None else _folded(comparing, found, norm)


def _parameter(comparing: Comparing, argument: Any) -> Array | None:
    """A constant that a step reads, as integers where the program dequantises it."""
    if not isinstance(argument, Ref):
        return None
    made_by = comparing.steps.get(argument.name)
    if made_by is not None and made_by.operator.startswith(DEQUANTISE):
        argument = made_by.args[0]
    value = comparing.program.constants.get(argument.name) if isinstance(argument, Ref) else None
    return to_numpy(value) if isinstance(value, torch.Tensor) else None


def _folded(comparing: Comparing, found: list[Array | None], norm: Step) -> list[Array | None]:
    """Weight and bias with a batch norm in them: w g / s and (b - m) g / s + o, with s = sqrt(var + eps)."""
    weight = found[0]
    scale, offset, mean, variance = (_wide(_parameter(comparing, argument)) for argument in norm.args[1:5])
    if weight is None or mean is None or variance is None:
        return [None, None]
    factor = (np.ones(mean.shape) if scale is None else scale) / np.sqrt(variance + float(norm.args[7]))
    bias = _wide(found[1]) if len(found) > 1 else None
    centred = -mean if bias is None else bias - mean
    return [
        weight * factor.reshape(-1, *[1] * (weight.ndim - 1)),
        centred * factor + (0.0 if offset is None else offset),
    ]


def _wide(array: Array | None) -> NDArray[np.float64] | None:
    return None if array is None else array.astype(np.float64)


def _same_numbers(held: Array, right: Array) -> bool:
    """Whether both hold the same numbers, in whatever order, and with whatever zeros between."""
    one, two = (np.sort(array[array != 0].astype(np.float64), axis=None) for array in (held, right))
    return one.size == two.size and bool(np.allclose(one, two, rtol=_tolerance(right), atol=0.0))


def _foreign(held: Array, right: Array) -> bool:
    """Whether ``held`` has a number that ``right`` has not, or nothing but zeros."""
    near = np.sort(right, axis=None).astype(np.float64)
    numbers = held[held != 0].astype(np.float64)
    if not numbers.size or not near.size:
        return True
    after = np.searchsorted(near, numbers)
    gaps = np.minimum(
        np.abs(near[np.minimum(after, near.size - 1)] - numbers),
        np.abs(near[np.maximum(after - 1, 0)] - numbers),
    )
    return bool((gaps > _tolerance(right) * np.abs(numbers)).any())


def _tolerance(right: Array) -> float:
    return 0.0 if right.dtype.kind in "iu" else _FOLDED


def _behind_right_ones(comparing: Comparing, wrong: Wrong) -> Suspect | None:
    """The first step behind the last that is right by itself, requantised as the last one is."""
    if not wrong.step.operator.startswith(QUANTISE):
        return None
    seen, right = comparing.seen[wrong.made.call], None
    for number, name in enumerate(wrong.cone[:-1]):
        value = comparing.values.get(name)
        made = [
            item
            for item in comparing.named.get(name, ())
            if item.position in wrong.region and item.array.dtype == wrong.made.array.dtype
        ]
        if not made or not isinstance(value, torch.Tensor) or made[-1].array.size != value.numel():
            continue
        result = comparing.again((wrong.step.name,), _given(wrong, value))
        if _is_right(wrong, made[-1].array, result):
            right = number
    if right is None:
        return None
    behind = [comparing.steps[name] for name in wrong.cone[right + 1 : -1]]
    step = next((step for step in behind if not step.operator.startswith("quantized_decomposed")), None)
    if step is None:
        return None
    own = [at for at in wrong.region if seen.steps.get(at) == step.name]
    if own:
        return Suspect(step, _computing(seen, own))
    return Suspect(step, wrong.made.position, LOST)


def _given(wrong: Wrong, value: torch.Tensor) -> dict[str, Any]:
    source = wrong.step.args[0]
    return {source.name: value} if isinstance(source, Ref) else {}


def _lost_or_moved(comparing: Comparing, wrong: Wrong) -> Suspect | None:
    """The step without which, or with whose data elsewhere, the last one is right for what TOSA reads."""
    seen = comparing.seen[wrong.made.call]
    for name in wrong.cone[:-1]:
        step = comparing.steps[name]
        own = [at for at in wrong.region if seen.steps.get(at) == name]
        if step.operator.startswith("quantized_decomposed") or not _may_be_elsewhere(seen, step, own):
            continue
        for tensor, value in _read(comparing, wrong, name):
            if _is_right_for(comparing, wrong, *value):
                reason = "its data lies elsewhere" if own else LOST
                return Suspect(step, _reader(seen, wrong, own, tensor), reason)
    return None


def _may_be_elsewhere(seen: Seen, step: Step, own: Sequence[int]) -> bool:
    return moves_data(step.operator) or all(seen.graph.operators[at].name in MOVEMENT for at in own)


def _read(comparing: Comparing, wrong: Wrong, name: str) -> Iterator[tuple[str, tuple[str, torch.Tensor]]]:
    """What the operators really read where the step ``name`` stands, by tensor, in each layout that fits.

    In a quantised program it is the value of the step's own quantisation.
    """
    seen = comparing.seen[wrong.made.call]
    quantised = next(
        (
            reader
            for reader in wrong.cone
            if name in comparing.steps[reader].reads and comparing.steps[reader].operator.startswith(QUANTISE)
        ),
        name,
    )
    value = comparing.values[quantised]
    if not isinstance(value, torch.Tensor):
        return
    right = to_numpy(value)
    moved = [
        output
        for at in wrong.region
        if seen.graph.operators[at].name in MOVEMENT
        for output in seen.graph.operators[at].outputs
    ]
    tried = 0
    for tensor in dict.fromkeys([*moved, *seen.read_by(wrong.region)]):
        array = seen.values.get(tensor)
        if array is None or tensor == wrong.made.tensor:
            continue
        if array.dtype != right.dtype or array.size != right.size:
            continue
        for layout in layouts(array, right.shape):
            given = layout.apply(array)
            if not np.array_equal(given, right) and tried < _MOST_TRIED:
                tried += 1
                yield tensor, (quantised, from_numpy(given))


def _is_right_for(comparing: Comparing, wrong: Wrong, name: str, value: torch.Tensor) -> bool:
    behind = wrong.cone[wrong.cone.index(name) :]
    try:
        result = comparing.again(behind, {name: value})
    except Exception:  # what does not fit the steps behind it is not what they read
        return False
    return _is_right(wrong, wrong.made.array, result)


def _is_right(wrong: Wrong, array: Array, result: Any) -> bool:
    expected = to_numpy(result)
    if array.size != expected.size:
        return False
    if wrong.step.operator.startswith(QUANTISE):
        steps = wrong.layout.apply(array).astype(np.int64) - expected.astype(np.int64)
        return bool((np.abs(steps) <= 1).all())
    given, wanted = (item.astype(np.float64) for item in (wrong.layout.apply(array), expected))
    size = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    return bool(np.allclose(given, wanted, rtol=_FOLDED, atol=_FOLDED * size, equal_nan=True))


def _reader(seen: Seen, wrong: Wrong, own: Sequence[int], tensor: str) -> int:
    """The operator that moved the data, or else the first that reads ``tensor``.

    A transposition is what moves it; which step that is noted with says little.
    """
    behind = [at for at in seen.region(tensor, set()) if at in wrong.region]
    moved = [at for at in (*own, *reversed(behind)) if seen.graph.operators[at].name == "TRANSPOSE"]
    readers = [at for at in wrong.region if tensor in seen.graph.operators[at].inputs]
    return next(iter([*moved, *own, *readers]), wrong.made.position)


def _last(comparing: Comparing, wrong: Wrong) -> Suspect:
    seen = comparing.seen[wrong.made.call]
    for name in reversed(wrong.cone):
        own = [at for at in wrong.region if seen.steps.get(at) == name]
        if any(seen.graph.operators[at].name not in MOVEMENT for at in own):
            overflow = _overflow(seen, wrong, own)
            return Suspect(comparing.steps[name], _computing(seen, own) if overflow is None else overflow)
    computing = [name for name in wrong.cone if not comparing.steps[name].operator.startswith("quantized")]
    return Suspect(comparing.steps[(computing or wrong.cone)[-1]], wrong.made.position)


def _overflow(seen: Seen, wrong: Wrong, own: Sequence[int]) -> int | None:
    """The first operator that makes infinities or NaN of numbers, where the result should have numbers."""
    if not np.isfinite(wrong.expected.astype(np.float64)).all():
        return None

    def finite(names: Sequence[str]) -> bool:
        arrays = [seen.values[name] for name in names if name in seen.values]
        return all(np.isfinite(array.astype(np.float64)).all() for array in arrays)

    operators = seen.graph.operators
    return next(
        (at for at in own if finite(operators[at].inputs) and not finite(operators[at].outputs)), None
    )


def _computing(seen: Seen, own: Sequence[int]) -> int:
    """The last operator that computes, not counting what goes around it where there is more."""
    computing = [at for at in own if seen.graph.operators[at].name not in _AROUND]
    others = [at for at in own if seen.graph.operators[at].name not in MOVEMENT]
    return [*own, *others, *computing][-1] if computing or others else own[-1]
