"""What several reports count and print alike."""

from __future__ import annotations

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Accuracy, Comparison, Metrics, Record
from vgf_conformance.terminal import one_line
from vgf_conformance.vocabulary import SCHEMES, TARGETS, Finding, Stage, Verdict

Item = TypeVar("Item")
Key = TypeVar("Key")

#: What a table shows where there is nothing to show.
NOTHING = "–"  # noqa: RUF001


class Column(NamedTuple):
    """One column of the coverage matrix."""

    profile: str
    scheme: str
    target: str

    @classmethod
    def of(cls, record: Record) -> Column:
        """The column that a record counts in."""
        return cls(record.profile, record.scheme, record.target)

    def __str__(self) -> str:
        return f"{self.profile} {self.scheme} {self.target}"


@dataclass(frozen=True)
class Tally:
    """How many records passed, failed as expected, or came out otherwise."""

    total: int
    passed: int
    expected: int
    unexpected: int

    @classmethod
    def of(cls, records: list[Record]) -> Tally:
        """Count records; each is exactly one of the three."""
        unexpected = sum(record.unexpected for record in records)
        passed = sum(record.verdict is Verdict.PASS and not record.unexpected for record in records)
        return cls(len(records), passed, len(records) - passed - unexpected, unexpected)

    def __str__(self) -> str:
        if self.unexpected:
            return f"✗ {self.unexpected} of {self.total}"
        return f"{self.passed}/{self.total}" + (f" ({self.expected} expected)" if self.expected else "")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by key, in the order in which keys and items come."""
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


def columns(records: Iterable[Record]) -> list[Column]:
    """The columns of the coverage matrix, in the vocabulary's order and then by name."""

    def place(column: Column) -> tuple[object, ...]:
        return (
            _place(column.profile, ("FP", "INT", "FP+INT")),
            _place(column.scheme, tuple(SCHEMES)),
            _place(column.target, tuple(TARGETS)),
        )

    return sorted({Column.of(record) for record in records}, key=place)


def _place(word: str, order: tuple[str, ...]) -> tuple[int, str]:
    return (order.index(word) if word in order else len(order), word)


def row_name(record: Record) -> str:
    """What a record's row is called: its operator, or the case where it names none."""
    return record.operator or record.case


def seconds(record: Record) -> float:
    """The time of all stages."""
    return sum(record.seconds.values())


def stage_name(record: Record) -> str:
    """The stage of a failure."""
    return record.stage.value if record.stage else NOTHING


def is_noisy(record: Record) -> bool:
    """Whether it passes by its operators' own bounds, beyond this harness's own limit to noise."""
    return record.verdict is Verdict.PASS and record.finding is Finding.NOISY


def outcome(record: Record) -> str:
    """Verdict, stage and finding in words: ``fail at lower (wrong)``."""
    place = f" at {record.stage.value}" if record.stage else ""
    finding = f" ({record.finding.value})" if record.finding else ""
    return f"{record.verdict.value}{place}{finding}"


def explanation(record: Record) -> str:
    """The failure's message, and why an expectation does not fit it."""
    return "\n".join(text for text in (record.expectation_note, record.message) if text)


def accuracy_text(accuracy: Accuracy | None) -> str:
    """The worst SQNR and the word for it: ``41 dB, good``."""
    if accuracy is None:
        return NOTHING
    sqnr = "exact" if accuracy.sqnr_db == math.inf else f"{accuracy.sqnr_db:.0f} dB"
    return f"{sqnr}, {accuracy.grade.value}"


def verdict_counts(records: Iterable[Record]) -> dict[Verdict, int]:
    """How often each verdict came out, those that never did left out."""
    counts = Counter(record.verdict for record in records)
    return {verdict: counts[verdict] for verdict in Verdict if counts[verdict]}


def stage_counts(records: Iterable[Record]) -> dict[Stage, Tally]:
    """What failed at each stage, stages without failures left out."""
    by_stage = grouped(records, lambda record: record.stage)
    return {stage: Tally.of(by_stage[stage]) for stage in Stage if stage in by_stage}


def environment(results: Results) -> dict[str, str]:
    """The environment of all runs, nested names joined by dots; runs that differ show each value."""
    values: dict[str, dict[str, None]] = defaultdict(dict)
    for run in results.runs:
        for name, value in _flattened(run):
            if value:
                values[name][value] = None
    return {name: " | ".join(found) for name, found in values.items() if found}


