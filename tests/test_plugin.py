"""The pytest plugin on a small project of its own: real suites, real targets, this process and others."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# What pytest runs inside this process must find imported already: torch registers its operators once.
import vgf_conformance.evaluation.session  # noqa: F401
from tests import executor_runner
from tests.results.records import record as plain_record
from vgf_conformance.evaluation import claimed
from vgf_conformance.results.claims import Claim, Source
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard, artifact_of
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.targets import opening
from vgf_conformance.targets.capabilities import Platform
from vgf_conformance.targets.process import ProcessTarget, emulation_target
from vgf_conformance.targets.vulkan import find_drivers
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

pytest_plugins = ["pytester"]

SUITE = """
import torch

from vgf_conformance.cases.case import operator, sample
from vgf_conformance.cases.inputs import normal

FP_ONLY = (("FP", "none"),)
BOTH = (("FP", "none"), ("INT", "a8w8-pc"))

absolute = operator("aten.abs.default", torch.abs, [sample("rank2", normal(3, 5))], configurations=BOTH)

add = operator(
    "aten.add.Tensor",
    torch.add,
    [sample("same", normal(2, 3), normal(2, 3)), sample("row", normal(2, 3), normal(3))],
    configurations=FP_ONLY,
)

nightly_exp = operator(
    "aten.exp.default", torch.exp, [sample("rank1", normal(4))], configurations=FP_ONLY, tier="nightly"
)
"""

FAILING = """

sort = operator(
    "aten.sort.default",
    lambda x: torch.sort(x)[0],
    [sample("rank1", normal(4))],
    configurations=FP_ONLY,
)
"""

FILE = "suites/operators/test_small.py"

EXPECTED = """
[[expectation]]
file = "operators/test_small.py"
case = "{case}"
verdict = "unsupported"
stage = "lower"
reason = "the partitioner does not take it"
evidence = "seen here"
versions = {{ executorch = "1.5.1" }}
"""


def ids(*names: str) -> list[str]:
    return [f"{FILE}::{name}" for name in names]


SMOKE = ids(
    "absolute[rank2-FP-none-reference]",
    "absolute[rank2-FP-none-emulation]",
    "absolute[rank2-INT-a8w8-pc-reference]",
    "absolute[rank2-INT-a8w8-pc-emulation]",
    "add[same-FP-none-reference]",
    "add[same-FP-none-emulation]",
    "add[row-FP-none-reference]",
    "add[row-FP-none-emulation]",
)
SORT = ids("sort[rank1-FP-none-reference]", "sort[rank1-FP-none-emulation]")


class Project:
    """A root folder with suites and expectations, and ways to run pytest in it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root = pytester.path
        self.results = self.root / "out"
        pytester.makeini("[pytest]\naddopts = --import-mode=importlib")
        pytester.makeconftest('pytest_plugins = ["vgf_conformance.plugin"]')
        self.suite(SUITE)

    def suite(self, text: str) -> None:
        path = self.root / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def expect(self, *cases: str) -> Path:
        path = self.root / "golden" / "expectations" / "test_small.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(EXPECTED.format(case=case) for case in cases))
        return path

    def arguments(self, *options: str) -> list[str]:
        return ["suites", "-p", "no:cacheprovider", "--results", str(self.results), *options]

    def run(self, *options: str) -> pytest.RunResult:
        """Run in this process."""
        return self.pytester.runpytest_inprocess(*self.arguments(*options))

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Run in a process of its own."""
        path = os.pathsep.join(filter(None, sys.path))
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *self.arguments(*options)],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )

    def read(self) -> Results:
        return read_results([self.results])

    def matrix(self) -> str:
        return (self.results / "matrix.md").read_text()

    def seen(self) -> list[str]:
        return [item.id for item in self.read().records]


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def told(result: pytest.RunResult) -> str:
    return "\n".join([*result.outlines, *result.errlines])


def test_ids_are_queries(project: Project) -> None:
    listed = project.run("--collect-only", "-q")
    assert [line for line in listed.outlines if "::" in line] == SMOKE
    only = project.run("--collect-only", "-q", "-k", "add and row and emulation")
    assert [line for line in only.outlines if "::" in line] == [SMOKE[7]]
    assert not project.results.exists()


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (["--profile", "INT"], SMOKE[2:4]),
        (["--scheme", "none", "--target", "reference"], [SMOKE[0], SMOKE[4], SMOKE[6]]),
        (["--profile", "FP", "--profile", "INT", "--target", "emulation"], SMOKE[1::2]),
        (["--tier", "nightly", "--target", "reference"], ids("nightly_exp[rank1-FP-none-reference]")),
        (
            ["--tier", "all", "--target", "reference", "--profile", "FP"],
            [SMOKE[0], SMOKE[4], SMOKE[6], *ids("nightly_exp[rank1-FP-none-reference]")],
        ),
    ],
)
def test_filters(options: list[str], chosen: list[str], project: Project) -> None:
    listed = project.run("--collect-only", "-q", *options)
    assert [line for line in listed.outlines if "::" in line] == chosen


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["here", "xdist"])
def test_where_only_another_tier_matches_it_is_named(options: tuple[str, ...], project: Project) -> None:
    result = project.run("-k", "exp", *options)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    told_of = (
        "no case of the tier smoke was selected; 2 matching cases are in the tier nightly: add --tier nightly"
    )
    assert told_of in told(result)
    assert "the tier" not in told(project.run("-k", "no such name", *options))


def test_programs_in_a_stand_alone_runner(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in takes absolute values, and so errs on sums: that is the runtime's, not the driver's."""
    monkeypatch.setenv(executor_runner.MODE, "abs")
    runner = executor_runner.install(project.root)
    result = project.run(
        "--target", "runtime", "--executor-runner", str(runner), "--profile", "FP", "-k", "absolute or row"
    )
    result.assert_outcomes(passed=1, failed=1, deselected=3)
    assert "programs run in the stand-alone executor_runner" in told(result)
    right, wrong = project.read().records
    assert (right.id, right.verdict) == (ids("absolute[rank2-FP-none-runtime]")[0], Verdict.PASS)
    assert (wrong.verdict, wrong.stage) == (Verdict.FAIL, Stage.RUN)
    assert wrong.message.startswith("the runtime differs from emulation on the same VGFs: output 0, ")
    assert "fails in the same way alone, in a fresh worker" in wrong.notes
    assert wrong.repro == (f"pytest '{wrong.id}' --tier smoke --target runtime --executor-runner {runner}")


