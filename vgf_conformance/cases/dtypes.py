"""The element types that a sample computes with, as claims name them."""

from __future__ import annotations

from typing import Any

import torch

from vgf_conformance.results.claims import QUANTISED


def computed_dtypes(module: torch.nn.Module, inputs: Any, scheme: str) -> list[str]:
    """The dtypes of the input tensors and of the weights, sorted; floating ones become the scheme's.

    Weights count beside inputs: the table of an embedding is float32 where its indices are int64.
    Buffers do not: a counter of batches is nothing that an operator computes with.
    """
    leaves = torch.utils._pytree.tree_leaves(inputs)
    tensors = [leaf for leaf in (*leaves, *module.parameters()) if isinstance(leaf, torch.Tensor)]
    quantised = QUANTISED.get(scheme.partition("-")[0])
    return sorted(
        {
            quantised if quantised and tensor.is_floating_point() else dtype_name(tensor.dtype)
            for tensor in tensors
        }
    )


def dtype_name(dtype: torch.dtype) -> str:
    """The numpy name of a torch dtype."""
    return str(dtype).removeprefix("torch.")
