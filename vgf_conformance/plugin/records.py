"""Takes the records of items to the controller, which writes each as it comes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from vgf_conformance.plugin.items import SuiteItem
from vgf_conformance.plugin.machine import Machine
from vgf_conformance.plugin.operators import Operators
from vgf_conformance.plugin.selection import Selection
from vgf_conformance.plugin.settings import Settings, not_asked_for
from vgf_conformance.plugin.workers import is_worker
from vgf_conformance.results.record import NotRun, Record
from vgf_conformance.results.store import ResultsWriter, results_file, set_aside
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import UserError

#: What a test report carries: pytest-xdist sends such attributes along.
_SENT = "vgf_conformance"
_RECORD, _NOT_RUN, _PLAN, _MACHINE = "record", "not_run", "plan", "machine"


def has_record(report: pytest.TestReport) -> bool:
    """Whether the test that is reported left a record."""
    return _RECORD in getattr(report, _SENT, {})


class Sender:
    """Attaches to the report of an item what the controller writes."""

    def __init__(self, config: pytest.Config, selection: Selection, machine: Machine) -> None:
        self._is_worker = is_worker(config)
        self._selection = selection
        self._machine = machine
        self._first = True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Send the record along with the report."""
        outcome = yield
        if not isinstance(item, SuiteItem):
            return
        report = outcome.get_result()  # type: ignore[attr-defined]
        # The harness logs nothing; what libraries log is hundreds of lines a case.
        report.sections = [part for part in report.sections if not part[0].startswith("Captured log")]
        if call.when != "call":
            return
        sent: dict[str, Any] = {}
        if item.not_run:
            sent[_NOT_RUN] = item.not_run
        elif item.record is not None:
            sent[_RECORD] = item.record.to_json()
        if self._first:
            # The controller of xdist's workers collects nothing itself.
            self._first = False
            sent[_PLAN] = self._selection.plan
            if self._is_worker:
                sent[_MACHINE] = self._machine.environment
        setattr(report, _SENT, sent)


class Records:
    """Writes each record, and each case that could not be run, as it comes."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        selection: Selection,
        machine: Machine,
        operators: Operators,
    ) -> None:
        self._config = config
        self._settings = settings
        self._selection = selection
        self._machine = machine
        self.operators = operators
        self._writer: ResultsWriter | None = None
        self._has_plan = False
        self._has_claims = False
        #: Where the results of an earlier run went, in words.
        self.set_aside = ""

    @property
    def environment(self) -> dict[str, Any]:
        """The controller's machine, as the run line has it."""
        return self._machine.environment

    @property
    def written(self) -> bool:
        """Whether there is a results file of this run."""
        return self._writer is not None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Find out before the first case that records cannot be kept."""
        if self._config.getoption("collectonly"):
            return
        folder = self._settings.results
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            text = f"cannot write results to {folder}: {error.strerror or error}"
            pytest.exit(visible(text), returncode=2)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write what a report carries."""
        sent: dict[str, Any] = getattr(report, _SENT, {})
        try:
            if sent.get(_PLAN) and not self._has_plan:
                self._has_plan = True
                self.writer().append_plan(sent[_PLAN])
            if sent.get(_MACHINE):
                worker = report.node.gateway.id
                self.writer().append_run({"worker": worker, **sent[_MACHINE]})
            if _RECORD in sent:
                self._write(Record.from_json(sent[_RECORD]))
            elif _NOT_RUN in sent:
                self.writer().append_not_run(NotRun(report.nodeid, sent[_NOT_RUN]))
        except UserError as error:
            pytest.exit(visible(str(error)), returncode=2)

    def _write(self, record: Record) -> None:
        """Append a record; what is claimed of operators comes before the first of them."""
        if record.kind == "operator" and not self._has_claims:
            self._has_claims = True
            if claims := self.operators.claims():
                self.writer().append_claims(claims)
        self.writer().append(record)

    def writer(self) -> ResultsWriter:
        """The results file, which begins with the run line."""
        if self._writer is None:
            path = results_file(self._settings.results)
            if not self._settings.resume:
                # Kept once, for whoever meant to resume.
                self.set_aside = set_aside(path)
            notes = not_asked_for(self._settings, self._config) + self._selection.collected.kept
            self._writer = ResultsWriter(path, {**self.environment, "notes": notes})
        return self._writer

    def close(self) -> None:
        """Close the results file, where there is one."""
        if self._writer is not None:
            self._writer.close()
