"""Subjects for tests: modules with inputs, without a suite around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.lowering.lower import Request
from vgf_conformance.vocabulary import Profile

FP, INT = Profile.parse("FP"), Profile.parse("INT")


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: Any) -> Any:
        return self._function(*inputs)


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def subject(module: torch.nn.Module | Callable[..., Any], *inputs: Any, **more: Any) -> Subject:
    """A subject of ``inputs``, calibrated on them."""
    if not isinstance(module, torch.nn.Module):
        module = Function(module)
    return Subject(
        **{
            "case": "case",
            "sample": "sample",
            "kind": "operator",
            "suite": "tests",
            "file": "tests/none.py",
            "operator": "",
            "tier": "smoke",
            "module": module.eval(),
            "inputs": inputs,
            "example": inputs,
            "calibration": [inputs],
            **more,
        }
    )


def request(
    module: torch.nn.Module | Callable[..., Any],
    *inputs: Any,
    profile: Profile = FP,
    scheme: str = "none",
    **more: Any,
) -> Request:
    """What ``subject`` would be lowered from."""
    if not isinstance(module, torch.nn.Module):
        module = Function(module)
    return Request(module.eval(), inputs, profile, scheme, more.pop("calibration", [inputs]), **more)
