"""Holds this harness's comparison against tosa-tools' verifier on results planted around each bound.

Run as ``python -m vgf_conformance.tosatests.agreement suites/tosa/test_*.py``: for each generated test,
single elements of the right result are moved to the last number inside the bound and to the first one
outside, on both sides, to the right result's neighbours, and to NaN, infinity and zero; of dot products
all elements are moved together, to either side of the limits on their mean. Both judges must say the same
of each, but for what ``explained`` lists. The verifier has the limits of TOSA 1.1's draft for dot products,
so ours is asked for the same.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.operators.base import Bounded
from vgf_conformance.comparison.propagation import NotCovered, propagate
from vgf_conformance.formats.tosa import storage
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.terminal import say
from vgf_conformance.tosatests.collect import Declared, declared_tests
from vgf_conformance.tosatests.declare import TosaTest, TosaTests
from vgf_conformance.tosatests.evaluate import Array, Fault, Prepared, TosaEvaluator, verify
from vgf_conformance.tosatests.explained import EXPLAINED, Difference, Explained
from vgf_conformance.tosatests.session import open_tosa_evaluator

#: The version whose limits the verifier has.
_VERSION = "1.1.0-draft"
#: Elements of an output that are moved, one at a time.
_ELEMENTS = 4
#: Numbers that the bounds treat apart.
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0)


@dataclass
class Agreement:
    """How many planted results both judges saw, and those on which they differ."""

    checks: int = 0
    accepted: int = 0
    differences: list[Difference] = field(default_factory=list)
    combinations: set[tuple[str, str, str]] = field(default_factory=set)

    def add(self, other: Agreement) -> None:
        """Count another test's too."""
        self.checks += other.checks
        self.accepted += other.accepted
        self.differences += other.differences
        self.combinations |= other.combinations


@dataclass(frozen=True)
class Planted:
    """One output of a test with elements moved: ``what`` says where to; ``index`` is None for all of them."""

    what: str
    output: int
    array: Array
    index: int | None = None
    exact: float | None = None
    error: float | None = None


def agreement(prepared: Prepared, tests: TosaTests, test: TosaTest) -> Agreement:
    """Both verdicts on every planted result of one test."""
    found = Agreement(combinations={(tests.operator, test.dtypes, test.listed.name)})
    graph = replace(prepared.graph, version=_VERSION)
    right = prepared.reference.arrays
    for planted in _planted(prepared):
        actual = [*right[: planted.output], planted.array, *right[planted.output + 1 :]]
        judged = judge_device(graph, prepared.inputs, actual, right, target="planted", delegate="")
        ours = all(comparison.passed for comparison in judged)
        theirs = all(comparison.passed for comparison in verify(prepared, actual, "planted"))
        found.checks += 1
        found.accepted += theirs
        if ours != theirs:
            found.differences.append(_difference(prepared, tests, test, planted, ours))
    return found


def _difference(
    prepared: Prepared, tests: TosaTests, test: TosaTest, planted: Planted, ours: bool
) -> Difference:
    tensor = prepared.graph.tensors[prepared.graph.outputs[planted.output]]
    operator = next(item for item in prepared.graph.operators if item.name == tests.operator)
    value = None if planted.index is None else float(planted.array.reshape(-1)[planted.index])
    return Difference(
        operator=tests.operator,
        test=test.name,
        dtype=tensor.dtype,
        what=planted.what,
        output=planted.output,
        ours=ours,
        value=value,
        exact=planted.exact,
        error=planted.error,
        attributes=operator.attributes,
        compliance=_compliance(prepared, planted.output),
    )


def _compliance(prepared: Prepared, output: int) -> Mapping[str, Any]:
    """What the test's description tells the verifier of an output."""
    tensors: Mapping[str, Mapping[str, Any]] = prepared.generated.description["meta"]["compliance"]["tensors"]
    return tensors[prepared.graph.outputs[output]]


def _planted(prepared: Prepared) -> Iterator[Planted]:
    try:
        bounded: Sequence[Bounded | None] = propagate(
            replace(prepared.graph, version=_VERSION), prepared.inputs
        )
    except NotCovered:
        bounded = [None] * len(prepared.graph.outputs)
    for output, (right, exact) in enumerate(zip(prepared.reference.arrays, bounded, strict=True)):
        dtype = prepared.graph.tensors[prepared.graph.outputs[output]].dtype
        for index in np.linspace(0, right.size - 1, min(_ELEMENTS, right.size)).astype(int):
            place = int(index)
            middle, error = (None, None) if exact is None else _at(exact, place)
            for what, value in dict(_values(right.reshape(-1)[place], middle, error, dtype)).items():
                array = np.array(right)
                array.reshape(-1)[place] = value
                yield Planted(f"{what} at {place}", output, array, place, middle, error)
        limits = _compliance(prepared, output).get("dot_product_info")
        if limits is not None and exact is not None:
            yield from _together(right, exact, output, limits)


def _at(exact: Bounded, index: int) -> tuple[float, float]:
    return float(exact.value.reshape(-1)[index]), float(exact.error.reshape(-1)[index])


