"""junit.xml: verdicts for continuous integration."""

from __future__ import annotations

import io

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from vgf_conformance.report.tally import (
    clipped,
    duration,
    environment,
    error_text,
    explanation,
    outcome,
    percent,
    seconds,
    started,
    used,
)
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import NotRun, Record
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import Verdict

_ERRORS = (Verdict.CRASH, Verdict.TIMEOUT, Verdict.ERROR)


def junit_report(results: Results) -> str:
    """JUnit XML: one suite; expected failures are skipped, as pytest writes an xfail."""
    suite = TestSuite("vgf-conformance")
    suite.timestamp = _xml(started(results))
    for name, value in environment(results).items():
        suite.add_property(_xml(name), _xml(value))
    suite.add_testcases([_testcase(record) for record in results.records])
    suite.add_testcases([_skipped(case) for case in results.not_run])
    suite.time = duration(results) or sum(map(seconds, results.records))
    document = JUnitXml("vgf-conformance")
    document.add_testsuite(suite)
    buffer = io.BytesIO()
    document.write(buffer, pretty=True)
    return buffer.getvalue().decode("utf-8")


def _testcase(record: Record) -> TestCase:
    testcase = TestCase(_xml(record.name), _xml(record.suite_file), seconds(record))
    first_line = _xml(explanation(record)).strip().partition("\n")[0]
    if record.unexpected:
        kind = Error if record.verdict in _ERRORS else Failure
        result = kind(clipped(first_line, 500) or outcome(record), outcome(record))
        result.text = _xml(_details(record))
        testcase.result = [result]
    elif record.verdict is not Verdict.PASS:
        testcase.result = [Skipped(_xml(record.expected or outcome(record)), "pytest.xfail")]
    if record.log:
        testcase.system_err = _xml(clipped(record.log, 4000))
    return testcase


def _skipped(case: NotRun) -> TestCase:
    file, _, name = case.id.rpartition("::")
    testcase = TestCase(_xml(name), _xml(file.removeprefix("suites/")), 0)
    testcase.result = [Skipped(_xml(case.reason), "pytest.skip")]
    return testcase


def _details(record: Record) -> str:
    lines = [record.id, outcome(record), clipped(explanation(record), 4000)]
    for comparison in record.comparisons:
        mark = {True: "pass", False: "FAIL", None: "reported"}[comparison.passed]
        lines.append(
            f"{mark}  {comparison.pair} at {comparison.stage.value}: {error_text(comparison)}, "
            f"bound used {percent(used(comparison))} ({comparison.rule}) {comparison.message}".rstrip()
        )
    return "\n".join([*lines, f"reproduce: {record.repro}"])


def _xml(text: str) -> str:
    """Text with every character written out that XML cannot hold or a reader would not see."""
    return visible(clipped(text, 20_000))
