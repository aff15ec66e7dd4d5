"""Operators that move data: the error moves with the element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vgf_conformance.comparison.operators.base import Array, Bounded, Call, operator


def _moved(call: Call, move: Callable[[Array], Array]) -> Bounded:
    """Apply ``move`` to the first operand's values and errors alike."""
    return call.result(move(call.inputs[0].value), move(call.inputs[0].error))


@operator("IDENTITY")
def identity(call: Call) -> Bounded:
    """The operand itself."""
    return call.inputs[0]


@operator("DIM")
def dim(call: Call) -> Bounded:
    """The length of one axis, as a shape (TOSA 1.1's draft)."""
    return call.result(np.array([call.inputs[0].value.shape[call.attributes["axis"]]]))


@operator("RESHAPE")
def reshape(call: Call) -> Bounded:
    """Same elements in the same order."""
    return _moved(call, lambda data: data.reshape(call.shape))


@operator("TRANSPOSE")
def transpose(call: Call) -> Bounded:
    """Axes permuted."""
    return _moved(call, lambda data: data.transpose(call.attributes["perms"]))


@operator("REVERSE")
def reverse(call: Call) -> Bounded:
    """One axis backwards."""
    return _moved(call, lambda data: np.flip(data, call.attributes["axis"]))


@operator("SLICE")
def slice_(call: Call) -> Bounded:
    """A box of the operand, by start and size."""
    box = tuple(
        slice(start, start + size) for start, size in zip(call.constant(1), call.constant(2), strict=True)
    )
    return _moved(call, lambda data: data[box])


@operator("TILE")
def tile(call: Call) -> Bounded:
    """The operand repeated along each axis."""
    return _moved(call, lambda data: np.tile(data, tuple(call.constant(1))))


@operator("CONCAT")
def concat(call: Call) -> Bounded:
    """The operands one after the other along an axis."""
    axis = call.attributes["axis"]
    values = np.concatenate([item.value for item in call.inputs], axis)
    return call.result(values, np.concatenate([item.error for item in call.inputs], axis))


@operator("PAD")
def pad(call: Call) -> Bounded:
    """The operand in a frame of the constant; padding comes as (before, after) for each axis."""
    widths = call.constant(1).reshape(-1, 2).tolist()
    fill = call.inputs[2]
    value = np.pad(call.constant(0), widths, constant_values=fill.value.reshape(-1)[0])
    return call.result(value, np.pad(call.inputs[0].error, widths, constant_values=fill.error.reshape(-1)[0]))


@operator("GATHER")
def gather(call: Call) -> Bounded:
    """values [N, K, C] at indices [N, W]; an uncertain index may bring anything."""
    indices = call.constant(1)
    rows = np.arange(len(indices))[:, None]
    uncertain = np.where(call.inputs[1].error > 0, np.inf, 0.0)[..., None]
    return call.result(call.constant(0)[rows, indices], call.inputs[0].error[rows, indices] + uncertain)


@operator("SCATTER")
def scatter(call: Call) -> Bounded:
    """values_in [N, K, C] with rows of input [N, W, C] written at indices [N, W]."""
    values, indices, updates = call.inputs
    rows = np.arange(len(indices.value))[:, None]
    value, error = values.value.copy(), values.error.copy()
    value[rows, indices.value], error[rows, indices.value] = updates.value, updates.error
    return call.result(value, error if indices.exact else np.inf)
