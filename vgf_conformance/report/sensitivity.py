"""sensitivity.md: the share of planted faults that the tolerances catch, and those that they do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vgf_conformance.report import markdown
from vgf_conformance.report.tally import grouped, percent, row_name
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record, Sensitivity

HEADERS = ["operator", "profile", "scheme", "dtypes", "samples", "faults", "caught", "share", "equivalent"]

#: Operators that come with a sample's shapes: graphs that differ in these alone have the same faults.
_LAYOUT = frozenset({"CONST", "CONST_SHAPE", "RESHAPE", "TRANSPOSE"})


def has_sensitivity(results: Results) -> bool:
    """Whether any record was measured."""
    return any(record.sensitivity or record.quantise_sensitivity for record in results.records)


def sensitivity_report(results: Results) -> str:
    """The report as Markdown: by operator, profile, scheme and dtype, then every survivor; then by fault.

    The faults of a device come first, those of the quantise stage last.

    A fault of the graph counts as caught where another sample of the same operator (of the same case, where
    that names none) catches it, in a graph of the same TOSA operators: as a mutant is killed by any test.
    """
    measured = [record for record in results.records if record.sensitivity]
    missed = _missed(measured)
    groups = grouped(
        measured, lambda item: (row_name(item), item.profile, item.scheme, ", ".join(item.dtypes))
    )
    rows = [
        [*key, len(records), *_figures(_sum(records), _count(records, missed))]
        for key, records in sorted(groups.items())
    ]
    total, left = _sum(measured), _count(measured, missed)
    summary = (
        f"{total.faults - left} of {total.faults} faults caught ({percent(_share(total, left))}) with "
        f"{len(measured)} samples: {total.caught} by the very sample in whose result or graph they are, the "
        f"others by another sample of the same operator. {total.equivalent} more changed nothing and do not "
        "count."
    )
    return markdown.document(
        "Sensitivity",
        ("Summary", summary),
        ("By operator", markdown.table(rows, HEADERS)),
        ("Survivors", _survivors(missed)),
        *_of_quantise(results.records),
    )


def _of_quantise(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Faults of the quantise stage, which its own sample has to catch; empty where none was planted."""
    measured = [(item, item.quantise_sensitivity) for item in records if item.quantise_sensitivity]
    if not measured:
        return []
    total = Sensitivity()
    for _, found in measured:
        total.add(found)
    missed = [(record, text) for record, found in measured for text in found.survivors]
    summary = (
        f"{total.caught} of {total.faults} faults of the quantise stage caught "
        f"({percent(_share(total, len(missed)))}) with {len(measured)} samples. {total.equivalent} more "
        "changed nothing and do not count."
    )
    caught, survived = (Counter(map(_kind, names)) for names in (total.mutants, total.survivors))
    rows = [
        [
            kind,
            caught[kind] + survived[kind],
            caught[kind],
            percent(caught[kind] / (caught[kind] + survived[kind])),
        ]
        for kind in sorted(caught | survived)
    ]
    return [
        ("Quantise stage", f"{summary}\n\n{markdown.table(rows, ['fault', 'planted', 'caught', 'share'])}"),
        ("Survivors of the quantise stage", _survivors(missed)),
    ]


def _kind(name: str) -> str:
    """The fault without its place."""
    return name.partition(" (")[0]


Missed = Sequence[tuple[Record, str]]


def _missed(measured: Sequence[Record]) -> Missed:
    """The survivors that no sample of their operator catches, each with its record."""
    missed = []
    for records in grouped(measured, _graph_of).values():
        caught = {name for record in records for name in _of(record).mutants}
        missed += [
            (record, text)
            for record in records
            for text in _of(record).survivors
            if text.partition(": ")[0] not in caught
        ]
    return missed


def _graph_of(record: Record) -> tuple[object, ...]:
    """Samples of one row whose delegates compute with the same TOSA operators."""
    operators = tuple(
        tuple(sorted(item for item in delegate.tosa_operators.items() if item[0] not in _LAYOUT))
        for delegate in record.delegates
    )
    return (row_name(record), record.profile, record.scheme, operators)


def _of(record: Record) -> Sensitivity:
    assert record.sensitivity is not None
    return record.sensitivity


def _sum(records: Sequence[Record]) -> Sensitivity:
    total = Sensitivity()
    for record in records:
        total.add(_of(record))
    return total


def _count(records: Sequence[Record], missed: Missed) -> int:
    """How many of ``missed`` are of these records."""
    ids = {record.id for record in records}
    return sum(record.id in ids for record, _ in missed)


def _figures(found: Sensitivity, left: int) -> list[object]:
    return [found.faults, found.faults - left, percent(_share(found, left)), found.equivalent]


def _share(found: Sensitivity, left: int) -> float | None:
    return (found.faults - left) / found.faults if found.faults else None


def _survivors(missed: Missed) -> str:
    """Each survivor with its case, those of one case and kind together."""
    rows = [
        [name, text, count] for (name, text), count in Counter((r.name, text) for r, text in missed).items()
    ]
    return markdown.table(rows, ["case", "fault, and why it survives", "times"]) if rows else "None."
