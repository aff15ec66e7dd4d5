"""Eager PyTorch: the outputs that everything else is compared with."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from vgf_conformance.cases.case import Inputs
from vgf_conformance.cases.elements import type_name, unreadable
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.terminal import one_line

#: What running a program in fp64 raises where it pins a dtype inside.
NO_FP64 = (RuntimeError, TypeError, NotImplementedError, ValueError)


class EagerFailure(Exception):
    """The model itself raises on these inputs: nothing to compare with."""


class NotRepeatable(Exception):
    """The model gives another result for the same inputs and the same buffers: nothing to compare with."""


def leaves(value: Any) -> list[Any]:
    """Outputs (or inputs) in flattened order, as torch.export numbers them."""
    return list(torch.utils._pytree.tree_leaves(value))


def run_eager(
    module: torch.nn.Module, inputs: Inputs, before: Sequence[Inputs] = (), buffers: Sequence[str] = ()
) -> list[Any]:
    """The module's outputs, flattened, after calls with ``before``; then its ``buffers`` of these names.

    One thread, so that they repeat. Raises EagerFailure.
    """
    with torch.no_grad(), one_thread(), _same_state(module):
        try:
            for earlier in before:
                module(*copied(earlier))
            # Copied, since an output may be a buffer, which is about to be set back.
            outputs = leaves(copied(module(*copied(inputs))))
            return [*outputs, *(module.get_buffer(name).clone() for name in buffers)]
        except (Exception, SystemExit) as error:
            raise EagerFailure(one_line(f"{type(error).__name__}: {error}")) from error


def repeated_eager(
    module: torch.nn.Module, inputs: Inputs, before: Sequence[Inputs] = ()
) -> list[torch.Tensor]:
    """The module's outputs, after calls with ``before``, which two runs agree on bit for bit.

    Both runs start from the same buffers, since what a model keeps there is exported as state. State
    anywhere else is frozen at export, so that a second run must not see it. Raises EagerFailure, and
    NotRepeatable where the outputs differ.
    """
    first = tensors(run_eager(module, inputs, before))
    if difference := first_difference(first, tensors(run_eager(module, inputs, before))):
        raise NotRepeatable(
            f"not repeatable: {difference}: the model's result depends on earlier calls or on random "
            "numbers; keep state in buffers, and remove what is random or call torch.manual_seed in forward()"
        )
    return first


def first_difference(
    first: Sequence[torch.Tensor], second: Sequence[torch.Tensor], words: str = "was {}, then {}"
) -> str:
    """Where two runs differ: the first output and in it the first element; empty where nowhere.

    ``words`` tells the two apart.
    """
    if len(first) != len(second):
        return "the number of outputs " + words.format(len(first), len(second))
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"output {number} " + words.format(_described(one), _described(other))
        different = ~_same_bits(one, other)
        if different.any():
            index = tuple(different.nonzero()[0].tolist())
            where = f"element {list(index)}" if index else "the number"
            values = [to_numpy(value)[index] for value in (one, other)]
            return f"output {number}, {where} " + words.format(*values)
    return ""


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Element by element: equal, with the same sign where zero, or both NaN."""
    if not one.dtype.is_floating_point:
        return one == other
    # Every type of 64 bits or less as itself: not all of them can be compared.
    one, other = one.double(), other.double()
    equal = (one == other) & (torch.signbit(one) == torch.signbit(other))
    return equal | (one.isnan() & other.isnan())


def _described(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def run_eager_fp64(
    module: torch.nn.Module, inputs: Inputs, before: Sequence[Inputs] = (), buffers: Sequence[str] = ()
) -> list[Any] | None:
    """As run_eager in fp64; None where the module cannot be run so."""
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        with torch.no_grad(), one_thread():
            wide = copy.deepcopy(module).double()
            for earlier in before:
                wide(*_widened(earlier))
            outputs = leaves(wide(*_widened(inputs)))
            return [*outputs, *(wide.get_buffer(name) for name in buffers)]
    except NO_FP64:
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


def copied(values: Any) -> Any:
    """Inputs or outputs with tensors of their own."""
    return _mapped(values, lambda tensor: tensor.clone())


def _widened(inputs: Inputs) -> Inputs:
    # A copy in any case, for the module may write to it.
    return _mapped(
        inputs,
        lambda tensor: tensor.to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True),
    )


def _mapped(values: Any, function: Any) -> Any:
    return torch.utils._pytree.tree_map(
        lambda leaf: function(leaf) if isinstance(leaf, torch.Tensor) else leaf, values
    )


def is_floating(value: Any) -> bool:
    """Whether ``value`` is a tensor of floating-point numbers."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    """Outputs as tensors: plain numbers become rank-0 tensors; raises EagerFailure for anything else.

    So does a tensor without elements in memory: there is nothing to compare with.
    """
    found = []
    for number, value in enumerate(value for value in values if value is not None):
        if not isinstance(value, (torch.Tensor, bool, int, float)):
            raise EagerFailure(f"output {number} is a {type_name(value)}, not a tensor or a number")
        if trouble := unreadable(value):
            raise EagerFailure(f"output {number} {trouble}")
        found.append(value if isinstance(value, torch.Tensor) else torch.tensor(value))
    return found
