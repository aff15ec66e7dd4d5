"""Two drivers side by side, for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from vgf_conformance.comparison.drivers import CasePair, DriverComparison, used
from vgf_conformance.report.markdown import document, inline, table
from vgf_conformance.report.tally import NOTHING, grouped, number, outcome, percent, row_name
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Verdict

#: How many cases of a kind the terminal shows; the page has all.
SHOWN = 20

_HEADERS = (
    *("operator", "cases", "pass A", "pass B", "same bits", "apart by at most"),
    *("bound used A", "bound used B", "seconds A", "seconds B"),
)


def drivers_text(comparison: DriverComparison) -> str:
    """The comparison for a terminal: a row for each operator, then the cases in which the two differ."""
    parts = [
        f"A: {comparison.first.name}, {len(comparison.first.records)} cases",
        f"B: {comparison.second.name}, {len(comparison.second.records)} cases",
        "",
        tabulate(_rows(comparison), _HEADERS, colalign=["left"] + ["right"] * 9, disable_numparse=True),
    ]
    for title, rows in _sections(comparison):
        parts += ["", f"{title}: {len(rows)}"]
        shown = tabulate(rows[:SHOWN], tablefmt="plain", disable_numparse=True)
        parts += [f"  {line}" for line in shown.splitlines()]
        if len(rows) > SHOWN:
            parts.append(f"  ... and {len(rows) - SHOWN} more: -o FILE.md has all")
    return "\n".join(parts)


def drivers_page(comparison: DriverComparison) -> str:
    """The same as Markdown, with all cases."""
    names = f"A: {inline(comparison.first.name)}\n\nB: {inline(comparison.second.name)}"
    sections = [
        (f"{title} ({len(rows)})", table(rows, ["case", "A", "B"][: len(rows[0])]))
        for title, rows in _sections(comparison)
    ]
    return document(
        "Two drivers", ("Drivers", names), ("Operators", table(_rows(comparison), _HEADERS)), *sections
    )


def _rows(comparison: DriverComparison) -> list[list[str]]:
    groups = grouped(comparison.pairs, lambda pair: row_name(pair.first))
    return [
        *([name, *_row(pairs)] for name, pairs in sorted(groups.items())),
        ["all", *_row(comparison.pairs)],
    ]


def _row(pairs: Sequence[CasePair]) -> list[str]:
    known = [pair.same_bits for pair in pairs if pair.same_bits is not None]
    sides = [[pair.first for pair in pairs], [pair.second for pair in pairs]]
    return [
        str(len(pairs)),
        *(str(sum(record.verdict is Verdict.PASS for record in side)) for side in sides),
        f"{sum(known)}/{len(known)}" if known else NOTHING,
        _apart(pairs),
        *(percent(_most_used(side)) for side in sides),
        *(f"{sum(record.seconds.get('run', 0.0) for record in side):.2f}" for side in sides),
    ]


def _most_used(records: Sequence[Record]) -> float | None:
    return max((share for record in records if (share := used(record)) is not None), default=None)


def _apart(pairs: Sequence[CasePair]) -> str:
    """The largest distances, floats in ULP and integers in steps."""
    floats = [pair.max_ulp for pair in pairs if pair.max_ulp is not None]
    integers = [pair.max_lsb for pair in pairs if pair.max_lsb is not None]
    found = [
        f"{number(max(values))} {unit}" for values, unit in ((floats, "ULP"), (integers, "LSB")) if values
    ]
    return ", ".join(found) or NOTHING


def _sections(comparison: DriverComparison) -> list[tuple[str, list[list[str]]]]:
    """The cases in which the two differ, by kind; kinds without any are left out."""
    pairs = comparison.pairs
    verdicts = [pair for pair in pairs if pair.first.verdict is not pair.second.verdict]
    bits = [pair for pair in pairs if pair.both_pass and pair.same_bits is False]
    bits.sort(key=lambda pair: (-(pair.max_ulp or pair.max_lsb or 0.0), pair.id))
    sections = [
        ("other verdicts", [[pair.id, outcome(pair.first), outcome(pair.second)] for pair in verdicts]),
        ("both conform, with other bits", [[pair.id, _distance(pair)] for pair in bits]),
        ("only A has", [[case] for case in comparison.only_first]),
        ("only B has", [[case] for case in comparison.only_second]),
    ]
    return [(title, rows) for title, rows in sections if rows]


def _distance(pair: CasePair) -> str:
    if not pair.apart:
        return "raw outputs are not at hand: compare submissions"
    differing = sum(item.differing for item in pair.apart)
    elements = sum(item.elements for item in pair.apart)
    return f"{_apart([pair])}, {differing} of {elements} elements"
