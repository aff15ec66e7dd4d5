"""Models and weights out of installed packages, without what those packages import beside them."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import types
from pathlib import Path
from typing import Any

import torch


def weights(package: str, file: str) -> dict[str, Any]:
    """The state that ``file`` of an installed ``package`` holds."""
    found: dict[str, Any] = torch.load(file_of(package, file), map_location="cpu", weights_only=True)
    return found


def file_of(package: str, file: str) -> Path:
    """Where ``file`` of an installed ``package`` lies."""
    return Path(str(importlib.metadata.distribution(package).locate_file(file)))


def part(package: str, module: str) -> Any:
    """A module of ``package`` without the package's ``__init__``, which imports what no model needs."""
    if package not in sys.modules:
        bare = types.ModuleType(package)
        bare.__path__ = [str(file_of(package, package))]
        sys.modules[package] = bare
    return importlib.import_module(f"{package}.{module}")
