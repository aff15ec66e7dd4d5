"""Faults of a device, put into a correct result: one output at a time, one fault at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vgf_conformance.targets.base import Array
from vgf_conformance.targets.sentinel import SENTINELS, filled

#: The share of the root mean square by which an element is moved.
_RMS_SHARE = 0.1
#: Elements at the end that a device might leave unwritten: the rest of a workgroup.
_TAIL = 4

Fault = Callable[[Array], Array]


@dataclass(frozen=True)
class Injected:
    """A result with a fault: ``outputs`` are all outputs of the delegate, one of them spoilt."""

    fault: str
    output: int
    outputs: list[Array]


def inject(outputs: Sequence[Array]) -> Iterator[Injected]:
    """Every fault in every output, where it changes anything."""
    for position, right in enumerate(outputs):
        for name, fault in FAULTS.items():
            if right.size:
                wrong = fault(np.array(right))
                if wrong.shape != right.shape or wrong.tobytes() != right.tobytes():
                    spoilt = [*outputs[:position], wrong, *outputs[position + 1 :]]
                    yield Injected(name, position, spoilt)


def _off_by_a_tenth(array: Array) -> Array:
    """The largest element off by 10 % of the root mean square; integers by at least one."""
    if array.dtype == np.bool_:
        return array
    wide = array.astype(np.float64)
    finite = np.isfinite(wide)
    if not finite.any():
        return array
    step = _RMS_SHARE * float(np.sqrt(np.mean(wide[finite] ** 2)))
    if array.dtype.kind in "iu":
        step = max(1.0, round(step))
    index = np.unravel_index(int(np.argmax(np.where(finite, np.abs(wide), -1.0))), array.shape)
    # Towards zero: away from the end of an integer's range.
    array[index] = (wide[index] - np.copysign(step, wide[index])).astype(array.dtype)
    return array


def _one_zeroed(array: Array) -> Array:
    flat = array.reshape(-1)
    places = np.flatnonzero(flat)
    if places.size:
        flat[places[places.size // 2]] = 0
    return array


def _neighbours_swapped(array: Array) -> Array:
    """The first two neighbours that differ."""
    flat = array.reshape(-1)
    places = np.flatnonzero(flat[1:] != flat[:-1])
    if places.size:
        at = places[places.size // 2]
        flat[[at, at + 1]] = flat[[at + 1, at]]
    return array


def _tail_unwritten(array: Array) -> Array:
    flat = array.reshape(-1)
    flat[-_TAIL:] = np.array(filled(array.shape, array.dtype, SENTINELS[0])).reshape(-1)[-_TAIL:]
    return array


def _one_step(array: Array) -> Array:
    """One unit of an integer; a bool turned over."""
    if array.dtype == np.bool_:
        array.reshape(-1)[0] ^= True
    elif array.dtype.kind in "iu":
        flat = array.reshape(-1)
        flat[0] += 1 if flat[0] <= 0 else -1
    return array


def _nan_made_finite(array: Array) -> Array:
    if array.dtype.kind not in "biu":
        array[np.isnan(array)] = 0
    return array


def _infinity_made_finite(array: Array) -> Array:
    if array.dtype.kind not in "biu":
        wide = array.astype(np.float64)
        array[np.isinf(wide)] = 1
    return array


def _axes_swapped(array: Array) -> Array:
    """The last two axes that are not of size one, the shape kept: a device that reads columns as rows."""
    axes = [axis for axis, size in enumerate(array.shape) if size > 1]
    if len(axes) < 2:
        return array
    return np.ascontiguousarray(np.swapaxes(array, axes[-1], axes[-2])).reshape(array.shape)


#: Name of a fault -> what it does to one output.
FAULTS: dict[str, Fault] = {
    "one element off by 10 % of RMS": _off_by_a_tenth,
    "one element zeroed": _one_zeroed,
    "neighbours swapped": _neighbours_swapped,
    "tail unwritten": _tail_unwritten,
    "one integer step": _one_step,
    "NaN made finite": _nan_made_finite,
    "infinity made finite": _infinity_made_finite,
    "axes swapped": _axes_swapped,
}
