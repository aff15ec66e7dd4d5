"""What the installed executorch claims for the VGF backend: operator x profile x dtype x mode.

Two sources. The partitioner's registry says which operators it takes in which profile, without
dtypes. The documentation's table, made by executorch's own generator from the calls in the
backend's tests, adds dtypes and quantisation modes: a test call exists, whether or not it passed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vgf_conformance.cases.case import Case
from vgf_conformance.cases.dtypes import computed_dtypes
from vgf_conformance.results.claims import Claim, Computation, Source, observed
from vgf_conformance.vocabulary import UserError

__all__ = ["Claim", "Pair", "Source", "claims", "covered", "uncovered"]

#: An operator in a profile.
Pair = tuple[str, str]

#: The generator's name for a dtype: dtype, profile and quantisation mode of the test calls that have it.
_DOCUMENTED = {
    "FP32": ("float32", "FP", "none"),
    "FP16": ("float16", "FP", "none"),
    "BF16": ("bfloat16", "FP", "none"),
    "FP8E4M3": ("float8_e4m3fn", "FP", "none"),
    "FP8E5M2": ("float8_e5m2", "FP", "none"),
    "BOOL": ("bool", "FP", "none"),
    "INT8": ("int8", "INT", "a8w8"),
    "INT16": ("int16", "INT", "a16w8"),
    "INT4": ("int4", "INT", "a8w4"),
}

#: Names that torch has no overload for, in the generator's aliases of edge operators and in the backend's
#: tests, with what those tests export to.
_MISNAMED = {
    "aten.bitwise_left_shift.Scalar": "aten.__lshift__.Scalar",
    "aten.bitwise_right_shift.Scalar": "aten.__rshift__.Scalar",
    "aten.log_softmax.default": "aten.log_softmax.int",
    "aten.softmax.default": "aten.softmax.int",
}


def claims() -> tuple[Claim, ...]:
    """Every claim of the installed executorch, sorted.

    Raises UserError where that executorch does not ship what its claims are read from.
    """
    return tuple(sorted(set(_claims())))


def covered(cases: Iterable[Case]) -> set[Computation]:
    """What the cases are lowered for, by operator, profile, dtype and mode; each sample is drawn once."""
    found: set[Computation] = set()
    for case in cases:
        for sample, (profile, scheme) in case.plan():
            dtypes = computed_dtypes(sample.module(seed=0), sample.inputs(seed=0), scheme)
            found |= observed(case.operator, profile, scheme, dtypes)
    return found


def uncovered(cases: Iterable[Case]) -> list[Pair]:
    """(operator, profile) pairs of the registry that no case is lowered for, sorted."""
    covered = {(case.operator, profile) for case in cases for _, (profile, _) in case.plan()}
    claimed = {
        (claim.operator, claim.profile) for claim in claims() if claim.source is not Source.DOCUMENTATION
    }
    return sorted(claimed - covered)


def _claims() -> Iterator[Claim]:
    generator = _generator()
    package = _package(generator)
    # Its first argument goes on sys.path, where the folder that holds the package is already.
    registry = generator._collect_backend_supported_ops(package.parent)
    try:
        documented, _, _ = generator._scan_backend_pipeline_tests(package)
    except RuntimeError as error:
        raise UserError(f"executorch's documented claims come from its tests: {error}") from error
    for operator, row in registry.items():
        for profile in row.support_profiles:
            rows = [
                documented[name]
                for name in generator._coverage_aliases(operator, profile)
                if name in documented
            ]
            found = _details(rows, profile)
            for dtype, mode in found or {("", "")}:
                yield Claim(_name(operator), profile, dtype, mode, Source.BOTH if found else Source.REGISTRY)
    for operator, row in documented.items():
        # A misspelt name in a test is no public operator, and the documentation leaves it out too.
        if operator in registry or not row.pytorch_apis:
            continue
        for profile in row.support_profiles:
            for dtype, mode in _details([row], profile):
                yield Claim(_name(operator), profile, dtype, mode, Source.DOCUMENTATION)


def _details(rows: Iterable[Any], profile: str) -> set[tuple[str, str]]:
    """Dtypes and modes that the table's ``rows`` have in ``profile``."""
    made = [_DOCUMENTED[name] for row in rows if profile in row.support_profiles for name in row.dtypes]
    return {(dtype, mode) for dtype, where, mode in made if where == profile}


def _name(operator: str) -> str:
    name = operator.removeprefix("torch.ops.")
    return _MISNAMED.get(name, name)


def _generator() -> Any:
    try:
        return importlib.import_module("executorch.backends.arm.scripts.docgen.generate_vgf_op_support")
    except ImportError as error:
        version = importlib.metadata.version("executorch")
        raise UserError(
            f"executorch {version} has no generator of its operator table, which its claims are read from"
        ) from error


def _package(generator: Any) -> Path:
    """The folder of the executorch package."""
    return Path(generator.__file__).parents[4]