def test_only_programs_run_in_the_runtime(project: Project) -> None:
    """TOSA's own tests are graphs: their suite has nothing for this target."""
    project.suite(
        "from vgf_conformance.tosatests.declare import tosa_tests\n"
        'absolute = tosa_tests("ABS", ("fp32",), smoke=["fp32"])\n'
    )
    runner = executor_runner.install(project.root)
    options = ("--collect-only", "-q", "--target", "runtime", "--executor-runner", str(runner))
    listed = project.run(*options, "--target", "reference")
    targets = {line.rpartition("-")[2] for line in listed.outlines if "::" in line}
    assert targets == {"reference]"}


def test_a_run_leaves_records_and_reports(project: Project) -> None:
    result = project.run()
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=8, deselected=2)
    found = project.read()
    assert [item.id for item in found.records] == SMOKE
    assert {item.verdict for item in found.records} == {Verdict.PASS}
    assert len(found.runs) == 1
    assert found.runs[0]["seed"] == 0
    assert found.runs[0]["versions"]["executorch"] == "1.5.1"
    assert found.runs[0]["driver"]["driver"].startswith("llvmpipe")
    for name in ("matrix.md", "tolerance.md", "junit.xml", "report.html"):
        assert (project.results / name).stat().st_size > 0
        assert str(project.results / name) in told(result)
    assert found.records[3].repro == f"pytest '{SMOKE[3]}' --tier smoke"
    # One lowering serves both targets.
    assert found.records[0].artifact == found.records[1].artifact
    # The header prints what matters, to catch typos.
    assert "executorch 1.5.1" in told(result)
    assert "llvmpipe" in told(result)


def test_an_unexpected_failure_fails_and_says_why(project: Project) -> None:
    project.suite(SUITE + FAILING)
    result = project.run("-k", "sort", "--seed", "7")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=2, deselected=10)
    text = told(result)
    # Both targets have one cause, which is told once: not by pytest for each case as well.
    assert "2 unexpected, 1 cause:" in text
    assert text.count("nothing was delegated (aten.sort.default: Not included in") == 1
    assert text.count(f"pytest '{SORT[0]}' --tier smoke --seed 7") == 1
    assert "Captured log" not in text
    assert [(item.verdict, item.unexpected) for item in project.read().records] == [
        (Verdict.UNSUPPORTED, True)
    ] * 2


