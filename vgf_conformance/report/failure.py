"""The text of failures for a terminal: of one record, and of all by their cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent
from typing import NamedTuple

from tabulate import tabulate

from vgf_conformance.report.tally import (
    columns,
    error_text,
    grouped,
    outcome,
    percent,
    severity,
    sqnr_text,
    used,
)
from vgf_conformance.results.record import Comparison, FirstWrong, QuantiseFault, Record, TaskResult
from vgf_conformance.vocabulary import Verdict

#: How many causes are shown in full, and how many in one line each; reports show all cases.
SHOWN, NAMED = 4, 10
#: How many lines of a message or a worker's output, and how many characters of a line, are shown.
LINES, WIDTH = 3, 160


class Cause(NamedTuple):
    """What failures have in common that have, as far as can be told, one cause.

    ``operator`` is the first wrong operator, or the step of the quantise stage and the pass that is wrong.
    Where none is known ``message`` is the first line of the message, without its numbers.
    """

    outcome: str
    operator: str = ""
    message: str = ""

    @classmethod
    def of(cls, record: Record) -> Cause:
        """The cause of a record that came out unexpectedly."""
        if record.verdict is Verdict.PASS:
            return cls("unexpected pass", message=record.expectation_note)
        if record.first_wrong:
            return cls(outcome(record), record.first_wrong.operator)
        if record.quantise_fault:
            found = record.quantise_fault
            return cls(outcome(record), " by ".join(filter(None, (found.step, found.cause))))
        return cls(outcome(record), message=_NUMBERS.sub("#", record.message.partition("\n")[0]))

    def __str__(self) -> str:
        return f"{self.outcome}, first wrong: {self.operator}" if self.operator else self.outcome


_NUMBER = r"-?(?<![^\W_])(?:\d[\w.+-]*|nan|inf)\b"
#: Numbers, those of one list as one: shapes of other ranks are no other cause.
_NUMBERS = re.compile(f"{_NUMBER}(?:, {_NUMBER})*,?")


def causes_text(records: Iterable[Record]) -> str:
    """Unexpected records by cause, the most frequent first: for each what fails, how, and one reproduction.

    It fits a screen whatever fails; empty where nothing does.
    """
    found = sorted(records, key=lambda record: record.id)
    causes = sorted(grouped(found, Cause.of).items(), key=lambda item: -len(item[1]))
    if not found:
        return ""
    lines = [f"{len(found)} unexpected, {_counted(len(causes), 'cause')}:"]
    for place, (cause, members) in enumerate(causes[: SHOWN + NAMED]):
        head = f"{_counted(len(members), 'case')}: {cause}"
        if place < SHOWN:
            lines += ["", head, *_shown(members)]
        else:
            lines += ["", *_NAMED_HEAD] if place == SHOWN else []
            lines.append(f"  {head}: {members[0].repro or members[0].id}")
    if len(causes) > SHOWN + NAMED:
        lines.append(f"  ... and {len(causes) - SHOWN - NAMED} more causes: the reports list all cases")
    return "\n".join(lines)


_NAMED_HEAD = ["further causes, with one reproduction each:"]


def _shown(members: Sequence[Record]) -> Iterator[str]:
    """Where a cause shows, and the case of it that is smallest in full."""
    if len(members) > 1:
        names = Counter(record.case for record in members)
        where = [f"{name} ({count})" for name, count in names.most_common(LINES * 2)]
        where += [f"{len(names) - len(where)} more"] if len(names) > len(where) else []
        seen = columns(members)
        configurations = dict.fromkeys(f"{column.profile} {column.scheme}" for column in seen)
        targets = dict.fromkeys(column.target for column in seen)
        yield f"  in {', '.join(where)}; {', '.join(configurations)}; on {', '.join(targets)}"
    smallest = min(members, key=_size)
    yield f"  {smallest.id}"
    yield indent(failure_text(smallest), "    ")


def _size(record: Record) -> tuple[int, int, bool, str]:
    """Delegated nodes, then elements: the fewer the easier; and the reference model needs no driver."""
    nodes = sum(delegate.nodes for delegate in record.delegates)
    elements = sum(item.metrics.elements for item in record.comparisons if item.metrics)
    return nodes, elements, record.target != "reference", record.id


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _first_lines(text: str) -> str:
    lines = text.splitlines()
    more = ["..."] if len(lines) > LINES else []
    return "\n".join([*(line[:WIDTH] for line in lines[:LINES]), *more])


def _last_lines(text: str) -> str:
    return "\n".join(line[-WIDTH:] for line in text.splitlines()[-LINES:])


def failure_text(record: Record) -> str:
    """Verdict, message, worst figures, what is wrong first, the worker's output and how to reproduce it."""
    parts = [f"{outcome(record)}: {_first_lines(record.message)}" if record.message else outcome(record)]
    if record.expectation_note:
        parts.append(_first_lines(record.expectation_note))
    failed = [item for item in record.comparisons if item.passed is False]
    if failed:
        worst = sorted(failed, key=lambda item: -severity(used(item)))[:LINES]
        headers = ("failed", "output", "rule", "max error", "SQNR", "bound used")
        parts.append(tabulate([_row(item) for item in worst], headers, "plain", disable_numparse=True))
    if record.task:
        parts.append(task_text(record.task))
    if record.quantise_fault:
        parts.append(quantise_fault_text(record.quantise_fault))
    if record.first_wrong:
        parts.append(first_wrong_text(record.first_wrong))
    if record.log:
        parts.append("worker output:\n" + indent(_last_lines(record.log), "  "))
    if record.repro:
        parts.append(f"reproduce: {record.repro}")
    return "\n".join(parts)


