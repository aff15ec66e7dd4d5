"""Reports from results: coverage matrix, tolerance, JUnit, HTML, terminal summary. No torch."""

from vgf_conformance.report.files import write_reports
from vgf_conformance.report.summary import compare_table, summary_table

__all__ = ["compare_table", "summary_table", "write_reports"]