def test_an_expected_failure_is_an_xfail(project: Project) -> None:
    project.suite(SUITE + FAILING)
    project.expect("sort")
    result = project.run("-k", "sort or same", "-rx")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(xfailed=2, passed=2, deselected=8)
    assert "lower: the partitioner does not take it" in told(result)
    expected = {item.case: item.expected for item in project.read().records}
    assert expected == {"add": None, "sort": "the partitioner does not take it"}


OVERFLOWING = """

relu = operator(
    "aten.relu.default",
    torch.relu,
    [sample("infinity", values([1.0, float("inf")], 2))],
    configurations=FP_ONLY,
)
"""

WRONG = EXPECTED.replace('"unsupported"', '"fail"').format(case="relu")


def test_how_wrong_a_known_failure_may_be_is_held_against_the_run(project: Project) -> None:
    project.suite(SUITE.replace("import normal", "import normal, values") + OVERFLOWING)
    path = project.expect()

    def run(bound: str, *options: str) -> tuple[int, str]:
        path.write_text(WRONG.replace("reason", f"{bound}\nreason"))
        result = project.run("-k", "relu", *options)
        return result.ret, told(result)

    ret, text = run("worst = { wrong = 0.1 }")
    assert ret == pytest.ExitCode.TESTS_FAILED
    assert "worse than the known failure (test_small.toml, entry 1): 50.000% of the elements wrong" in text
    ret, text = run("worst = { wrong = 1.0 }")
    assert ret == pytest.ExitCode.OK
    assert "known failure clearly better than its bound: test_small.toml, entry 1 (relu): 50.000%" in text
    ret, text = run("", "-n", "1")
    assert ret == pytest.ExitCode.OK
    assert "known failures without a bound: test_small.toml, entry 1: --update-expectations" in text
    ret, text = run("", "--update-expectations")
    assert ret == pytest.ExitCode.OK
    assert f"for review: {path}" in text
    assert "worst = { wrong = 0.5, nonfinite = 0.5, ulp = 0.0 }\n" in path.read_text()
    assert "better" not in text


def test_the_first_wrong_operator_of_an_operators_case_is_named(project: Project) -> None:
    project.suite(SUITE.replace("import normal", "import normal, values") + OVERFLOWING)
    result = project.run("-k", "relu and reference")
    assert "first wrong step (lower): aten.relu.default" in told(result)
    (record,) = project.read().records
    assert record.first_wrong is not None
    assert (record.first_wrong.operator, record.first_wrong.became) == ("CLAMP", ["CLAMP 0"])
    folder = project.results / "first-wrong" / "relu[infinity-FP-none-reference]" / "clamp-0"
    assert record.first_wrong.repro == str(folder)
    assert (folder / "graph.tosa").is_file()


def test_an_unexpected_pass_fails(project: Project) -> None:
    project.expect("add")
    result = project.run("-k", "add and same")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=2, deselected=8)
    assert "expected unsupported at lower, but it passes: remove the entry" in told(result)


def test_an_entry_that_matches_nothing_fails(project: Project) -> None:
    project.expect("subtract")
    result = project.run("--target", "reference", "--profile", "INT")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, deselected=4)
    assert "stale known failure: test_small.toml, entry 1: matches no case: remove the entry" in told(result)
    # A run of single cases cannot tell.
    assert project.pytester.runpytest_inprocess(
        SMOKE[4], "-p", "no:cacheprovider", "--results", str(project.results)
    ).ret == (pytest.ExitCode.OK)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nalso = add\n", "operators/test_small.py: one case has several names: add, also"),
        (
            '\ntwice = operator("x", torch.abs, [sample("a", normal(2)), sample("a", normal(3))])\n',
            "operators/test_small.py: twice declares the sample a twice",
        ),
        (
            '\ntwice = operator("x", torch.abs, [sample("a", normal(2))], configurations=BOTH * 2)\n',
            "operators/test_small.py: twice declares the configuration ",
        ),
        (
            '\nadd = operator("aten.sub.Tensor", torch.sub, [sample("a", normal(2), normal(2))])\n',
            "operators/test_small.py: add is declared twice, in lines 12 and 23",
        ),
        (
            '\ndef helper(x):\n    add = x\n    return add\n\nhelper = operator("x", helper, [])\n',
            "operators/test_small.py: helper is declared twice, in lines 23 and 27",
        ),
    ],
)
def test_doubled_declarations_are_collection_errors(text: str, message: str, project: Project) -> None:
    project.suite(SUITE + text)
    refused(project.run(), message)


