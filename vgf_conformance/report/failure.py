"""The text of one failed record for a terminal."""

from __future__ import annotations

from tabulate import tabulate

from vgf_conformance.report.tally import outcome
from vgf_conformance.results.record import Comparison, FirstWrong, QuantiseFault, Record, TaskResult


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
    if record.task:
        parts.append(task_text(record.task))
    if record.quantise_fault:
        parts.append(quantise_fault_text(record.quantise_fault))
    if record.first_wrong:
        parts.append(first_wrong_text(record.first_wrong))
    if record.log:
        parts.append(f"last words:\n{record.log}")
    return "\n\n".join([*parts, f"again: {record.repro}"])


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
    metrics = comparison.metrics
    error = "" if metrics is None or metrics.max_abs is None else f"{metrics.max_abs:.3g}"
    used = "" if comparison.headroom is None else f"{comparison.headroom:.0%}"
    passed = {True: "pass", False: "FAIL", None: ""}[comparison.passed]
    return comparison.pair, str(comparison.output), comparison.rule, error, used, passed
