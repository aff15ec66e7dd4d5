"""Holds this harness's comparison against tosa-tools' verifier on results planted around each bound.

Run as ``python -m vgf_conformance.tosatests.agreement suites/tosa/test_*.py``: for each generated test,
single elements of the right result are moved to the last number inside the bound and to the first one
outside, on both sides, and to NaN, infinity, zero and their neighbours. Both judges must say the same of
each. The verifier has the limits of TOSA 1.1's draft for dot products, so ours is asked for the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.operators.base import Bounded
from vgf_conformance.comparison.propagation import NotCovered, propagate
from vgf_conformance.formats.tosa import storage
from vgf_conformance.tosatests.collect import Declared, declared_tests
from vgf_conformance.tosatests.evaluate import Array, Fault, Prepared, TosaEvaluator, verify
from vgf_conformance.tosatests.session import open_tosa_evaluator

#: Elements of an output that are moved, one at a time.
_ELEMENTS = 4
#: Numbers that the bounds treat apart.
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0)


@dataclass
class Agreement:
    """How many planted results both judges saw, and those on which they differ."""

    checks: int = 0
    accepted: int = 0
    disagreements: list[str] = field(default_factory=list)

    def add(self, other: Agreement) -> None:
        """Count another test's too."""
        self.checks += other.checks
        self.accepted += other.accepted
        self.disagreements += other.disagreements


@dataclass(frozen=True)
class Planted:
    """One output of a test with one element moved: ``what`` says where to."""

    what: str
    output: int
    array: Array


def agreement(prepared: Prepared) -> Agreement:
    """Both verdicts on every planted result of one test."""
    found = Agreement()
    graph = replace(prepared.graph, version="1.1.0-draft")
    right = prepared.reference.arrays
    for planted in _planted(prepared):
        actual = [*right[: planted.output], planted.array, *right[planted.output + 1 :]]
        judged = judge_device(graph, prepared.inputs, actual, right, target="planted", delegate="")
        ours = all(comparison.passed for comparison in judged)
        theirs = all(comparison.passed for comparison in verify(prepared, actual, "planted"))
        found.checks += 1
        found.accepted += theirs
        if ours != theirs:
            words = {True: "passes", False: "fails"}
            found.disagreements.append(
                f"{planted.what} in output {planted.output}: {words[ours]} by our comparison "
                f"({judged[planted.output].rule}), {words[theirs]} by the verifier"
            )
    return found


def _planted(prepared: Prepared) -> Iterator[Planted]:
    try:
        bounded: Sequence[Bounded | None] = propagate(
            replace(prepared.graph, version="1.1.0-draft"), prepared.inputs
        )
    except NotCovered:
        bounded = [None] * len(prepared.graph.outputs)
    for output, (right, exact) in enumerate(zip(prepared.reference.arrays, bounded, strict=True)):
        dtype = prepared.graph.tensors[prepared.graph.outputs[output]].dtype
        for index in np.linspace(0, right.size - 1, min(_ELEMENTS, right.size)).astype(int):
            for what, value in dict(_values(right.reshape(-1)[index], exact, int(index), dtype)).items():
                array = np.array(right)
                array.reshape(-1)[index] = value
                yield Planted(f"{what} at {index}", output, array)


def _values(right: Any, exact: Bounded | None, index: int, dtype: str) -> Iterator[tuple[str, Any]]:
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
        if exact is not None and np.isfinite(exact.error.reshape(-1)[index]):
            yield from _around(exact, index, dtype)


def _around(exact: Bounded, index: int, dtype: str) -> Iterator[tuple[str, Any]]:
    """The representable numbers on either side of the two ends of the allowed range."""
    kind = storage(dtype).type
    value, error = float(exact.value.reshape(-1)[index]), float(exact.error.reshape(-1)[index])
    if not np.isfinite(value):
        return
    for name, sign in (("low", -1.0), ("high", 1.0)):
        end = value + sign * error
        with np.errstate(over="ignore"):
            near = np.asarray(end).astype(kind)
            beyond = float(near.astype(np.float64) - end) * sign > 0
            inward, outward = (
                np.asarray(-sign * np.inf).astype(kind),
                np.asarray(sign * np.inf).astype(kind),
            )
            inside = np.nextafter(near, inward) if beyond else near
            yield f"inside the {name} end", inside
            yield f"outside the {name} end", np.nextafter(inside, outward)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts and each disagreement; 0 where there is none."""
    parser = argparse.ArgumentParser(
        prog="agreement", description="Compare our comparison with the verifier."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.py")
    parser.add_argument("--every", type=int, default=1, help="take every Nth test only (default: 1)")
    parsed = parser.parse_args(arguments)
    total, operators, tests = Agreement(), set(), 0
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        evaluator = open_tosa_evaluator(("reference",), None, Path(folder))
        try:
            for file in parsed.files:
                for declared in _declared(file):
                    for test in declared.chosen[:: parsed.every]:
                        found = _of_test(evaluator, declared.tests, test)
                        if found is not None:
                            total.add(found)
                            tests += 1
                            operators.add(declared.tests.operator)
                print(f"{file.name}: {tests} tests, {total.checks} checks so far", flush=True)
        finally:
            evaluator.close()
    print("\n".join(total.disagreements))
    print(
        f"{total.checks} checks of {tests} tests of {len(operators)} operators: {total.accepted} accepted, "
        f"{total.checks - total.accepted} refused by the verifier; {len(total.disagreements)} disagreements"
    )
    return 1 if total.disagreements else 0


def _declared(file: Path) -> list[Declared]:
    spec = importlib.util.spec_from_file_location(f"agreement_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise SystemExit(f"{file}: no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return declared_tests(module, file.name)


def _of_test(evaluator: TosaEvaluator, tests: Any, test: Any) -> Agreement | None:
    """None for a test that the reference model cannot run: the suite's own record says so."""
    try:
        prepared = evaluator.prepared(tests, test)
    except Fault:
        return None
    found = agreement(prepared)
    found.disagreements = [f"{tests.operator} {test.name}: {text}" for text in found.disagreements]
    return found


if __name__ == "__main__":
    sys.exit(main())