def refused(result: pytest.RunResult, message: str) -> None:
    """Nothing was run, and the person is told why in one message."""
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    assert message in told(result)
    assert "Traceback" not in told(result)


@pytest.mark.parametrize("options", [[], ["--collect-only"]])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '\nplus = operator("aten.plus.Tensor", torch.add, [sample("a", normal(2), normal(2))])\n',
            "operators/test_small.py: plus names the operator aten.plus.Tensor, which torch does not have",
        ),
        (
            '\npacket = operator("aten.add", torch.add, [sample("a", normal(2), normal(2))])\n',
            "operators/test_small.py: packet names the operator aten.add, which torch does not have",
        ),
        (
            '\nturned = operator("aten.add.Tensor", torch.add, [], floating=("TRANS",))\n',
            "operators/test_small.py: turned: floating names TRANS, which is no TOSA operator",
        ),
        (
            '\nmisfit = operator("aten.add.Tensor", torch.add, [sample("a", normal(2), normal(3))])\n',
            "operators/test_small.py: misfit, sample a: eager PyTorch itself raises RuntimeError: The size",
        ),
        (
            '\nmisspelt = operator("aten.add.Tensor", torch.add, [sample("a", normal(2), beta=2)])\n',
            "operators/test_small.py: misspelt, sample a: eager PyTorch itself raises TypeError: add()",
        ),
        (
            '\nnamed = operator("aten.abs.default", lambda x: "x", [sample("a", normal(2))])\n',
            "operators/test_small.py: named, sample a: eager PyTorch itself raises output 0 is a str",
        ),
        (
            "\nfrom vgf_conformance.cases.case import layer\n"
            'linear = layer("aten.linear.default", torch.nn.Linear, [sample("a", normal(2), args=(2,))])\n',
            "operators/test_small.py: linear, sample a: making it raises TypeError: ",
        ),
    ],
)
def test_bad_declarations_are_collection_errors(
    text: str, message: str, options: list[str], project: Project
) -> None:
    project.suite(SUITE + text)
    refused(project.run(*options), message)
    assert not (project.results / "results.jsonl").exists()


def test_a_sample_that_raises_is_told_in_its_own_tier(project: Project) -> None:
    project.suite(SUITE.replace("torch.exp,", "torch.bmm,"))
    assert project.run("--collect-only").ret == pytest.ExitCode.OK
    refused(project.run("--collect-only", "--tier", "nightly"), "nightly_exp, sample rank1: eager PyTorch")


