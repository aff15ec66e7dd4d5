"""Reads a user's model file.

The contract: ``model()`` returns an ``nn.Module`` and ``inputs()`` a tuple of example inputs.
Optional: ``profiles`` (list of profiles), ``scheme`` (``"none"`` for integer programs in an INT
profile), ``calibration()`` (list of input tuples), ``samples()`` (further input tuples to run),
``dynamic_shapes()`` (as torch.export takes it), ``configure_quantizer(quantizer)``, ``budget`` (the SQNR
that the outputs must keep against eager, in dB), ``task()`` (a ``vgf_conformance.cases.task.Task``),
``sequence`` (whether ``inputs()`` and ``samples()`` are calls in sequence, each with the buffers that the one
before left).
"""

from __future__ import annotations

import importlib.util
import inspect
import random
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import torch
from torch.export import AdditionalInputs, ShapesCollection
from torch.utils import _pytree as pytree

from vgf_conformance.cases.case import Inputs
from vgf_conformance.cases.elements import type_name, unreadable
from vgf_conformance.cases.modelfile import read_model_file
from vgf_conformance.cases.task import Task
from vgf_conformance.terminal import one_line
from vgf_conformance.vocabulary import SCHEMES, Profile, UserError, known_scheme

DEFAULT_PROFILES = ("FP", "INT", "FP+INT")
#: Scheme where a file names none: quantised profiles are tried quantised.
QUANTISED = "a8w8-pc"

#: No noise that single precision can show is farther from its signal.
_DECIBELS = 1000

_FUNCTIONS = ("calibration", "samples", "dynamic_shapes", "task")
_SHAPES = (dict, list, tuple, ShapesCollection, AdditionalInputs)


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
    budget: float | None = None
    task: Task | None = None
    sequence: bool = False
    notes: tuple[str, ...] = ()

    def schemes(self, profile: Profile) -> tuple[str, ...]:
        """The schemes to lower ``profile`` with where the user asked for none in particular."""
        if self.scheme is not None:
            return (self.scheme,)
        return (QUANTISED,) if profile.integer else ("none",)


def load_user_model(file: str, seed: int) -> UserModel:
    """Import ``file`` and build its model, with ``seed`` behind whatever it draws.

    The file's module stays in ``sys.modules``, as pickle, dataclasses and torch look for it there. Raises
    UserError where the file breaks the contract, naming what is wrong.
    """
    contract = _Contract(file, _import(file, seed), seed)
    model = contract.model()
    example = contract.tuple_of("inputs()", contract.call("inputs"))
    shapes = contract.dynamic_shapes()
    calibration = contract.several("calibration", example)
    samples = contract.several("samples", example)
    if shapes is None:
        contract.require_shapes(samples, example)
    return UserModel(
        file=file,
        module=model,
        samples=(example, *samples),
        profiles=contract.profiles(),
        scheme=contract.scheme(),
        calibration=calibration or [example],
        dynamic_shapes=shapes,
        configure_quantizer=contract.configure_quantizer(),
        budget=contract.budget(),
        sequence=contract.sequence(),
        task=contract.task(),
        notes=contract.notes,
    )


def _import(file: str, seed: int) -> ModuleType:
    content = read_model_file(file)
    # A name of its own: a file may be called numpy.py.
    name = f"vgf_conformance_user_{re.sub(r'[^0-9A-Za-z_]', '_', Path(file).stem)}"
    loader = _Loader(name, file, content)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _sow(seed)
    try:
        loader.exec_module(module)
    except BaseException as error:
        raise UserError(f"{file}: importing it raises {_shown(error, file)}") from error
    return module


class _Loader(SourceFileLoader):
    """Runs the bytes that were read, and leaves no compiled file beside them."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType | None:
        """The compiled bytes."""
        return self.source_to_code(self._content, self.path)


def _sow(seed: int) -> None:
    """Let whatever draws random numbers draw the same ones in each run."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


