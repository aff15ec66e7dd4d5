"""What the terminal shows at the end of a run, and when two runs are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent

from tabulate import tabulate

from vgf_conformance.report.claims_text import claims_lines
from vgf_conformance.report.failure import causes_text
from vgf_conformance.report.tally import (
    NOTHING,
    Column,
    Tally,
    accuracy_text,
    columns,
    grouped,
    is_noisy,
    not_run,
    outcome,
    verdict_counts,
)
from vgf_conformance.results.compare import Change, DelegationChange, RunComparison
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Grade, Verdict


def summary_table(results: Results) -> str:
    """What was not run, verdicts by profile, scheme and target, how claims stand, what was unexpected."""
    claims = [f"\n{line}" if number == 0 else line for number, line in enumerate(claims_lines(results))]
    counts = _counts(results.records)
    watched = _watched(results.records)
    parts = [*results.warnings, *not_run(results), counts, *claims, *watched]
    if unexpected := causes_text(record for record in results.records if record.unexpected):
        parts.append(f"\n{unexpected}")
    return "\n".join(parts)


def compare_table(comparison: RunComparison) -> str:
    """What changed between two runs, one paragraph for each kind of change."""
    sections: list[tuple[str, list[list[str]]]] = [
        ("new failures", [_change(item) for item in comparison.new_failures]),
        ("fixed", [_change(item) for item in comparison.fixed]),
        ("failing otherwise", [_change(item) for item in comparison.changed_failures]),
        ("new cases", [[item.id, outcome(item)] for item in comparison.new_cases]),
        ("missing cases", [[item.id, outcome(item)] for item in comparison.missing_cases]),
        ("lost delegation", [_moved(item) for item in comparison.lost_delegation]),
        ("gained delegation", [_moved(item) for item in comparison.gained_delegation]),
    ]
    texts = [f"{title}: {len(rows)}\n{_plain(rows)}" for title, rows in sections if rows]
    texts = texts or ["nothing changed"]
    if comparison.not_asked_for:
        texts.append(f"not asked for in the later run: {comparison.not_asked_for} cases of the earlier one")
    return "\n\n".join(texts)


def _watched(records: Sequence[Record]) -> Iterator[str]:
    """What the worker's memory, the artifact cache and the validation layer had to say."""
    for record in records:
        yield from (f"{note} ({record.id})" for note in record.notes if note.startswith("memory leak: "))
    yield from noisy_lines(records)
    yield from _graded(records)
    cached = sorted(record.cached for record in records if record.cached)
    if cached:
        oldest = f"the oldest lowered {cached[0]} (--no-cache lowers all anew)"
        yield f"from the artifact cache: {len(cached)} records, {oldest}"
    said = [sum(note.startswith("validation: ") for note in record.notes) for record in records]
    if any(said):
        yield f"validation layer: {sum(said)} messages, in {sum(map(bool, said))} cases"


def noisy_lines(records: Iterable[Record]) -> Iterator[str]:
    """How many conform although they are noisy, and what is said of each."""
    found = [record for record in records if is_noisy(record)]
    if found:
        yield f"noisy: {len(found)} passes, beyond this harness's own limit to noise"
    for record in found:
        yield from (f"  {record.id}: {note}" for note in record.notes if note.startswith("noisy: "))


def _graded(records: Iterable[Record]) -> Iterator[str]:
    """The models that pass and are not good all the same."""
    found = [
        record
        for record in records
        if record.kind == "model"
        and record.verdict is Verdict.PASS
        and record.accuracy is not None
        and record.accuracy.grade is not Grade.GOOD
    ]
    if found:
        yield f"accuracy: {len(found)} passes of models whose outputs are not good beside eager's"
    yield from (f"  {record.id}: {accuracy_text(record.accuracy)}" for record in found)


def _counts(records: list[Record]) -> str:
    by_column = grouped(records, Column.of)
    verdicts = list(verdict_counts(records))
    rows: list[list[object]] = []
    for column in columns(records):
        found = verdict_counts(by_column[column])
        tally = Tally.of(by_column[column])
        counts = (found.get(verdict, NOTHING) for verdict in verdicts)
        rows.append([*column, *counts, tally.expected or NOTHING, tally.unexpected or NOTHING])
    headers = [
        "profile",
        "scheme",
        "target",
        *(verdict.value for verdict in verdicts),
        "expected failures",
        "unexpected",
    ]
    alignment = ["left"] * 3 + ["right"] * (len(headers) - 3)
    return tabulate(rows, headers, colalign=alignment, disable_numparse=True) if rows else "nothing was run"


def _change(change: Change) -> list[str]:
    return [change.new.id, f"{outcome(change.old)} -> {outcome(change.new)}"]


def _moved(change: DelegationChange) -> list[str]:
    name = f"{change.file}::{change.case}[{change.sample}-{change.profile}-{change.scheme}]"
    return [name, f"{change.old_nodes} -> {change.new_nodes} delegated nodes"]


def _plain(rows: Sequence[Sequence[str]]) -> str:
    return indent(tabulate(rows, tablefmt="plain", disable_numparse=True), "  ")
