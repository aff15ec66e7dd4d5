"""Whether torch has an operator of a given name."""

from __future__ import annotations

import functools
from typing import Any

import torch

from vgf_conformance.quiet import quiet

#: Operators of these namespaces are there as soon as torch is; others wait for what registers them.
_OF_TORCH = ("aten", "higher_order", "prims")


@functools.cache
def is_known(name: str) -> bool:
    """Whether ``name``, such as ``aten.add.Tensor``, is an overload or a higher-order operator of torch.

    A name in a namespace that is not torch's own imports executorch, which registers many.
    """
    if _find(name) is not None:
        return True
    if name.partition(".")[0] in _OF_TORCH:
        return False
    with quiet():
        import executorch.backends.arm.vgf  # noqa: F401 - registers operators
    return _find(name) is not None


def _find(name: str) -> Any:
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    operators = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    return found if isinstance(found, operators) else None
