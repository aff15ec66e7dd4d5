"""What the observers of a prepared program should have seen, and what they have to make of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule

from vgf_conformance.lowering.program import OBSERVED, Program, Step
from vgf_conformance.lowering.scheme import Parameters, affine, ranges, symmetric

#: Observers whose range is the smallest and the largest value seen.
_EXTREMES = ("MinMaxObserver", "PerChannelMinMaxObserver", "HistogramObserver")
_SYMMETRIC = (torch.per_tensor_symmetric, torch.per_channel_symmetric)
_PER_CHANNEL = (torch.per_channel_symmetric, torch.per_channel_affine)
#: fp32 computes a scale in three operations; zero points lie this near to a tie where that can tip them.
SCALE_SHARE = 2.0**-21
_TIE = 2.0**-10
#: By how many bins, on average, values may have moved where threads add up in another order.
_MOVED = 1.0


@dataclass(frozen=True)
class Prescription:
    """What one observer has to make of what it saw.

    ``choices`` are alike where there are several (see ``scheme.ranges``); there are none where the observer
    is of a kind that is not known here. ``quantises`` is false for observers that only stand in for none.
    """

    choices: tuple[Parameters, ...] = ()
    quantises: bool = True

    def refusal(self, found: Parameters) -> str:
        """What is wrong with the parameters that were ``found``; empty where nothing is."""
        wrong = [_difference(found, choice) for choice in self.choices]
        return wrong[-1] if wrong and all(wrong) else ""


def _difference(found: Parameters, right: Parameters) -> str:
    if (found.dtype, found.low, found.high) != (right.dtype, right.low, right.high):
        return f"{found.dtype} {found.low}..{found.high}, should be {right.dtype} {right.low}..{right.high}"
    if found.axis != right.axis or found.scale.size != right.scale.size:
        return f"{found}; should be {right}"
    far = np.abs(found.scale - right.scale) > SCALE_SHARE * right.scale
    if far.any():
        place = int(np.argmax(far))
        where = f"[{place}]" if right.axis is not None else ""
        return f"scale{where} {found.scale.flat[place]:.8g}, should be {right.scale.flat[place]:.8g}"
    off = np.abs(found.zero - right.zero) > 0.5 + _TIE
    if off.any():
        place = int(np.argmax(off))
        return f"zero point {found.zero.flat[place]:g}, should be {np.round(right.zero.flat[place]):g}"
    return ""


def prescriptions(prepared: GraphModule) -> dict[str, Prescription]:
    """By name, what each calibrated observer outside branches and loops has to give."""
    return {name: prescribe(observer) for name, observer in _observers(prepared).items()}


def _observers(prepared: GraphModule) -> dict[str, Any]:
    return {name: prepared.get_submodule(name) for name in _targets(prepared).values()}


def _targets(prepared: GraphModule) -> dict[str, str]:
    """By node, the name of the observer that it calls."""
    return {node.name: str(node.target) for node in prepared.graph.nodes if node.op == "call_module"}


def prescribe(observer: Any) -> Prescription:
    """What ``observer`` has to give for the range or the histogram that it holds."""
    kind, dtype = type(observer).__name__, getattr(observer, "dtype", None)
    if kind in ("PlaceholderObserver", "NoopObserver") or not _is_integer(dtype):
        return Prescription(quantises=not (dtype is None or getattr(dtype, "is_floating_point", False)))
    if getattr(observer, "is_dynamic", False):
        return Prescription()
    if kind == "DerivedObserverOrFakeQuantize":
        return _bias(observer)
    if kind == "FixedQParamsObserver":
        return Prescription((_parameters(observer, observer.scale, observer.zero_point),))
    if kind not in _EXTREMES:
        return Prescription()
    low, high = _wide(observer.min_val), _wide(observer.max_val)
    if not low.size or bool((low > high).any()):
        return Prescription((_parameters(observer, np.ones(1), np.zeros(1)),))
    spans = [(low, high)]
    if kind == "HistogramObserver" and low < high:
        found = ranges(_wide(observer.histogram), float(low), float(high), 2 ** torch.iinfo(dtype).bits)
        spans = [(np.array(first), np.array(last)) for first, last in found] or spans
    return Prescription(tuple(_of_range(observer, first, last) for first, last in spans))


def _of_range(observer: Any, low: Any, high: Any) -> Parameters:
    qmin, qmax, eps = observer.quant_min, observer.quant_max, float(observer.eps)
    if observer.qscheme in _SYMMETRIC:
        scale = symmetric(low, high, qmin, qmax, eps)
        return _parameters(observer, scale, np.zeros(scale.shape))
    return _parameters(observer, *affine(low, high, qmin, qmax, eps))


def _bias(observer: Any) -> Prescription:
    """A bias is quantised at the product of the scales of input and weight, without a zero point."""
    both = [prescribe(source) for source in observer.obs_or_fqs]
    if len(both) != 2:
        return Prescription()
    return Prescription(
        tuple(
            _parameters(observer, one.scale * other.scale, np.zeros(other.scale.shape))
            for one in both[0].choices
            for other in both[1].choices
        )
    )


def _parameters(observer: Any, scale: Any, zero: Any) -> Parameters:
    axis = int(observer.ch_axis) if observer.qscheme in _PER_CHANNEL else None
    kind = str(observer.dtype).removeprefix("torch.").removeprefix("q")
    numbers = np.atleast_1d(_wide(scale)), np.atleast_1d(_wide(zero))
    return Parameters(*numbers, observer.quant_min, observer.quant_max, kind, axis)


def _is_integer(dtype: Any) -> bool:
    return isinstance(dtype, torch.dtype) and not dtype.is_floating_point and not dtype.is_complex


def _wide(value: Any) -> Any:
    return (
        value.detach().double().numpy() if isinstance(value, torch.Tensor) else np.asarray(value, np.float64)
    )


def unseen(
    prepared: GraphModule, program: Program, calibration: Sequence[tuple[Any, ...]]
) -> Mapping[str, str]:
    """What is wrong, by observer, with what it holds after ``calibration``: it is run once more.

    ``program`` is what ``prepared`` was before it was calibrated: its nodes count, whatever they call now.
    """
    observers, targets = _observers(prepared), _targets(prepared)
    seen: dict[int, tuple[Any, Any]] = {}
    counted: dict[int, Any] = {}

    def look(step: Step, args: tuple[Any, ...], result: Any) -> Any:
        observer = observers.get(targets.get(step.name, "")) if step.operator == OBSERVED else None
        if type(observer).__name__ in _EXTREMES and isinstance(result, torch.Tensor) and result.numel():
            span = _span(observer, result)
            if span is not None:
                low, high = seen.get(id(observer), span)
                seen[id(observer)] = np.minimum(low, span[0]), np.maximum(high, span[1])
            if type(observer).__name__ == "HistogramObserver":
                if id(observer) not in counted:
                    counted[id(observer)] = _emptied(observer)
                counted[id(observer)](result)
        return result

    own = replace(program, constants=copy.deepcopy(program.constants))
    for inputs in calibration:
        own.walk(copy.deepcopy(torch.utils._pytree.tree_leaves(inputs)), after=look)
    return {
        name: refusal
        for name, observer in observers.items()
        if id(observer) in seen
        and (
            refusal := _unlike(observer, *seen[id(observer)])
            or _other_histogram(observer, counted.get(id(observer)))
        )
    }


def _emptied(observer: Any) -> Any:
    """A copy that has seen nothing."""
    fresh = copy.deepcopy(observer)
    fresh.min_val.fill_(torch.inf)
    fresh.max_val.fill_(-torch.inf)
    fresh.histogram.zero_()
    return fresh


def _other_histogram(observer: Any, counted: Any) -> str:
    """What is wrong with the values between the ends of the range, which other values may share."""
    if counted is None:
        return ""
    held, right = _wide(observer.histogram), _wide(counted.histogram)
    if held.shape != right.shape or np.abs(np.cumsum(held - right)).sum() > _MOVED * right.sum():
        return "its observer's histogram is not that of the calibration data"
    return ""


def _span(observer: Any, value: torch.Tensor) -> tuple[Any, Any] | None:
    """The smallest and the largest finite value; for each place along the axis where there is one."""
    array = _wide(value)
    if observer.qscheme in _PER_CHANNEL:
        axes = tuple(axis for axis in range(array.ndim) if axis != observer.ch_axis % array.ndim)
        return array.min(axis=axes), array.max(axis=axes)
    finite = array[np.isfinite(array)]
    return (finite.min(), finite.max()) if finite.size else None


def _unlike(observer: Any, low: Any, high: Any) -> str:
    held = _wide(observer.min_val), _wide(observer.max_val)
    if held[0].shape != np.shape(low) or not np.isfinite(held).all():
        # Only a histogram passes over infinities.
        return (
            "" if np.isinf(held).any() and type(observer).__name__ != "HistogramObserver" else _held(observer)
        )
    room = 1e-5 * np.maximum(np.abs(low), np.abs(high))
    return _held(observer, low, high) if (np.abs(held - np.array([low, high])) > room).any() else ""


def _held(observer: Any, low: Any = None, high: Any = None) -> str:
    held = _wide(observer.min_val), _wide(observer.max_val)
    if not held[0].size or (held[0] > held[1]).any():
        return "its observer saw none of the calibration data"
    first, last = float(np.min(held[0])), float(np.max(held[1]))
    text = f"its observer holds {first:.6g} to {last:.6g}"
    return (
        text if low is None else f"{text}, the calibration data has {np.min(low):.6g} to {np.max(high):.6g}"
    )
