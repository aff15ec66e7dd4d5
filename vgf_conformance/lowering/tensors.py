"""Between torch tensors and numpy arrays in memory order, for every dtype that a VGF knows."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray

from vgf_conformance.cases.dtypes import dtype_name
from vgf_conformance.formats.delegate import Port

_NARROW: dict[torch.dtype, tuple[torch.dtype, type]] = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.int8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.int8, ml_dtypes.float8_e5m2),
}
_TORCH_OF_NARROW: dict[np.dtype[np.generic], tuple[torch.dtype, torch.dtype]] = {
    np.dtype(narrow): (bits, dtype) for dtype, (bits, narrow) in _NARROW.items()
}


def to_numpy(tensor: torch.Tensor) -> NDArray[np.generic]:
    """The tensor's values as an array of the same logical shape."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype in _NARROW:
        bits, narrow = _NARROW[tensor.dtype]
        return tensor.view(bits).numpy().view(narrow)
    array: NDArray[np.generic] = tensor.numpy()
    return array


def from_numpy(array: NDArray[np.generic]) -> torch.Tensor:
    """The inverse of to_numpy; the tensor owns its memory."""
    array = np.array(array, order="C")
    if array.dtype in _TORCH_OF_NARROW:
        bits, dtype = _TORCH_OF_NARROW[array.dtype]
        return torch.from_numpy(array.view(f"i{array.dtype.itemsize}")).view(bits).view(dtype)
    return torch.from_numpy(array)


def to_physical(tensor: torch.Tensor, port: Port) -> NDArray[np.generic]:
    """The tensor as the delegate is given it: axes in memory order."""
    return to_numpy(tensor.permute(port.dim_order))


def from_physical(array: NDArray[np.generic], port: Port) -> torch.Tensor:
    """A delegate's output as the program sees it: logical axes, memory as the dim order says."""
    return from_numpy(array).permute(_inverse(port.dim_order))


def port_of(tensor: torch.Tensor) -> Port:
    """The boundary that a (fake) tensor of an edge program stands for."""
    return Port(
        shape=tuple(size if isinstance(size, int) else -1 for size in tensor.shape),
        dtype=dtype_name(tensor.dtype),
        dim_order=tuple(tensor.dim_order()),
    )


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]