def _flattened(document: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in document.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        elif prefix or name not in ("type", "schema", "started", "notes"):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{prefix}{name}", text


def notes(results: Results) -> list[str]:
    """What was not run or not read, and every note of the records with how often it came."""
    found = Counter(note for record in results.records for note in record.notes)
    return [
        *results.warnings,
        *not_run(results),
        *(note for run in results.runs for note in run.get("notes", [])),
        *(f"{note} ({count} cases)" if count > 1 else note for note, count in found.most_common()),
    ]


def not_run(results: Results) -> list[str]:
    """Every case that could not be run, with the reason, those of one declaration and reason together."""
    groups = grouped(results.not_run, lambda item: (item.id.partition("[")[0], item.reason))
    return [
        f"not run: {case} ({len(members)} cases): {one_line(reason)}"
        for (case, reason), members in groups.items()
    ]


def started(results: Results) -> str:
    """When the first run began; empty where no run says."""
    return min((str(run["started"]) for run in results.runs if run.get("started")), default="")


def duration(results: Results) -> float | None:
    """Seconds from the first run's start to the last record; None where it cannot be told."""
    begin, end = started(results), max((record.written for record in results.records), default="")
    try:
        span = datetime.datetime.fromisoformat(end) - datetime.datetime.fromisoformat(begin)
        return span.total_seconds()
    except (TypeError, ValueError):
        return None


def severity(value: float | None) -> float:
    """A sort key: NaN is worst, None least."""
    if value is None:
        return -math.inf
    return math.inf if math.isnan(value) else value


def used(comparison: Comparison) -> float | None:
    """The share of the bound that was used; infinite where NaN or infinity wrongly stands for something else.

    The comparison's own is that of the finite elements.
    """
    wrong = comparison.passed is False and comparison.metrics and comparison.metrics.nonfinite_mismatches
    return math.inf if wrong else comparison.headroom


def judged(records: Iterable[Record]) -> list[tuple[Record, Comparison]]:
    """Every comparison of which is known how much of its bound was used, worst first."""
    pairs = [
        (record, comparison)
        for record in records
        for comparison in record.comparisons
        if used(comparison) is not None
    ]
    return sorted(pairs, key=lambda pair: (-severity(used(pair[1])), pair[0].id, pair[1].pair))


def error_text(comparison: Comparison) -> str:
    """The largest error in LSB, else in ULP, else in the tensor's units; ``NaN for 0.3`` is larger still."""
    metrics = comparison.metrics
    if metrics is None:
        return NOTHING
    if metrics.nonfinite_mismatches:
        return nonfinite_text(metrics)
    for value, unit in ((metrics.max_lsb, " LSB"), (metrics.max_ulp, " ULP"), (metrics.max_abs, "")):
        if value is not None:
            return number(value) + unit
    return NOTHING


def nonfinite_text(metrics: Metrics) -> str:
    """The worst element where it, or what it should be, is NaN or infinite: ``NaN for 0.3``."""
    return f"{number(metrics.worst_actual)} for {number(metrics.worst_expected)}"


def sqnr(metrics: Metrics) -> float | None:
    """The SQNR in decibels: minus infinity where NaN or infinity stands for something else, or the reverse.

    The metrics' own is that of the finite elements.
    """
    return -math.inf if metrics.nonfinite_mismatches else metrics.sqnr_db


def sqnr_text(comparison: Comparison) -> str:
    """The SQNR as ``41.3 dB``."""
    value = sqnr(comparison.metrics) if comparison.metrics else None
    return NOTHING if value is None else f"{number(value)} dB"


def number(value: float | None) -> str:
    """Three significant digits, as people write them."""
    if value is None:
        return NOTHING
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3g}"


def percent(share: float | None) -> str:
    """A share of the bound in percent."""
    return NOTHING if share is None else f"{number(100 * share)} %"


def timespan(span: float | None) -> str:
    """Seconds as ``12.3 s``, ``4 min 05 s`` or ``2 h 03 min``."""
    if span is None or not math.isfinite(span):
        return NOTHING
    if span < 60:
        return f"{span:.3g} s"
    minutes, rest = divmod(round(span), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def clipped(text: str, limit: int) -> str:
    """The text, cut in the middle where it is longer than ``limit``: both ends tell most."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
