"""sensitivity.md: the share of planted faults that the tolerances catch, and those that they do not."""

from __future__ import annotations

from collections import Counter

from vgf_conformance.report import markdown
from vgf_conformance.report.tally import grouped, percent, row_name
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record, Sensitivity

HEADERS = ["operator", "profile", "scheme", "dtypes", "cases", "faults", "caught", "share", "equivalent"]


def has_sensitivity(results: Results) -> bool:
    """Whether any record was measured."""
    return any(record.sensitivity for record in results.records)


def sensitivity_report(results: Results) -> str:
    """The report as Markdown: by operator, profile, scheme and dtype, then every survivor."""
    measured = [record for record in results.records if record.sensitivity]
    groups = grouped(
        measured, lambda item: (row_name(item), item.profile, item.scheme, ", ".join(item.dtypes))
    )
    rows = [[*key, len(records), *_figures(_sum(records))] for key, records in sorted(groups.items())]
    total = _sum(measured)
    summary = (
        f"{total.caught} of {total.faults} faults caught ({percent(_share(total))}) in {len(measured)} "
        f"cases; {total.equivalent} more changed nothing and do not count."
    )
    return markdown.document(
        "Sensitivity",
        ("Summary", summary),
        ("By operator", markdown.table(rows, HEADERS)),
        ("Survivors", _survivors(measured)),
    )


def _sum(records: list[Record]) -> Sensitivity:
    total = Sensitivity()
    for record in records:
        if record.sensitivity:
            total.add(record.sensitivity)
    return total


def _figures(found: Sensitivity) -> list[object]:
    return [found.faults, found.caught, percent(_share(found)), found.equivalent]


def _share(found: Sensitivity) -> float | None:
    return found.caught / found.faults if found.faults else None


def _survivors(records: list[Record]) -> str:
    """Each survivor with its case, those of one case and kind together."""
    rows = []
    for record in records:
        for text, count in Counter(record.sensitivity.survivors if record.sensitivity else []).items():
            rows.append([record.name, text, count])
    return markdown.table(rows, ["case", "fault, and why it survives", "times"]) if rows else "None."