def test_a_claim_for_an_operator_that_torch_lacks(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Claim("aten.gone.default", "FP", "float32", "none", Source.DOCUMENTATION)
    monkeypatch.setattr(claimed, "installed_claims", lambda: (gone,))
    for options in ([], ["--collect-only"]):
        result = project.run(*options)
        refused(result, "executorch 1.5.1 claims aten.gone.default FP float32 (documentation), but torch")
        assert "has no operator aten.gone.default" in told(result)


def test_claims_that_cannot_be_read_take_no_run_down(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise UserError("executorch 9 has no generator")

    monkeypatch.setattr(claimed, "installed_claims", refuse)
    result = project.run("-k", "same", "--target", "reference")
    assert result.ret == pytest.ExitCode.OK
    assert "no claims to compare with: executorch 9 has no generator" in told(result)
    assert project.read().claims == []


UNCOVERED = """
[[uncovered]]
profile = "FP"
dtype = "float16"
mode = "none"
reason = "nobody has asked"
operators = ["aten.add.Tensor"]
"""


def test_a_run_says_what_is_claimed(project: Project) -> None:
    table = project.root / "golden" / "uncovered.toml"
    table.parent.mkdir()
    table.write_text(UNCOVERED)
    assert project.run("-k", "same", "--target", "reference").ret == pytest.ExitCode.OK
    found = project.read()
    assert len(found.claims) > 400
    assert [claim.operator for claim in found.claims if claim.reason == "nobody has asked"] == [
        "aten.add.Tensor"
    ]
    assert [item.dtypes for item in found.records] == [["float32"]]
    assert found.records[0].delegates[0].tosa_dtypes == {"ADD": {"float32": 1}}
    assert re.search(r"\| aten.add.Tensor +\| FP float16 +\| nobody has asked", project.matrix())
    table.write_text(UNCOVERED.replace("reason", "because"))
    result = project.run("--collect-only")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "uncovered.toml, entry 1: because, reason: an entry has" in told(result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--profile", "TOSA-9+XX"], "unknown profile 'TOSA-9+XX'"),
        (["--scheme", "a1w1"], "unknown scheme 'a1w1'"),
        (["--target", "moon"], "unknown target 'moon'"),
        (["--driver", "/no/such/driver.json"], "/no/such/driver.json does not exist"),
        (["--tier", "weekly"], "invalid choice: 'weekly'"),
    ],
)
def test_bad_options_are_usage_errors(options: list[str], message: str, project: Project) -> None:
    result = project.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in told(result)
    assert "Traceback" not in told(result)
    assert not project.results.exists()


def test_no_driver_is_a_usage_error(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", str(project.root))
    result = project.run("-k", "same")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no Vulkan driver found" in told(result)
    assert project.run("-k", "same", "--target", "reference").ret == pytest.ExitCode.OK


def test_malformed_expectations_are_a_usage_error(project: Project) -> None:
    project.expect().write_text("[[expectation]]\ncase = 'add'\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_small.toml, entry 1 (add): file, verdict, stage" in told(result)


def test_results_that_cannot_be_written(project: Project) -> None:
    (project.root / "file").write_text("in the way")
    project.results = project.root / "file" / "results"
    result = project.run("-k", "same", "--target", "reference")
    assert result.ret == 2
    assert "cannot write results to" in told(result)
    assert "Not a directory" in told(result)
    assert "INTERNALERROR" not in told(result)


def test_a_run_keeps_the_results_before_it_once(project: Project) -> None:
    for number in range(2):
        result = project.run("-k", "same", "--target", "reference")
        assert result.ret == pytest.ExitCode.OK
        assert ("set aside as results.previous.jsonl" in told(result)) == bool(number)
    assert project.seen() == [SMOKE[4]]
    assert len(project.read().runs) == 1
    assert len(read_results([project.results / "results.previous.jsonl"]).records) == 1


def test_a_reader_that_has_seen_enough_costs_no_record_and_no_exit_status(project: Project) -> None:
    """``pytest suites | head -1``, on a terminal that knows ASCII alone."""
    reader, closed = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *project.arguments("-k", "same", "--target", "reference")],
        cwd=project.root,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONIOENCODING": "ascii",
        },
        stdout=closed,
        stderr=subprocess.DEVNULL,
    )
    os.close(closed)
    assert process.returncode == 0
    assert project.seen() == [SMOKE[4]]
    assert "add" in project.matrix()


def test_update_expectations_writes_them_for_review(project: Project) -> None:
    project.suite(SUITE + FAILING)
    path = project.expect("absolute")
    result = project.run("--update-expectations")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"for review: {path}" in told(result)
    text = path.read_text()
    assert 'case = "absolute"' not in text
    assert text.count("[[expectation]]") == 1
    assert 'case = "sort"' in text
    assert 'reason = "REVIEW: nothing was delegated (aten.sort.default' in text
    again = project.run("-k", "sort or absolute")
    assert again.ret == pytest.ExitCode.OK
    again.assert_outcomes(passed=4, xfailed=2, deselected=6)


def without_times(record: Record) -> dict[str, Any]:
    document = record.to_json()
    for name in ("seconds", "written", "worker_bytes"):
        document.pop(name)
    return document


def test_workers_give_the_same_records(project: Project) -> None:
    project.suite(SUITE + FAILING)
    project.expect("sort", "subtract")
    assert project.run("-n", "0").ret == pytest.ExitCode.TESTS_FAILED
    alone = project.read()
    parallel = project.start("-n", "2")
    assert parallel.wait(240) == pytest.ExitCode.TESTS_FAILED
    shared = project.read()
    assert len(shared.records) == len(shared.runs) * 10 == 10
    by_id = {item.id: without_times(item) for item in shared.records}
    assert by_id == {item.id: without_times(item) for item in alone.records}
    # Each report is the whole run's.
    junit = (project.results / "junit.xml").read_text()
    assert junit.count("<testcase ") == 10
    assert (project.results / "report.html").read_text().count("</html>") == 1
    assert sorted(path.name for path in project.results.iterdir()) == [
        *("junit.xml", "matrix.md", "report.html", "results.jsonl", "results.previous.jsonl", "tolerance.md")
    ]


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_records_say_what_comes_from_the_cache(project: Project) -> None:
    """Lowered once more; then all of it is known, and without the cache none of it."""
    chosen = ("-k", "absolute and FP-none-reference")
    project.run(*chosen)
    cached = project.run(*chosen)
    made = [record.cached for record in project.read().records]
    assert made and all(made)
    cached.stdout.fnmatch_lines(
        [f"from the artifact cache: {len(made)} records, the oldest lowered {min(made)}*"]
    )
    anew = project.run(*chosen, "--no-cache")
    assert [record.cached for record in project.read().records] == [""] * len(made)
    anew.stdout.no_fnmatch_line("from the artifact cache*")


