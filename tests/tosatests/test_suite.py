"""A TOSA suite under pytest: ids, tiers, options, expectations, and a run shared by two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

# What pytest runs inside this process must find imported already: torch registers its operators once.
import vgf_conformance.evaluation.session  # noqa: F401
from vgf_conformance.results.record import Record
from vgf_conformance.results.store import read_results
from vgf_conformance.vocabulary import Verdict

pytest_plugins = ["pytester"]

FILE = "suites/tosa/test_small.py"

SUITE = """
from vgf_conformance.tosatests.declare import not_covered, tosa_tests

clz = tosa_tests("CLZ", ["int32"], each=2, special=0, smoke=["int32"])
exp = tosa_tests("EXP", ["fp32", "fp16"], each=1, special=0, smoke=["fp16"])
gather = tosa_tests("GATHER", ["bool"], each=1, special=0)
loops = not_covered("cannot be converted", "WHILE_LOOP")
"""

EXPECTED = """
[[expectation]]
file = "tosa/test_small.py"
case = "gather"
target = "emulation"
verdict = "unsupported"
stage = "convert"
finding = "raised"
reason = "the converter takes no booleans here"
evidence = "must be 3D tensorArm of 8/16/32-bit integer"
versions = { ai-ml-sdk-model-converter = "0.11.0" }
"""


class Project:
    """A root folder with one suite."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makeini("[pytest]\naddopts = --import-mode=importlib")
        pytester.makeconftest('pytest_plugins = ["vgf_conformance.plugin"]')
        self.write(FILE, SUITE)

    def write(self, name: str, text: str) -> None:
        path = self.pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *options: str, results: str = "out") -> pytest.RunResult:
        arguments = ["suites", "-p", "no:cacheprovider", "--results", str(self.pytester.path / results)]
        return self.pytester.runpytest_inprocess(*arguments, *options)

    def records(self, results: str = "out") -> dict[str, Record]:
        return {record.id: record for record in read_results([self.pytester.path / results]).records}


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def test_smoke_tier_ids_and_records(project: Project) -> None:
    result = project.run()
    result.assert_outcomes(passed=4, deselected=6)
    records = project.records()
    names = [name.removeprefix(f"{FILE}::") for name in records]
    assert all(name.startswith(("clz[int32-clz_", "exp[fp16-exp_")) for name in names)
    assert all(name.endswith(("-none-reference]", "-none-emulation]")) for name in names)
    assert {(record.kind, record.operator) for record in records.values()} == {
        ("tosa", "CLZ"),
        ("tosa", "EXP"),
    }
    assert all("--tier smoke" in record.repro for record in records.values())
    assert "TOSA's own tests" in (Path(project.pytester.path) / "out" / "matrix.md").read_text()


def test_a_query_a_target_and_the_nightly_tier(project: Project) -> None:
    result = project.run("--tier", "nightly", "-k", "exp and fp32", "--target", "reference")
    result.assert_outcomes(passed=1, deselected=4)


def test_an_expected_refusal_and_a_stale_entry(project: Project) -> None:
    project.write("golden/expectations/test_small.toml", EXPECTED)
    result = project.run("--tier", "all", "-k", "gather")
    result.assert_outcomes(passed=1, xfailed=1, deselected=8)
    (refused,) = [record for record in project.records().values() if record.verdict is not Verdict.PASS]
    assert refused.expected == "the converter takes no booleans here"
    project.write("golden/expectations/test_small.toml", EXPECTED.replace('"gather"', '"gatherer"'))
    result = project.run("--tier", "all", "-k", "clz")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["stale known failure:*matches no case*"])


def test_two_workers_and_a_resumed_run_see_the_same_tests(project: Project) -> None:
    project.run("--tier", "all", "-k", "clz or exp", "--target", "reference", results="alone")
    project.pytester.runpytest_subprocess(
        *("suites", "-p", "no:cacheprovider", "--results", str(project.pytester.path / "shared")),
        *("--tier", "all", "-k", "clz or exp", "--target", "reference", "-n", "2"),
    ).assert_outcomes(passed=4)
    alone, shared = project.records("alone"), project.records("shared")
    assert alone.keys() == shared.keys() and len(alone) == 4
    assert [alone[name].artifact for name in alone] == [shared[name].artifact for name in alone]
    result = project.run(
        "--tier", "all", "-k", "clz or exp", "--target", "reference", "--resume", results="shared"
    )
    result.assert_outcomes(deselected=5)
    assert result.ret == pytest.ExitCode.OK


def test_a_bad_declaration_is_a_collection_error(project: Project) -> None:
    project.write(FILE, SUITE.replace('"CLZ"', '"CLS"'))
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["tosa/test_small.py: clz: the generator knows no TOSA operator CLS"])
