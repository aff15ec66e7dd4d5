"""Finds the cases that a suite module declares, names them after their variables, and refuses bad ones."""

from __future__ import annotations

import ast
import collections
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from vgf_conformance.cases.case import Case, Sample
from vgf_conformance.evaluation.eager import EagerFailure, run_eager, tensors
from vgf_conformance.evaluation.operators import is_known
from vgf_conformance.formats.tosa import tosa_operators
from vgf_conformance.quiet import quiet
from vgf_conformance.vocabulary import UserError


def declared_cases(module: ModuleType, file: str) -> list[Case]:
    """The module-level cases of ``module`` in the order in which they are declared.

    ``file`` is the suite file, relative to the suites folder. Raises UserError for a declaration that
    is bound to two names or takes the name of another, names a sample or a configuration twice, names
    an operator that torch or TOSA lacks, states a tolerance without a reason, or needs a package of no
    certain version.
    """
    found = [(name, value) for name, value in vars(module).items() if isinstance(value, Case)]
    twice = _doubled([id(case) for _, case in found])
    if twice:
        names = ", ".join(name for name, case in found if id(case) in twice)
        raise UserError(f"{file}: one case has several names: {names}")
    _require_lasting_names(module, file, {name for name, _ in found})
    for name, case in found:
        _require_unique(file, name, "sample", [sample.name for sample in case.samples])
        _require_unique(file, name, "configuration", case.configurations)
        if case.lsb is not None and not case.lsb_reason:
            raise UserError(f"{file}: {name} allows {case.lsb:g} LSB without a reason: give lsb_reason")
        if case.budget is not None and not case.budget.reason.strip():
            raise UserError(f"{file}: {name} has a budget of {case.budget.sqnr_db:g} dB without a reason")
        unknown = [operator for operator in case.floating if operator not in tosa_operators()]
        if unknown:
            raise UserError(f"{file}: {name}: floating names {unknown[0]}, which is no TOSA operator")
        loose = [need for need in case.needs if not all(need.partition("=="))]
        if loose:
            raise UserError(f"{file}: {name} needs {', '.join(loose)}: write name==version")
        if case.kind == "operator" and not is_known(case.operator):
            raise UserError(
                f"{file}: {name} names the operator {case.operator}, which torch does not have: "
                "write namespace, name and overload, such as aten.add.Tensor"
            )
    return [dataclasses.replace(case, name=name, file=file) for name, case in found]


def require_eager(case: Case, sample: Sample, seed: int) -> None:
    """Raise UserError where the sample's own inputs, module or eager run raise.

    Of operators alone: that takes a millisecond each. A model may take minutes, so its eager failure
    is found when it is evaluated, and is its verdict.
    """
    if case.kind != "operator":
        return
    where = f"{case.file}: {case.name}, sample {sample.name}"
    try:
        inputs, module = sample.inputs(seed), sample.module(seed)
    except Exception as error:
        raise UserError(f"{where}: making it raises {type(error).__name__}: {_line(error)}") from error
    try:
        with quiet():
            tensors(run_eager(module, inputs))
    except EagerFailure as error:
        raise UserError(f"{where}: eager PyTorch itself raises {_line(error)}") from error


def _require_lasting_names(module: ModuleType, file: str, names: set[str]) -> None:
    """A second assignment to a case's name silently drops the first one: only the source shows it."""
    path = getattr(module, "__file__", None)
    if path is None:
        return
    lines = collections.defaultdict(list)
    for name, line in _bindings(ast.parse(Path(path).read_bytes())):
        lines[name].append(str(line))
    for name in lines:
        if name in names and len(lines[name]) > 1:
            raise UserError(f"{file}: {name} is declared twice, in lines {' and '.join(lines[name])}")


def _bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The names that a module's own statements bind, each time that they do, with the line."""
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield statement.name, statement.lineno
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id, node.lineno


def _require_unique(file: str, name: str, what: str, values: object) -> None:
    twice = _doubled(list(values))  # type: ignore[call-overload]
    if twice:
        raise UserError(f"{file}: {name} declares the {what} {', '.join(map(str, twice))} twice")


def _doubled(values: list[object]) -> list[object]:
    return [value for value, count in collections.Counter(values).items() if count > 1]


def _line(error: BaseException) -> str:
    """The first line of what it says: the rest is for a traceback."""
    return str(error).strip().split("\n")[0]