class _Contract:
    """What ``module``, the imported ``file``, defines; everything here raises UserError."""

    def __init__(self, file: str, module: ModuleType, seed: int) -> None:
        self._file = file
        self._seed = seed
        self._names = vars(module)
        self.notes: tuple[str, ...] = ()
        for name in ("model", "inputs"):
            if name not in self._names:
                raise self._wrong(f"no {name}(); a model file defines model() and inputs()")
        for name in ("model", "inputs", *_FUNCTIONS):
            if name in self._names:
                self._require_function(name)

    def call(self, name: str) -> Any:
        """What the function ``name`` returns."""
        _sow(self._seed)
        try:
            return self._names[name]()
        except BaseException as error:
            raise self._wrong(f"{name}() raises {_shown(error, self._file)}") from error

    def model(self) -> torch.nn.Module:
        """The model in eval mode."""
        model = self.call("model")
        if isinstance(model, torch.jit.ScriptModule):
            raise self._wrong("model() returned a scripted module; torch.export needs the nn.Module itself")
        if isinstance(model, type):
            raise self._wrong(
                f"model() returned the class {model.__name__}; return a model: {model.__name__}()"
            )
        if not isinstance(model, torch.nn.Module):
            raise self._wrong(f"model() returned {type_name(model)}, not a torch.nn.Module")
        self.notes = _mode(model)
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            self._require_readable(f"model(): {name}", tensor)
        try:
            return model.eval()
        except BaseException as error:
            raise self._wrong(f"eval() of the model raises {_shown(error, self._file)}") from error

    def several(self, name: str, example: Inputs) -> list[Inputs]:
        """The input tuples that the function ``name`` returns; none where there is no such function.

        They have the parts and dtypes of ``example``.
        """
        if name not in self._names:
            return []
        found = self.call(name)
        if not isinstance(found, (list, tuple)):
            raise self._wrong(f"{name}() returned {type_name(found)}, not a list of input tuples")
        if not found:
            raise self._wrong(f"{name}() returned nothing; return a list of input tuples, or leave it out")
        for index, item in enumerate(found):
            self.tuple_of(f"{name}()[{index}]", item)
            self._require_parts(f"{name}()[{index}]", item, example)
        return list(found)

    def tuple_of(self, what: str, value: Any) -> Inputs:
        """``value``, where it is a tuple with tensors that lie in memory."""
        if not isinstance(value, tuple):
            hint = ": write (x,)" if isinstance(value, torch.Tensor) else ""
            raise self._wrong(f"{what} is a {type_name(value)}, not a tuple of inputs{hint}")
        try:
            leaves = _leaves(value)
        except RecursionError as error:
            raise self._wrong(f"{what} is nested too deeply; give fewer lists in lists") from error
        for place, leaf in leaves:
            self._require_readable(f"{what}{place}", leaf)
        return value

    def require_shapes(self, samples: list[Inputs], example: Inputs) -> None:
        """What runs in a program that was exported for ``example`` has its shapes."""
        for index, sample in enumerate(samples):
            for (place, tensor), (_, right) in zip(_tensors(sample), _tensors(example), strict=True):
                if tensor.shape != right.shape:
                    raise self._wrong(
                        f"samples()[{index}]{place} has the shape {list(tensor.shape)}, but inputs(){place} "
                        f"has {list(right.shape)}; give the same shape, or define dynamic_shapes()"
                    )

    def dynamic_shapes(self) -> Any:
        """As torch.export takes them; None where the file says nothing of them."""
        shapes = self.call("dynamic_shapes") if "dynamic_shapes" in self._names else None
        if shapes is not None and not isinstance(shapes, _SHAPES):
            raise self._wrong(f"dynamic_shapes() returned {type_name(shapes)}, not a dict or tuple of shapes")
        return shapes

    def profiles(self) -> tuple[Profile, ...]:
        """The profiles that the file names, or the default."""
        names = self._names.get("profiles", DEFAULT_PROFILES)
        if not isinstance(names, (list, tuple)) or not names:
            raise self._wrong(f"profiles is {_value(names)}, not a list of profiles such as ['FP', 'INT']")
        for index, name in enumerate(names):
            if not isinstance(name, str):
                raise self._wrong(f"profiles[{index}] is {_value(name)}, not a string such as 'FP'")
        try:
            return tuple(Profile.parse(name) for name in names)
        except UserError as error:
            raise self._wrong(f"profiles: {error}") from error

    def scheme(self) -> str | None:
        """The scheme that the file names, if any."""
        scheme = self._names.get("scheme")
        if scheme is None:
            return None
        if not isinstance(scheme, str):
            raise self._wrong(f"scheme is {_value(scheme)}, not one of {', '.join(map(repr, SCHEMES))}")
        try:
            return known_scheme(scheme)
        except UserError as error:
            raise self._wrong(f"scheme: {error}") from error

    def configure_quantizer(self) -> Callable[[Any], None] | None:
        """The function that configures a quantizer, if any."""
        function = self._names.get("configure_quantizer")
        if function is None:
            return None
        advice = "define configure_quantizer(quantizer) with def, or leave it out"
        if not inspect.isroutine(function) or not hasattr(function, "__code__"):
            raise self._wrong(f"configure_quantizer is {_value(function)}, not a function: {advice}")
        try:
            inspect.signature(function).bind(None)
        except TypeError as error:
            raise self._wrong(
                f"configure_quantizer does not take one quantizer ({error}): {advice}"
            ) from error
        return function

    def sequence(self) -> bool:
        """Whether inputs() and samples() are calls in sequence."""
        value = self._names.get("sequence", False)
        if not isinstance(value, bool):
            raise self._wrong(f"sequence is {_value(value)}, not True or False")
        if value and "samples" not in self._names:
            raise self._wrong("sequence is True, but there is no samples() for the calls after inputs()")
        return value

    def budget(self) -> float | None:
        """The decibels that the file asks for, if any."""
        value = self._names.get("budget")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _DECIBELS:
            raise self._wrong(f"budget is {_value(value)}, not a number of decibels such as 20")
        return float(value)

    def task(self) -> Task | None:
        """What the file says that the model is for, if anything."""
        if "task" not in self._names:
            return None
        task = self.call("task")
        if not isinstance(task, Task):
            raise self._wrong(f"task() returned {type_name(task)}, not a vgf_conformance.cases.task.Task")
        drop = task.drop
        if (
            isinstance(drop, bool)
            or not isinstance(drop, (int, float))
            or not 0 <= drop <= sys.float_info.max
        ):
            raise self._wrong(
                f"task(): drop is {_value(drop)}; give how far the mean score may fall, 0 or more"
            )
        return task

    def _require_function(self, name: str) -> None:
        value = self._names[name]
        if isinstance(value, torch.nn.Module) or not callable(value):
            raise self._wrong(f"{name} is {_value(value)}, not a function: define {name}()")
        try:
            inspect.signature(value).bind()
        except TypeError as error:
            raise self._wrong(f"{name}() is called without arguments ({error}): define {name}()") from error
        except ValueError:
            # Some that are not written in Python do not say what they take.
            return

    def _require_readable(self, what: str, leaf: object) -> None:
        if trouble := unreadable(leaf):
            raise self._wrong(f"{what} {trouble}")

    def _require_parts(self, what: str, value: Inputs, example: Inputs) -> None:
        if len(value) != len(example):
            many = f"{len(value)} input{'' if len(value) == 1 else 's'}"
            raise self._wrong(f"{what} has {many}, but inputs() has {len(example)}; give as many")
        leaves, structure = pytree.tree_flatten_with_path(value)
        expected, wanted = pytree.tree_flatten_with_path(example)
        if structure != wanted:
            raise self._wrong(f"{what} is not made of the same parts as inputs(); give a tuple as it does")
        for (path, leaf), (_, right) in zip(leaves, expected, strict=True):
            if _sort(leaf) != _sort(right):
                place = pytree.keystr(path)
                raise self._wrong(
                    f"{what}{place} is {_sort(leaf)}, but inputs(){place} is {_sort(right)}; give the same"
                )

    def _wrong(self, what: str) -> UserError:
        return UserError(f"{self._file}: {what}")


