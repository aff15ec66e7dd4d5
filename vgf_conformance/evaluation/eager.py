"""Eager PyTorch: the outputs that everything else is compared with."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from vgf_conformance.cases.case import Inputs


class EagerFailure(Exception):
    """The model itself raises on these inputs: nothing to compare with."""


def leaves(value: Any) -> list[Any]:
    """Outputs (or inputs) in flattened order, as torch.export numbers them."""
    return list(torch.utils._pytree.tree_leaves(value))


def run_eager(module: torch.nn.Module, inputs: Inputs) -> list[Any]:
    """The module's outputs, flattened; one thread, so that they repeat. Raises EagerFailure."""
    with torch.no_grad(), one_thread(), _same_state(module):
        try:
            return leaves(module(*_copied(inputs)))
        except (Exception, SystemExit) as error:
            raise EagerFailure(f"{type(error).__name__}: {error}") from error


def run_eager_fp64(module: torch.nn.Module, inputs: Inputs) -> list[Any] | None:
    """The same computation in fp64; None where the module cannot be run so."""
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        with torch.no_grad(), one_thread():
            return leaves(copy.deepcopy(module).double()(*_widened(inputs)))
    except (RuntimeError, TypeError, NotImplementedError, ValueError):
        # A module that pins a dtype inside has no fp64 form; eager in its own dtype stands in.
        return None
    finally:
        torch.set_default_dtype(default)


@contextlib.contextmanager
def _same_state(module: torch.nn.Module) -> Iterator[None]:
    """Undo what the module does to its buffers: each stage starts from the same state."""
    owned = [(part, dict(part._buffers)) for part in module.modules()]
    kept = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        for part, buffers in owned:
            part._buffers.update(buffers)
        for buffer, value in kept:
            buffer.copy_(value)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Results that do not move with the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _copied(inputs: Inputs) -> Inputs:
    return _mapped(inputs, lambda tensor: tensor.clone())


def _widened(inputs: Inputs) -> Inputs:
    return _mapped(inputs, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor.clone())


def _mapped(inputs: Inputs, function: Any) -> Inputs:
    mapped: Inputs = torch.utils._pytree.tree_map(
        lambda leaf: function(leaf) if isinstance(leaf, torch.Tensor) else leaf, inputs
    )
    return mapped


def tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    """Outputs as tensors: plain numbers become rank-0 tensors; raises EagerFailure for anything else."""
    found = []
    for number, value in enumerate(value for value in values if value is not None):
        if not isinstance(value, (torch.Tensor, bool, int, float)):
            raise EagerFailure(f"output {number} is a {type(value).__name__}, not a tensor or a number")
        found.append(value if isinstance(value, torch.Tensor) else torch.tensor(value))
    return found
