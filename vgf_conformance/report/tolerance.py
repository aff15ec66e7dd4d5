"""tolerance.md: how much of each bound was used, and by which sample."""

from __future__ import annotations

from vgf_conformance.report import markdown
from vgf_conformance.report.tally import (
    NOTHING,
    Column,
    columns,
    error_text,
    grouped,
    judged,
    number,
    percent,
    row_name,
)
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record

HEADERS = [
    "operator",
    "profile",
    "scheme",
    "target",
    "worst error",
    "pair",
    "rule",
    "bound used",
    "SQNR vs eager",
    "vs quantised",
    "sample",
]


def tolerance_report(results: Results) -> str:
    """The tolerance report as Markdown: for each operator and column the worst comparison."""
    groups = grouped(results.records, lambda record: (row_name(record), Column.of(record)))
    order = {column: place for place, column in enumerate(columns(results.records))}
    rows = [
        [name, *column, *_worst(groups[name, column])]
        for name, column in sorted(groups, key=lambda key: (key[0], order[key[1]]))
    ]
    explanation = (
        "Errors are in LSB (quantisation steps) for integer outputs, else in ULP (units in the last place). "
        "Bound used is the headroom: the share of what the rule allows. "
        "SQNR is the lowest of all samples, in dB."
    )
    table = markdown.table(rows, HEADERS) if rows else "Nothing was compared."
    return markdown.document("Tolerance", ("Worst comparison of each operator", f"{explanation}\n\n{table}"))


def _worst(records: list[Record]) -> list[str]:
    sqnr = [_lowest_sqnr(records, "eager"), _lowest_sqnr(records, "quantised")]
    comparisons = judged(records)
    if not comparisons:
        return [NOTHING, NOTHING, NOTHING, NOTHING, *sqnr, NOTHING]
    record, worst = comparisons[0]
    return [error_text(worst), worst.pair, worst.rule, percent(worst.headroom), *sqnr, record.sample]


def _lowest_sqnr(records: list[Record], expected: str) -> str:
    """The lowest SQNR of what the targets computed, against one side of the order of trust."""
    found = [
        comparison.metrics.sqnr_db
        for record in records
        for comparison in record.comparisons
        if comparison.pair == f"{record.target}/{expected}"
        and comparison.metrics is not None
        and comparison.metrics.sqnr_db is not None
    ]
    return number(min(found)) if found else NOTHING