def test_a_killed_run_is_resumed_without_loss(project: Project) -> None:
    results = project.results / "results.jsonl"

    def lines() -> int:
        return results.read_bytes().count(b"\n") if results.exists() else 0

    killed = project.start()
    wait_for(lambda: lines() >= 6, 240)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(30) == -signal.SIGKILL
    before = results.read_bytes()
    # After the run, its plan and what the backend claims.
    kept = [json.loads(line)["id"] for line in before.splitlines()[3:]]
    assert 3 <= len(kept) < 8
    # What the kill may leave at worst: half a line.
    results.write_bytes(before + b'{"type":"case","id":"suites/oper')
    result = project.run("--resume")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=8 - len(kept), deselected=2 + len(kept))
    assert results.read_bytes().startswith(before)
    assert project.seen() == SMOKE
    assert project.read().warnings == []
    notes = project.read().runs[1]["notes"]
    assert f"{len(kept)} cases kept from the run before (--resume)" in notes
    assert (project.results / "junit.xml").read_text().count("<testcase ") == 8


@pytest.mark.parametrize("unexpected", [False, True])
def test_a_finished_run_is_resumed_to_its_own_end(unexpected: bool, project: Project) -> None:
    """Nothing runs, the reports are made, and what failed before still fails the run."""
    with ResultsWriter(project.results, {}) as writer:
        for identity in SMOKE:
            writer.append(dataclasses.replace(plain_record(), id=identity))
        if unexpected:
            failed = plain_record(verdict=Verdict.FAIL, unexpected=True)
            writer.append(dataclasses.replace(failed, id=SORT[0]))
    result = project.run("--resume")
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if unexpected else pytest.ExitCode.OK)
    result.assert_outcomes(deselected=10)
    assert project.seen()[:8] == SMOKE
    assert (project.results / "junit.xml").read_text().count("<testcase ") == 8 + unexpected


def test_a_resumed_run_judges_by_the_expectations_of_today(project: Project) -> None:
    """A record that an expectation has since become wrong about, or right, is made again."""
    project.suite(SUITE + FAILING)
    assert project.run("-k", "sort or absolute").ret == pytest.ExitCode.TESTS_FAILED
    project.expect("sort")
    result = project.run("-k", "sort or absolute", "--resume")
    assert result.ret == pytest.ExitCode.OK
    assert {item.expected is not None for item in project.read().records if item.case == "sort"} == {True}


SWIFTSHADER = next((driver for driver in find_drivers() if "swiftshader" in driver.name), None)
#: Debian's chromium keeps its driver to itself.
CHROMIUM = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
DRIVER = SWIFTSHADER.manifest if SWIFTSHADER else CHROMIUM


def unasked(name: str, platform: Platform, folder: Path, time_limit: float) -> ProcessTarget:
    return emulation_target(platform.driver, folder, time_limit)


@pytest.mark.skipif(not DRIVER.is_file(), reason="SwiftShader is not installed (Debian: package chromium)")
def test_a_driver_that_crashes_takes_no_run_down(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """SwiftShader lacks what the layers' shaders need, and dies of it where it is not asked first."""
    monkeypatch.setattr(opening, "vulkan_target", unasked)
    result = project.run("--driver", str(DRIVER))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=4, passed=4, deselected=2)
    found = project.read().records
    assert [item.id for item in found] == SMOKE
    for item in found:
        if item.target == "reference":
            assert item.verdict is Verdict.PASS
            continue
        assert (item.verdict, item.stage, item.finding) == (Verdict.CRASH, Stage.RUN, Finding.CRASHED)
        assert item.message == "the worker was ended by SIGILL"
        assert item.driver == "vk_swiftshader_icd"
        assert f"--driver {DRIVER}" in item.repro
    junit = (project.results / "junit.xml").read_text()
    assert junit.count("<error ") == 4
    assert "crash" in (project.results / "matrix.md").read_text()
    assert "SIGILL" in (project.results / "report.html").read_text()
    assert (project.results / "tolerance.md").stat().st_size > 0


