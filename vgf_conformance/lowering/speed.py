"""Remembers what torch.export enumerates again on every call.

``run_decompositions`` lists every registered composite operator, three times a lowering: about a third
of the time of a small one. The list only changes when an operator is registered, so it is kept until
one is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._export import utils


def remember_composite_operators() -> None:
    """Memoise torch.export's enumeration; does nothing where this torch has it under another name."""
    enumerate_namespace = getattr(utils, "_collect_all_valid_cia_ops_for_namespace", None)
    if enumerate_namespace is not None and not hasattr(enumerate_namespace, "__wrapped__"):
        utils._collect_all_valid_cia_ops_for_namespace = _remembered(enumerate_namespace)


def _remembered(enumerate_namespace: Callable[[Any], set[Any]]) -> Callable[[Any], set[Any]]:
    found: dict[tuple[object, ...], set[Any]] = {}

    @functools.wraps(enumerate_namespace)
    def remembered(namespace: Any) -> set[Any]:
        key = (namespace.name, *_registrations())
        if key not in found:
            found[key] = enumerate_namespace(namespace)
        return found[key]

    return remembered


def _registrations() -> tuple[int, int, int]:
    """Counts that grow with every registration from Python and with every library that is loaded."""
    return len(torch.library._defs), len(torch.library._impls), len(torch.ops.loaded_libraries)
