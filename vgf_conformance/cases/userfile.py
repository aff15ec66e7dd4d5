"""Reads a user's model file.

The contract: ``model()`` returns an ``nn.Module`` and ``inputs()`` a tuple of example inputs.
Optional: ``profiles`` (list of profiles), ``scheme`` (``"none"`` for integer programs in an INT
profile), ``calibration()`` (list of input tuples), ``samples()`` (further input tuples to run),
``dynamic_shapes()`` (as torch.export takes it), ``configure_quantizer(quantizer)``.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from vgf_conformance.cases.case import Inputs
from vgf_conformance.vocabulary import Profile, UserError, known_scheme

DEFAULT_PROFILES = ("FP", "INT", "FP+INT")
#: Scheme where a file names none: quantised profiles are tried quantised.
QUANTISED = "a8w8-pc"


@dataclass(frozen=True)
class UserModel:
    """A user's model with its inputs; ``samples`` holds the example inputs first."""

    file: str
    module: torch.nn.Module
    samples: tuple[Inputs, ...]
    profiles: tuple[Profile, ...]
    scheme: str | None
    calibration: list[Inputs]
    dynamic_shapes: Any
    configure_quantizer: Callable[[Any], None] | None
    notes: tuple[str, ...] = ()

    def schemes(self, profile: Profile) -> tuple[str, ...]:
        """The schemes to lower ``profile`` with where the user asked for none in particular."""
        if self.scheme is not None:
            return (self.scheme,)
        return (QUANTISED,) if profile.integer else ("none",)


def load_user_model(file: str, seed: int) -> UserModel:
    """Import ``file`` and build its model, with ``seed`` behind whatever it draws.

    Raises UserError where the file breaks the contract, naming what is missing.
    """
    module = _import(file)
    model = _call(module, file, "model", seed)
    if isinstance(model, torch.jit.ScriptModule):
        raise UserError(
            f"{file}: model() returned a scripted module; torch.export needs the nn.Module itself"
        )
    if not isinstance(model, torch.nn.Module):
        raise UserError(f"{file}: model() returned {type(model).__name__}, not a torch.nn.Module")
    example = _inputs(file, "inputs()", _call(module, file, "inputs", seed))
    samples = _several(module, file, "samples", seed)
    calibration = _several(module, file, "calibration", seed)
    notes = _mode(model)
    return UserModel(
        file=file,
        module=model.eval(),
        samples=(example, *samples),
        profiles=_profiles(module, file),
        scheme=_scheme(module, file),
        calibration=calibration or [example],
        dynamic_shapes=_call(module, file, "dynamic_shapes", seed)
        if hasattr(module, "dynamic_shapes")
        else None,
        configure_quantizer=getattr(module, "configure_quantizer", None),
        notes=notes,
    )


def _mode(model: torch.nn.Module) -> tuple[str, ...]:
    """A note where it matters that the model came in train mode, as every new module does."""
    kinds = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    found = sorted(
        {type(part).__name__ for part in model.modules() if part.training and isinstance(part, kinds)}
    )
    if not found:
        return ()
    return (f"model() gives a model in train mode: evaluated in eval mode, which changes {', '.join(found)}",)


def _import(file: str) -> ModuleType:
    path = Path(file)
    if not path.is_file():
        raise UserError(f"{file}: {'is a folder' if path.is_dir() else 'no such file'}; give a Python file")
    spec = importlib.util.spec_from_file_location(f"vgf_conformance_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"{file}: importing it raises {_shown(error, file)}") from error
    for name in ("model", "inputs"):
        if not callable(getattr(module, name, None)):
            raise UserError(f"{file}: no {name}(); a model file defines model() and inputs()")
    return module


def _call(module: ModuleType, file: str, name: str, seed: int) -> Any:
    torch.manual_seed(seed)
    try:
        return getattr(module, name)()
    except (Exception, SystemExit) as error:
        raise UserError(f"{file}: {name}() raises {_shown(error, file)}") from error


def _several(module: ModuleType, file: str, name: str, seed: int) -> list[Inputs]:
    if not hasattr(module, name):
        return []
    found = _call(module, file, name, seed)
    if not isinstance(found, (list, tuple)):
        raise UserError(f"{file}: {name}() returned {type(found).__name__}, not a list of input tuples")
    return [_inputs(file, f"{name}()[{index}]", item) for index, item in enumerate(found)]


def _inputs(file: str, what: str, value: Any) -> Inputs:
    if not isinstance(value, tuple):
        raise UserError(f"{file}: {what} is a {type(value).__name__}, not a tuple of inputs")
    return value


def _profiles(module: ModuleType, file: str) -> tuple[Profile, ...]:
    names = getattr(module, "profiles", DEFAULT_PROFILES)
    if not isinstance(names, (list, tuple)) or not names:
        raise UserError(f"{file}: profiles is {names!r}, not a list of profiles such as ['FP', 'INT']")
    try:
        return tuple(Profile.parse(name) for name in names)
    except (UserError, TypeError) as error:
        raise UserError(f"{file}: profiles: {error}") from error


def _scheme(module: ModuleType, file: str) -> str | None:
    scheme = getattr(module, "scheme", None)
    try:
        return None if scheme is None else known_scheme(scheme)
    except UserError as error:
        raise UserError(f"{file}: scheme: {error}") from error


def _shown(error: BaseException, file: str) -> str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(Path(file))
    ]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"
