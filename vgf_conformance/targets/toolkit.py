"""Where the parts of tosa-tools lie, and whether they are all there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

from vgf_conformance.vocabulary import UserError

_REINSTALL = "python -m pip install --force-reinstall --no-deps tosa-tools==2026.5.0"


def version() -> str:
    """The installed version of tosa-tools; raises UserError where there is none."""
    try:
        return importlib.metadata.version("tosa-tools")
    except importlib.metadata.PackageNotFoundError:
        raise UserError(f"tosa-tools is not installed: {_REINSTALL}") from None


def generator_library() -> Path:
    """The library that makes the tests' data."""
    return _beside("tosa_reference_model", "libtosa_reference_generate_lib.so")


def verifier_library() -> Path:
    """The library that judges results."""
    return _beside("tosa_reference_model", "libtosa_reference_verify_lib.so")


def reference_program() -> Path:
    """The reference model's program: its Python binding has no fp64 results."""
    return _beside("generator", "../bin/tosa_reference_model")


def operator_schema() -> Path:
    """The flatbuffers schema that the program reads graphs by."""
    return _beside("generator", "../bin/tosa.fbs")


def missing(what: str) -> UserError:
    """What to say where tosa-tools lacks ``what``."""
    return UserError(
        f"tosa-tools {version()} has no {what}: another layout than is known here ({_REINSTALL})"
    )


def _beside(package: str, name: str) -> Path:
    version()
    spec = importlib.util.find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or []:
        path = (Path(folder) / name).resolve()
        if path.is_file():
            return path
    raise missing(f"{name.rpartition('/')[2]} beside its package {package}")