def task_text(task: TaskResult) -> str:
    """Every program's mean score with its interval, and what is allowed."""
    unit = f" {task.unit}" if task.unit else ""
    head = f"{task.metric} over {task.examples} examples, at most {task.drop:g}{unit} below eager:"
    rows = [
        f"  {score.program}: {score.mean:.4g}{unit} ({score.low:.4g} to {score.high:.4g})"
        for score in task.scores
    ]
    return "\n".join([head, *rows])


def bisection_text(record: Record) -> str:
    """What ``bisect`` says of a failing record: its stage and what is wrong first."""
    if record.first_wrong is not None:
        return first_wrong_text(record.first_wrong)
    if record.quantise_fault is not None:
        return f"{outcome(record)}: {record.message}\n{quantise_fault_text(record.quantise_fault)}"
    notes = "".join(f"\n  {note}" for note in record.notes)
    return f"{outcome(record)}, and no operator can be named: {record.message}{notes}"


def first_wrong_text(found: FirstWrong) -> str:
    """The first wrong step, the TOSA operators that it became, how wrong it is, and what shows it."""
    became = found.became or [f"{found.operator} {found.position}"]
    lines = [
        f"first wrong step ({found.stage.value}): {found.origin or 'not known'}",
        f"  became {', '.join(became)} of {found.delegate}; the result of {found.operator} is wrong",
        f"  {found.message}; judged by: {found.rule}",
        f"  shown by {found.repro}" if found.repro else "",
    ]
    return "\n".join(filter(None, lines))


def quantise_fault_text(found: QuantiseFault) -> str:
    """The step of the quantise stage that is wrong, its first wrong value and what changed it."""
    head = f"quantise, step {found.step}"
    if found.tensor:
        head += f": {found.tensor} is the first wrong value"
    lines = [
        f"{head}, changed by {found.cause}" if found.cause else head,
        f"  from {found.origin}" if found.origin else "",
    ]
    return "\n".join(filter(None, lines))


def _row(comparison: Comparison) -> tuple[str, ...]:
    return (
        comparison.pair,
        str(comparison.output),
        comparison.rule[:WIDTH],
        error_text(comparison),
        sqnr_text(comparison),
        percent(used(comparison)),
    )
