"""The end of a run, in the controller: reports, a table, and the exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from _pytest.terminal import TerminalReporter

from vgf_conformance.plugin.records import Records, has_record
from vgf_conformance.plugin.selection import Selection
from vgf_conformance.plugin.settings import BASELINES, EXPECTATIONS, Settings
from vgf_conformance.report import summary_table, write_reports
from vgf_conformance.results.baselines import load_baselines, regressions, tools, update_baselines
from vgf_conformance.results.expectations import Expectations, update
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record
from vgf_conformance.results.store import read_results
from vgf_conformance.terminal import Enduring, visible
from vgf_conformance.vocabulary import UserError


class FailuresByCause:
    """Keeps pytest from telling each failed case by itself: the summary tells of them by cause."""

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> Iterator[None]:
        """Hold back the reports of failed cases while failures are printed."""
        failed = terminalreporter.stats.pop("failed", [])
        if others := [report for report in failed if not has_record(report)]:
            terminalreporter.stats["failed"] = others
        yield
        if failed:
            terminalreporter.stats["failed"] = failed


class Summary:
    """Writes the reports and tells what came of the run."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        selection: Selection,
        records: Records,
        expectations: Expectations,
    ) -> None:
        self._config = config
        self._settings = settings
        self._selection = selection
        self._records = records
        self._expectations = expectations
        self._session: pytest.Session | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Let a run go on whose reader has seen enough (``pytest suites | head``)."""
        self._session = session
        writer = self._config.get_terminal_writer()
        writer._file = Enduring(writer._file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The exit status, as far as it follows from what was left out and what was kept."""
        collected = self._selection.collected
        if collected.kept and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if collected.kept and self._settings.shard:
            # An empty shard leaves its run line too: it is not lost.
            self._records.writer()
        # What a resumed run keeps counts as if it had run now.
        if collected.stale or any(self._selection.done.values()):
            self._fail()

    def _fail(self) -> None:
        assert self._session is not None
        if self._session.exitstatus == pytest.ExitCode.OK:
            self._session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """A table at the end, and where the reports are."""
        collected, records = self._selection.collected, self._records
        for entry in collected.stale:
            _tell(terminalreporter, f"stale known failure: {entry}", red=True)
        for tier, count in collected.other_tiers.items():
            matching = f"{count} matching cases are in the tier {tier}: add --tier {tier}"
            _tell(terminalreporter, f"no case of the tier {self._settings.tier} was selected; {matching}")
        if records.operators.claimless:
            _tell(terminalreporter, f"no claims to compare with: {records.operators.claimless}")
        if records.set_aside:
            _tell(terminalreporter, records.set_aside)
        if not records.written and not collected.kept:
            return
        records.close()
        try:
            self._summarise(read_results([self._settings.results]), terminalreporter)
        except UserError as error:
            _tell(terminalreporter, str(error), red=True)
            assert self._session is not None
            self._session.exitstatus = pytest.ExitCode.INTERRUPTED

    def _summarise(self, results: Results, terminal: TerminalReporter) -> None:
        results.baselines = load_baselines(self._config.rootpath / BASELINES)
        # Whatever comes of printing: first what is kept.
        reports = write_reports(results, self._settings.results)
        terminal.section("VGF conformance")
        _tell(terminal, summary_table(results))
        _tell(terminal, "\n".join(map(str, reports)))
        self._judge_headrooms(results, terminal)
        if self._settings.update_expectations:
            versions = self._records.environment.get("versions", {})
            known = {key: str(value) for key, value in versions.items()}
            for path in update(self._config.rootpath / EXPECTATIONS, results.records, known):
                _tell(terminal, f"for review: {path}")
        else:
            self._tell_of_bounds(results.records, terminal)

    def _judge_headrooms(self, results: Results, terminal: TerminalReporter) -> None:
        """A jump inside the bound fails the run, where driver and versions are the baseline's."""
        made_with = {target: tools(self._records.environment, target) for target in self._settings.targets}
        if self._settings.update_baselines:
            for path in update_baselines(self._config.rootpath / BASELINES, results.records, made_with):
                _tell(terminal, f"{path}")
            return
        for jump in regressions(results.baselines, results.records, made_with):
            _tell(terminal, f"headroom regression: {jump}", red=jump.same)
            if jump.same:
                self._fail()

    def _tell_of_bounds(self, records: Sequence[Record], terminal: TerminalReporter) -> None:
        """Known failures that are better than they say, and those that do not say how wrong they are."""
        for text in self._expectations.better(records, self._selection.collected.whole):
            _tell(
                terminal, f"known failure clearly better than its bound: {text}; lower `worst` if it stays so"
            )
        if unbounded := self._expectations.unbounded(records):
            which = "; ".join(unbounded)
            _tell(terminal, f"known failures without a bound: {which}: --update-expectations records `worst`")


def _tell(terminal: TerminalReporter, text: str, *, red: bool = False) -> None:
    # Line by line: where the encoding lacks a character, pytest escapes all that it is given at once.
    for line in visible(text).split("\n"):
        terminal.write_line(line, red=red)
