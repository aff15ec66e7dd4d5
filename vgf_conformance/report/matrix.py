"""matrix.md: what was covered and what came of it."""

from __future__ import annotations

from collections import Counter

from vgf_conformance.report import markdown
from vgf_conformance.report.claims import emitted
from vgf_conformance.report.claims_text import claims_section, tosa_section
from vgf_conformance.report.models import models_section
from vgf_conformance.report.tally import (
    NOTHING,
    Column,
    Tally,
    columns,
    duration,
    environment,
    explanation,
    grouped,
    is_noisy,
    notes,
    outcome,
    row_name,
    stage_counts,
    started,
    timespan,
    verdict_counts,
)
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Verdict

#: Profiles with schemes and targets that a table shows: a run has some thirty.
MOST_COLUMNS = 100


def matrix_report(results: Results) -> str:
    """The coverage matrix as Markdown, with every verdict that is not a plain pass."""
    records = sorted(results.records, key=lambda record: record.id)
    return markdown.document(
        "Coverage matrix",
        ("Environment", _environment(results)),
        ("Totals", _totals(records)),
        ("Operators", _operators([record for record in records if record.kind == "operator"])),
        ("TOSA's own tests", _operators([record for record in records if record.kind == "tosa"])),
        ("How targets compute", _arithmetic([record for record in records if record.kind == "arithmetic"])),
        ("Models", models_section(results.records)),
        ("Claims against observations", claims_section(results)),
        ("TOSA operators of the emitted graphs", tosa_section(emitted(records))),
        ("Quantised, yet computed in floating point", _floating(emitted(records))),
        ("Unexpected verdicts", _unexpected(records)),
        ("Expected failures", _expected(records)),
        ("Failures by stage", _stages(records)),
        ("Not run, and other notes", "\n".join(map(markdown.item, notes(results)))),
    )


def _environment(results: Results) -> str:
    facts = {
        "started": started(results) or NOTHING,
        "duration": timespan(duration(results)),
        **environment(results),
    }
    return markdown.table(facts.items(), ["", ""])


def _totals(records: list[Record]) -> str:
    by_verdict = grouped(records, lambda record: record.verdict)
    rows: list[list[object]] = [
        [verdict.value, count, sum(record.unexpected for record in by_verdict[verdict])]
        for verdict, count in verdict_counts(records).items()
    ]
    if noisy := sum(map(is_noisy, records)):
        rows.append(["of these passes, noisy", noisy, NOTHING])
    rows.append(["all", len(records), sum(record.unexpected for record in records)])
    return markdown.table(rows, ["verdict", "cases", "unexpected"])


def _operators(records: list[Record]) -> str:
    """One table for each suite file, all with the same columns."""
    every = columns(records)
    shown = every[:MOST_COLUMNS]
    tables = [
        f"### {markdown.inline(file)}\n\n" + _coverage(members, shown)
        for file, members in grouped(records, lambda record: record.suite_file).items()
    ]
    if len(every) > len(shown):
        tables.insert(0, f"{len(every) - len(shown)} columns more are left out; report.html has all records.")
    return "\n\n".join(tables)


def _coverage(records: list[Record], shown: list[Column]) -> str:
    rows = []
    for name, members in sorted(grouped(records, row_name).items()):
        found = {column: str(Tally.of(cell)) for column, cell in grouped(members, Column.of).items()}
        rows.append([name, *(found.get(column, NOTHING) for column in shown)])
    return markdown.table(rows, ["operator", *map(str, shown)])


def _arithmetic(records: list[Record]) -> str:
    """What each target answered, where TOSA leaves it a choice."""
    rows = [
        [record.case, record.sample, record.target, outcome(record), "; ".join(record.notes)]
        for record in records
    ]
    return markdown.table(rows, ["property", "type", "target", "verdict", "answers"]) if rows else ""


def _floating(records: list[Record]) -> str:
    """What the quantiser left alone where the profile has floating-point operators, once for all targets."""
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for record in records:
        counts = Counter[str]()
        for delegate in record.delegates if record.scheme != "none" else []:
            counts.update(delegate.floating)
        if counts:
            found[row_name(record), record.sample, f"{record.profile} {record.scheme}"] = counts
    rows = [
        [*name, ", ".join(f"{operator} ({count})" for operator, count in counts.items())]
        for name, counts in found.items()
    ]
    return markdown.table(rows, ["operator", "sample", "profile, scheme", "TOSA operators"]) if rows else ""


def _unexpected(records: list[Record]) -> str:
    found = [record for record in records if record.unexpected]
    if not found:
        return "None."
    return "\n".join(
        f"{markdown.item(record.id)}: **{outcome(record)}**\n\n"
        + markdown.code("\n".join(filter(None, (explanation(record), f"reproduce: {record.repro}"))))
        for record in found
    )


def _expected(records: list[Record]) -> str:
    foreseen = [record for record in records if record.verdict is not Verdict.PASS and not record.unexpected]
    rows = [[record.name, outcome(record), record.expected or NOTHING] for record in foreseen]
    return markdown.table(rows, ["case", "verdict", "reason"]) if rows else ""


def _stages(records: list[Record]) -> str:
    rows = [[stage.value, tally.total, tally.unexpected] for stage, tally in stage_counts(records).items()]
    return markdown.table(rows, ["stage", "cases", "unexpected"]) if rows else ""