def _leaves(value: Inputs) -> list[tuple[str, Any]]:
    """The leaves of a tuple, each with its place: ``[0]``, ``[1]['mask']``."""
    leaves, _ = pytree.tree_flatten_with_path(value)
    return [(pytree.keystr(path), leaf) for path, leaf in leaves]


def _tensors(value: Inputs) -> list[tuple[str, torch.Tensor]]:
    """The tensors among them."""
    return [(place, leaf) for place, leaf in _leaves(value) if isinstance(leaf, torch.Tensor)]


def _sort(leaf: Any) -> str:
    """What a program that was exported for ``leaf`` takes in its place."""
    return str(leaf.dtype) if isinstance(leaf, torch.Tensor) else f"of type {type_name(leaf)}"


def _mode(model: torch.nn.Module) -> tuple[str, ...]:
    """A note where it matters that the model came in train mode, as every new module does."""
    kinds = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    found = sorted(
        {type(part).__name__ for part in model.modules() if part.training and isinstance(part, kinds)}
    )
    if not found:
        return ()
    return (f"model() gives a model in train mode: evaluated in eval mode, which changes {', '.join(found)}",)


def _value(value: Any) -> str:
    """``value`` as a message shows it; its own ``__repr__`` may do anything."""
    if isinstance(value, torch.nn.Module):
        return f"a {type_name(value)}"
    try:
        return one_line(repr(value), 60)
    except BaseException:
        return f"a {type_name(value)}"


def _shown(error: BaseException, file: str) -> str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(Path(file))
    ]
    where = f" (line {lines[-1]})" if lines else ""
    try:
        text = one_line(str(error))
    except BaseException:
        text = ""
    return f"{type_name(error)}{': ' if text else ''}{text}{where}"
