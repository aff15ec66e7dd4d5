"""What a model takes and returns: whether its elements lie in memory, to be read and compared."""

from __future__ import annotations

import torch

from vgf_conformance.terminal import one_line


def type_name(value: object) -> str:
    """The name of a value's type; a type of types may make anything of it."""
    try:
        return one_line(str(type(value).__name__), 60)
    except BaseException:
        return "value of a type without a name"


def unreadable(value: object) -> str:
    """Why a leaf of a model's inputs or outputs cannot be read, and what to do; empty where it can.

    Whole numbers are of 64 bits, as torch.export has them.
    """
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return "is an integer of more than 64 bits; give a smaller one"
    if not isinstance(value, torch.Tensor):
        return ""
    if value.is_nested:
        return "is a nested tensor; give a dense one"
    if value.device.type != "cpu":
        return f"is on the device {value.device}; give tensors on the CPU"
    if value.layout is not torch.strided:
        return f"is {value.layout}; give a dense tensor: to_dense()"
    return "is quantized; give a plain tensor: dequantize()" if value.is_quantized else ""
