"""tolerance.md: how much of each bound was used, and by which sample."""

from __future__ import annotations

from collections.abc import Mapping

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
    sqnr,
    used,
)
from vgf_conformance.results.baselines import key_of
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Comparison, Record

HEADERS = [
    "operator",
    "profile",
    "scheme",
    "target",
    "worst error",
    "pair",
    "rule",
    "bound used",
    "recorded",
    "SQNR vs eager",
    "vs quantised",
    "sample",
    "worst element",
]


def tolerance_report(results: Results) -> str:
    """The tolerance report as Markdown: for each operator and column the worst comparison."""
    groups = grouped(results.records, lambda record: (row_name(record), Column.of(record)))
    order = {column: place for place, column in enumerate(columns(results.records))}
    recorded = {
        (item.target, key): share for item in results.baselines for key, share in item.headroom.items()
    }
    rows = [
        [name, *column, *_worst(groups[name, column], recorded)]
        for name, column in sorted(groups, key=lambda key: (key[0], order[key[1]]))
    ]
    explanation = (
        "Errors are in LSB (quantisation steps) for integer outputs, else in ULP (units in the last place). "
        "Bound used is the headroom: the share of what the rule allows; recorded is what the sample used "
        "when its baseline was recorded. "
        "SQNR is the lowest of all samples, in dB. The worst element lies farthest off, not always in units "
        "of its bound."
    )
    table = markdown.table(rows, HEADERS) if rows else "Nothing was compared."
    return markdown.document("Tolerance", ("Worst comparison of each operator", f"{explanation}\n\n{table}"))


def _worst(records: list[Record], recorded: Mapping[tuple[str, str], float]) -> list[str]:
    sqnr = [_lowest_sqnr(records, "eager"), _lowest_sqnr(records, "quantised")]
    comparisons = judged(records)
    if not comparisons:
        return [NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, *sqnr, NOTHING, NOTHING]
    record, worst = comparisons[0]
    shares = [percent(used(worst)), percent(recorded.get((record.target, key_of(record))))]
    error = [error_text(worst), worst.pair, worst.rule]
    return [*error, *shares, *sqnr, record.sample, _element(worst)]


def _element(comparison: Comparison) -> str:
    """``[0, 3]: 1.5, should be 1.25``."""
    metrics = comparison.metrics
    if metrics is None or metrics.worst_index is None or not metrics.differing:
        return NOTHING
    values = f"{number(metrics.worst_actual)}, should be {number(metrics.worst_expected)}"
    return f"{list(metrics.worst_index)}: {values}"


def _lowest_sqnr(records: list[Record], expected: str) -> str:
    """The lowest SQNR of what the targets computed, against one side of the order of trust."""
    found = [
        value
        for record in records
        for comparison in record.comparisons
        if comparison.pair == f"{record.target}/{expected}"
        and comparison.metrics is not None
        and (value := sqnr(comparison.metrics)) is not None
    ]
    return number(min(found)) if found else NOTHING