def _values(right: Any, exact: float | None, error: float | None, dtype: str) -> Iterator[tuple[str, Any]]:
    if dtype == "bool":
        yield "the other", ~right
    elif dtype not in FORMATS:
        info = np.iinfo(storage(dtype))
        for step in (-2, -1, 1, 2):
            if info.min <= int(right) + step <= info.max:
                yield f"{step:+d}", int(right) + step
    else:
        for number in _SPECIAL:
            yield str(number), number
        for name, sign in (("below", -1.0), ("above", 1.0)):
            yield f"the number {name}", _next(right, sign)
        if exact is not None and error is not None and np.isfinite(exact) and np.isfinite(error):
            yield from _around(exact, error, dtype)


def _next(value: Any, sign: float) -> Any:
    """The neighbouring number of the same type."""
    with np.errstate(over="ignore"):
        return np.nextafter(value, np.asarray(sign * np.inf).astype(value.dtype))


def _around(exact: float, error: float, dtype: str) -> Iterator[tuple[str, Any]]:
    """The representable numbers on either side of the two ends of the allowed range."""
    for name, sign in (("low", -1.0), ("high", 1.0)):
        end = exact + sign * error
        with np.errstate(over="ignore"):
            near = np.asarray(end).astype(storage(dtype))
        beyond = float(near.astype(np.float64) - end) * sign > 0
        inside = _next(near, -sign) if beyond else near
        yield f"inside the {name} end", inside
        yield f"outside the {name} end", _next(inside, sign)


def _together(right: Array, exact: Bounded, output: int, limits: Mapping[str, Any]) -> Iterator[Planted]:
    """Results whose errors are allowed one by one: as large as their mean square may be, and of one sign."""
    usable = np.isfinite(exact.error) & np.isfinite(exact.value)
    unit = np.where(usable, exact.error, 0.0) / limits["abs_bound"]
    largest = np.sqrt(limits["variance_error_bound"])
    turns = np.resize([1.0, -1.0], right.size).reshape(right.shape)
    for what, steps in (
        ("all inside the mean square", 0.9 * turns),
        ("all outside the mean square", 1.1 * turns),
        ("all too high", 0.5),
        ("all too low", -0.5),
    ):
        with np.errstate(over="ignore", invalid="ignore"):
            moved = (np.where(usable, exact.value, 0.0) + steps * largest * unit).astype(right.dtype)
        yield Planted(what, output, np.where(usable, moved, right))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts and each difference; 0 where all are explained and no explanation is stale."""
    parser = argparse.ArgumentParser(
        prog="agreement", description="Compare our comparison with the verifier."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.py")
    parser.add_argument("--every", type=int, default=1, help="take every Nth test only (default: 1)")
    parsed = parser.parse_args(arguments)
    total, tests = Agreement(), 0
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        evaluator = open_tosa_evaluator(("reference",), DriverChoice(), Path(folder))
        try:
            for file in parsed.files:
                for declared in _declared(file):
                    for test in declared.chosen[:: parsed.every]:
                        found = _of_test(evaluator, declared.tests, test)
                        if found is not None:
                            total.add(found)
                            tests += 1
                say(f"{file.name}: {tests} tests, {total.checks} checks so far")
        finally:
            evaluator.close()
    return report(total, EXPLAINED, complete=parsed.every == 1)


def report(total: Agreement, table: Sequence[Explained], *, complete: bool) -> int:
    """Print what was found; 1 where a difference has no explanation, or an explanation no difference.

    The latter counts only in a ``complete`` run, and for explanations whose operators were all tested.
    """
    reasons = [next((item for item in table if item.covers(found)), None) for found in total.differences]
    counts = Counter(item.name for item in reasons if item is not None)
    for found, reason in zip(total.differences, reasons, strict=True):
        if reason is None:
            say(str(found))
    operators = {operator for operator, *_ in total.combinations}
    stale = [
        item for item in table if complete and operators.issuperset(item.operators) and not counts[item.name]
    ]
    for item in table:
        if counts[item.name]:
            pairs = zip(total.differences, reasons, strict=True)
            names = ", ".join(sorted({found.operator for found, reason in pairs if reason is item}))
            words = f"explained: {counts[item.name]} of {names} by '{item.name}'"
            say(f"{words}, {item.right} right: {item.reason}")
    for item in stale:
        say(f"stale: nothing is explained by '{item.name}'")
    dtypes = {dtype for _, dtype, _ in total.combinations}
    unexplained = reasons.count(None)
    say(
        f"{total.checks} checks of {len(total.combinations)} tests of {len(operators)} operators and "
        f"{len(dtypes)} types of operands: {total.accepted} accepted, {total.checks - total.accepted} "
        f"refused by the verifier; {len(total.differences)} disagreements, {unexplained} unexplained"
    )
    return 1 if unexplained or stale else 0


def _declared(file: Path) -> list[Declared]:
    spec = importlib.util.spec_from_file_location(f"agreement_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise SystemExit(f"{file}: no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return declared_tests(module, file.name)


def _of_test(evaluator: TosaEvaluator, tests: TosaTests, test: TosaTest) -> Agreement | None:
    """None for a test that the reference model cannot run: the suite's own record says so."""
    try:
        prepared = evaluator.prepared(tests, test)
    except Fault:
        return None
    with _quiet():
        return agreement(prepared, tests, test)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the verifier, a library, writes to standard error about each refusal."""
    sys.stderr.flush()
    kept = os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(sink)
        os.close(kept)


if __name__ == "__main__":
    sys.exit(main())
