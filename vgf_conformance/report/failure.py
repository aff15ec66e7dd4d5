"""The text of one failed record for a terminal."""

from __future__ import annotations

from tabulate import tabulate

from vgf_conformance.results.record import Comparison, Record


def failure_text(record: Record) -> str:
    """Verdict, stages, the worker's last words and the repro command."""
    where = f" at {record.stage.value}" if record.stage else ""
    what = f" ({record.finding.value})" if record.finding else ""
    parts = [f"{record.verdict.value}{where}{what}: {record.message}"]
    if record.expectation_note:
        parts.append(record.expectation_note)
    if record.comparisons:
        rows = [_row(comparison) for comparison in record.comparisons]
        parts.append(tabulate(rows, ("pair", "out", "rule", "max error", "bound used", ""), tablefmt="plain"))
    if record.log:
        parts.append(f"last words:\n{record.log}")
    return "\n\n".join([*parts, f"again: {record.repro}"])


def _row(comparison: Comparison) -> tuple[str, ...]:
    metrics = comparison.metrics
    error = "" if metrics is None or metrics.max_abs is None else f"{metrics.max_abs:.3g}"
    used = "" if comparison.headroom is None else f"{comparison.headroom:.0%}"
    passed = {True: "pass", False: "FAIL", None: ""}[comparison.passed]
    return comparison.pair, str(comparison.output), comparison.rule, error, used, passed
