"""Finds the cases that a suite module declares, and names them after their variables."""

from __future__ import annotations

import collections
import dataclasses
from types import ModuleType

from vgf_conformance.cases.case import Case
from vgf_conformance.vocabulary import UserError


def declared_cases(module: ModuleType, file: str) -> list[Case]:
    """The module-level cases of ``module`` in the order in which they are declared.

    ``file`` is the suite file, relative to the suites folder. Raises UserError for a declaration that
    is bound to two names, names a sample or a configuration twice, or allows LSB without a reason.
    """
    found = [(name, value) for name, value in vars(module).items() if isinstance(value, Case)]
    twice = _doubled([id(case) for _, case in found])
    if twice:
        names = ", ".join(name for name, case in found if id(case) in twice)
        raise UserError(f"{file}: one case has several names: {names}")
    for name, case in found:
        _require_unique(file, name, "sample", [sample.name for sample in case.samples])
        _require_unique(file, name, "configuration", case.configurations)
        if case.lsb is not None and not case.lsb_reason:
            raise UserError(f"{file}: {name} allows {case.lsb:g} LSB without a reason: give lsb_reason")
    return [dataclasses.replace(case, name=name, file=file) for name, case in found]


def _require_unique(file: str, name: str, what: str, values: object) -> None:
    twice = _doubled(list(values))  # type: ignore[call-overload]
    if twice:
        raise UserError(f"{file}: {name} declares the {what} {', '.join(map(str, twice))} twice")


def _doubled(values: list[object]) -> list[object]:
    return [value for value, count in collections.Counter(values).items() if count > 1]