@pytest.mark.skipif(not DRIVER.is_file(), reason="SwiftShader is not installed (Debian: package chromium)")
def test_what_a_driver_cannot_do_is_unsupported(project: Project) -> None:
    result = project.run("-k", "same and emulation", "--driver", str(DRIVER))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (refused,) = project.read().records
    assert (refused.verdict, refused.finding) == (Verdict.UNSUPPORTED, Finding.CAPABILITY)
    assert "lacks shaderInt8 and shaderInt16" in refused.message


def test_what_ran_before_is_blamed_for_what_it_does(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a driver that remembers: the sum is wrong after an absolute value only."""

    def remembering(name: str, *settings: object) -> ProcessTarget:
        return ProcessTarget(name, "tests.fakes:Remembers", driver="a fake")

    monkeypatch.setattr(opening, "vulkan_target", remembering)
    project.run("--profile", "FP").assert_outcomes(passed=5, failed=1)
    (wrong,) = [record for record in project.read().records if record.unexpected]
    culprit, victim = ids("absolute[rank2-FP-none-emulation]", "add[same-FP-none-emulation]")
    assert (wrong.id, wrong.verdict, wrong.finding) == (victim, Verdict.FAIL, Finding.DEPENDENT)
    assert wrong.message.startswith(f"depends on what ran before it ({culprit}): ")


def test_an_expected_failure_is_not_looked_into(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(name: str, *settings: object) -> ProcessTarget:
        return ProcessTarget(name, "tests.fakes:Remembers", driver="a fake")

    monkeypatch.setattr(opening, "vulkan_target", wrong)
    project.expect("add").write_text(
        EXPECTED.format(case="add")
        .replace("unsupported", "fail")
        .replace('"lower"', '"run"\nsample = "same"\ntarget = "emulation"')
        + EXPECTED.format(case="add")
        .replace("unsupported", "fail")
        .replace('"lower"', '"run"\nsample = "row"\ntarget = "emulation"')
    )
    project.run("--profile", "FP").assert_outcomes(passed=4, xfailed=2)
    assert not any(record.notes for record in project.read().records)


def test_another_driver_than_expected_is_a_usage_error(project: Project) -> None:
    result = project.run("--expect-driver", "NVIDIA")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*nothing of that contains 'NVIDIA'*"])
    assert not project.results.exists() or not any(project.results.iterdir())


def test_a_suite_on_the_target_vulkan(project: Project) -> None:
    result = project.run("-k", "absolute", "--profile", "FP", "--target", "vulkan", "--layers", "emulation")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["vulkan: emulation layers: graph and tensor"])
    results = project.read()
    assert results.runs[0]["layers"] == {"vulkan": "emulation layers: graph and tensor"}
    assert set(results.runs[0]["device"]) >= {"vendor_id", "device_uuid", "driver_uuid"}
    (passed,) = results.records
    assert passed.driver.endswith(", emulation layers: graph and tensor")
    assert "--layers emulation" in passed.repro


def test_a_jump_of_headroom_fails_the_run(project: Project) -> None:
    run = project.run("--tier", "nightly", "--target", "emulation", "--update-baselines")
    assert run.ret == pytest.ExitCode.OK
    path = project.root / "golden" / "baselines" / "emulation.json"
    baseline = json.loads(path.read_text())
    ((key, share),) = baseline["headroom"].items()
    assert key == "operators/test_small.py::nightly_exp[rank1-FP-none]"
    again = project.run("--tier", "nightly", "--target", "emulation")
    assert again.ret == pytest.ExitCode.OK
    # As if exp had used a tenth of it before.
    baseline["headroom"][key] = share / 10
    path.write_text(json.dumps(baseline))
    worse = project.run("--tier", "nightly", "--target", "emulation")
    assert worse.ret == pytest.ExitCode.TESTS_FAILED
    worse.stdout.fnmatch_lines([f"headroom regression: {key.replace('[', '[[]')} on emulation: *"])
    # With another driver it is said, and is no failure.
    baseline["made_with"]["driver"] = "another"
    path.write_text(json.dumps(baseline))
    assert project.run("--tier", "nightly", "--target", "emulation").ret == pytest.ExitCode.OK


def test_sensitivity_is_measured_on_request(project: Project) -> None:
    run = project.run("--target", "reference", "-k", "add and same", "--sensitivity")
    assert run.ret == pytest.ExitCode.OK
    (record,) = read_results([project.results]).records
    assert record.sensitivity is not None
    assert record.sensitivity.caught == record.sensitivity.faults > 3
    assert "with 1 samples" in (project.results / "sensitivity.md").read_text()


LACKING = """

lacking = operator(
    "aten.abs.default",
    torch.abs,
    [sample("rank1", normal(4))],
    configurations=FP_ONLY,
    needs=("vgf-conformance-weights==1.2",),
)
"""


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["here", "xdist"])
def test_a_case_without_its_package_is_not_run_and_listed(options: list[str], project: Project) -> None:
    project.suite(SUITE + LACKING)
    result = project.run("-k", "lacking or row", "-rs", *options)
    assert result.ret == pytest.ExitCode.OK
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["skipped"]) == (2, 2)
    remedy = (
        "vgf-conformance-weights 1.2 is not installed: pip install --no-deps vgf-conformance-weights==1.2"
    )
    assert remedy in told(result)
    line = f"not run: {FILE}::lacking (2 cases): {remedy}"
    assert line in told(result)
    assert line in project.matrix().replace("\\", "")
    assert [item.reason for item in project.read().not_run] == [remedy, remedy]
    assert len(project.seen()) == 2


def test_a_need_without_a_version_is_an_error(project: Project) -> None:
    project.suite(SUITE + LACKING.replace("==1.2", ""))
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "lacking needs vgf-conformance-weights: write name==version" in told(result)


def test_shards_make_up_the_run(project: Project, tmp_path: Path) -> None:
    seen: dict[str, list[str]] = {}
    for text in ("1/2", "2/2"):
        assert project.run("--shard", text, "-k", "FP").ret == pytest.ExitCode.OK
        found = project.read()
        assert [run["shard"] for run in found.runs] == [text]
        assert found.runs[0]["driver"]["driver"].startswith("llvmpipe")
        assert found.plan == [item for item in SMOKE if "FP" in item]
        seen[text] = project.seen()
    assert sorted(seen["1/2"] + seen["2/2"]) == sorted(item for item in SMOKE if "FP" in item)
    # Both targets of an artifact are in one shard.
    assert all(item.replace("reference", "emulation") in seen["1/2"] for item in seen["1/2"])


def test_an_empty_shard_is_not_lost(project: Project) -> None:
    empty = next(
        text
        for text in ("1/4", "2/4", "3/4", "4/4")
        if not any(Shard.parse(text).holds(artifact_of(item)) for item in SMOKE[4:6])
    )
    result = project.run("--shard", empty, "-k", "add and same")
    assert result.ret == pytest.ExitCode.OK
    assert [run["shard"] for run in project.read().runs] == [empty]
    assert f"no case of this run is in shard {empty}" in project.read().runs[0]["notes"]
    assert project.run("--shard", empty, "-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_workers_tell_the_plan(project: Project) -> None:
    assert project.run("--shard", "1/1", "-n", "2", "--target", "reference").ret == pytest.ExitCode.OK
    assert project.read().plan == SMOKE[::2]


def test_a_shard_that_is_none(project: Project) -> None:
    result = project.run("--shard", "5/4")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown shard '5/4': write I/N" in told(result)
    assert not project.results.exists()


def test_workers_on_other_machines_describe_them(project: Project, tmp_path: Path) -> None:
    """pytest-xdist's own remote execution, as docs/shards.md tells, on two servers of this machine."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    servers, addresses = [], []
    try:
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            command = [sys.executable, "-u", "-m", "execnet.script.socketserver", "127.0.0.1:0"]
            server = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
            servers.append(server)
            assert server.stdout is not None
            # ... Entering Accept loop ('127.0.0.1', 40123)
            addresses.append(server.stdout.readline().split()[-1].rstrip(")\n"))
        workers = [f"--tx=socket=127.0.0.1:{port}" for port in addresses]
        result = project.pytester.runpytest_inprocess(
            str(project.root / "suites"),
            *("-p", "no:cacheprovider", "--target", "reference"),
            *(*workers, "--dist=load", f"--rsyncdir={project.root}", f"--results={project.results}"),
        )
    finally:
        for server in servers:
            server.kill()
            server.communicate()
    assert result.ret == pytest.ExitCode.OK
    found = project.read()
    assert sorted(item.id for item in found.records) == sorted(SMOKE[::2])
    assert found.plan == SMOKE[::2]
    ours, *others = found.runs
    assert "worker" not in ours
    assert sorted(run["worker"] for run in others) == ["gw0", "gw1"]
    assert all(run["versions"] == ours["versions"] and run["hostname"] for run in others)
