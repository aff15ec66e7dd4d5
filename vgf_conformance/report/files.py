"""The files that a run leaves for its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from vgf_conformance import files
from vgf_conformance.report.html import html_report
from vgf_conformance.report.junit import junit_report
from vgf_conformance.report.matrix import matrix_report
from vgf_conformance.report.sensitivity import has_sensitivity, sensitivity_report
from vgf_conformance.report.tolerance import tolerance_report
from vgf_conformance.results.merge import Results

REPORTS: dict[str, Callable[[Results], str]] = {
    "matrix.md": matrix_report,
    "tolerance.md": tolerance_report,
    "junit.xml": junit_report,
    "report.html": html_report,
}


def write_reports(results: Results, folder: Path, read: Iterable[Path] = ()) -> list[Path]:
    """Write every report into ``folder`` and return their paths; sensitivity.md where it was measured.

    Takes any record: what is missing is left blank, what is too long is cut, and what a reader's terminal
    would act on is written out. Each report replaces an earlier one when it is whole. Raises UserError where
    the folder cannot be written, or where a report would replace one of the files that were ``read``.
    """
    paths, read = [], list(read)
    measured = {"sensitivity.md": sensitivity_report} if has_sensitivity(results) else {}
    for name in {**REPORTS, **measured}:
        files.require_not_read(folder / name, read)
    for name, report in {**REPORTS, **measured}.items():
        files.write(folder / name, report(results))
        paths.append(folder / name)
    return paths
