"""What a run shows of models: delegation, accuracy, time, sizes and where each comes from, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from vgf_conformance.report import markdown
from vgf_conformance.report.tally import NOTHING, accuracy_text, columns, grouped, number, outcome, timespan
from vgf_conformance.results.record import Accuracy, Record, Score, TaskResult

#: Stages of an artifact, timed once, and what each target adds.
_LOWERING = ("export", "quantise", "lower")
_TIMED = (*_LOWERING, "run", "task")

#: Targets that a table shows: there are four, and results may name others.
MOST_TARGETS = 20


def models_section(records: Iterable[Record]) -> str:
    """Three tables: each lowered model on every target, its accuracy at its task, and its source."""
    models = sorted((record for record in records if record.kind == "model"), key=lambda item: item.id)
    if not models:
        return ""
    every = list(dict.fromkeys(column.target for column in columns(models)))
    targets = every[:MOST_TARGETS]
    lowered = grouped(
        models, lambda item: (item.suite_file, item.case, item.sample, item.profile, item.scheme)
    )
    artifacts = [_artifact(members, targets) for members in lowered.values()]
    scored = [_accuracy(members, targets) for members in lowered.values() if any(m.task for m in members)]
    sources = [
        [case, *members[0].about.values()]
        for case, members in grouped(models, lambda item: item.case).items()
        if members[0].about
    ]
    tables = [
        ("", _headers("in delegates", "on the CPU", *targets, "accuracy", *_TIMED, "VGF", ".pte"), artifacts),
        (
            "### Accuracy",
            _headers("metric", "examples", "eager", "quantised", *targets, "allowed"),
            scored,
        ),
        ("### Sources", ["model", "source", "licence", "weights"], sources),
    ]
    sections = [
        f"{title}\n\n{markdown.table(rows, headers)}".strip() for title, headers, rows in tables if rows
    ]
    if len(every) > len(targets):
        left_out = len(every) - len(targets)
        sections.insert(0, f"{left_out} targets more are left out; report.html has all records.")
    return "\n\n".join(sections)


def score_text(score: Score | None) -> str:
    """A mean score with its confidence interval."""
    if score is None:
        return NOTHING
    return f"{number(score.mean)} ({number(score.low)} to {number(score.high)})"


def _headers(*rest: str) -> list[str]:
    return ["model", "sample", "profile", "scheme", *rest]


def _artifact(members: list[Record], targets: list[str]) -> list[str]:
    first = members[0]
    found = {record.target: record for record in members}
    inside = sum(delegate.nodes for delegate in first.delegates)
    outside = sum(leftover.count for leftover in first.leftovers)
    left = "; ".join(f"{item.operator} × {item.count}: {item.reason}" for item in first.leftovers)  # noqa: RUF001
    verdicts = [
        outcome(found[target]) + (" ✗" if found[target].unexpected else "") if target in found else NOTHING
        for target in targets
    ]
    return [
        *_names(first),
        f"{inside}/{inside + outside} in {len(first.delegates)}",
        left or NOTHING,
        *verdicts,
        accuracy_text(_least(members)),
        *(timespan(_seconds(members, stage)) for stage in _TIMED),
        _size(sum(delegate.vgf_bytes for delegate in first.delegates)),
        _size(first.pte_bytes),
    ]


def _least(members: list[Record]) -> Accuracy | None:
    """The accuracy on the target where it is least."""
    found = [record.accuracy for record in members if record.accuracy is not None]
    return min(found, key=lambda item: item.sqnr_db, default=None)


def _accuracy(members: list[Record], targets: list[str]) -> list[str]:
    tasks = [record.task for record in members if record.task is not None]
    scores = {score.program: score for task in tasks for score in task.scores}
    return [
        *_names(members[0]),
        tasks[0].metric,
        str(tasks[0].examples),
        *(score_text(scores.get(program)) for program in ("eager", "quantised", *targets)),
        _allowed(tasks[0]),
    ]


def _seconds(members: list[Record], stage: str) -> float | None:
    found = [record.seconds[stage] for record in members if stage in record.seconds]
    if not found:
        return None
    return found[0] if stage in _LOWERING else sum(found)


def _allowed(task: TaskResult) -> str:
    return f"{task.drop:g} {task.unit}".rstrip()


def _names(record: Record) -> list[str]:
    return [record.case, record.sample, record.profile, record.scheme]


def _size(size: int) -> str:
    return f"{size / 1024:.0f} KiB" if size else NOTHING
