"""How useful the outputs of a program are beside eager's: a word next to the verdict.

A verdict says which stage caused a difference. A model in which every stage is right need not be good:
eight bits may be too few for it. So each record of a program that ran has its SQNR against eager and a word
for it; where the model has a task, the word is the worse of the two.
"""

from __future__ import annotations

import math

import torch

from vgf_conformance.evaluation.eager import leaves
from vgf_conformance.evaluation.fault import Fault
from vgf_conformance.evaluation.prepare import Prepared
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.results.record import Accuracy, Record, TaskResult
from vgf_conformance.vocabulary import Finding, Grade, Stage, Verdict

#: Decibels from which on a model is good, and degraded: noise of 10 % and of 32 % of the signal's RMS.
GOOD_DB, DEGRADED_DB = 20.0, 10.0
#: How many times the drop that its task allows a degraded model may fall.
DEGRADED_DROP = 3.0

_GRADES = list(Grade)


def accuracy(subject: Subject, prepared: Prepared, record: Record) -> Accuracy | None:
    """The accuracy on the record's target; None where no floating-point output was compared with eager's."""
    found = [
        -math.inf if item.metrics.nonfinite_mismatches else item.metrics.sqnr_db
        for item in record.comparisons
        if item.pair == f"{record.target}/eager"
        and item.metrics is not None
        and item.metrics.sqnr_db is not None
        and prepared.eager[item.output].dtype.is_floating_point
    ]
    if not found:
        return None
    worst = -math.inf if any(map(math.isnan, found)) else min(found)
    grades = [_grade(worst), *([] if record.task is None else [_task_grade(record.task, record.target)])]
    return Accuracy(
        grade=max(grades, key=_GRADES.index),
        sqnr_db=worst,
        sample=record.sample,
        calibrated=None if prepared.quantised is None else _calibrated(subject),
    )


def budget_faults(subject: Subject, record: Record) -> list[Fault]:
    """A fault where the outputs keep less than the subject asks for, at the first stage that loses it."""
    wanted, kept = subject.min_sqnr, record.accuracy
    if wanted is None or kept is None or kept.sqnr_db >= wanted:
        return []
    low = {
        item.pair
        for item in record.comparisons
        if item.metrics is not None
        and item.metrics.sqnr_db is not None
        and not item.metrics.sqnr_db >= wanted
    }
    stages = {"quantised/eager": Stage.QUANTISE, "reference/eager": Stage.LOWER}
    stage = next((stage for pair, stage in stages.items() if pair in low), Stage.RUN)
    message = f"{kept.sqnr_db:.1f} dB against eager, asked for are {wanted:g} dB"
    return [Fault(Verdict.FAIL, stage, Finding.WRONG, message)]


def _grade(sqnr_db: float) -> Grade:
    if sqnr_db >= GOOD_DB:
        return Grade.GOOD
    return Grade.DEGRADED if sqnr_db >= DEGRADED_DB else Grade.UNUSABLE


def _task_grade(task: TaskResult, target: str) -> Grade:
    means = {score.program: score.mean for score in task.scores}
    # Written so that NaN, which is not less than anything, is unusable.
    for grade, times in ((Grade.GOOD, 1.0), (Grade.DEGRADED, DEGRADED_DROP)):
        if means["eager"] - means[target] <= times * task.drop:
            return grade
    return Grade.UNUSABLE


def _calibrated(subject: Subject) -> bool:
    """Whether the inputs are among those calibrated on."""
    return any(_equal(leaves(subject.inputs), leaves(item)) for item in subject.calibration)


def _equal(one: list[object], other: list[object]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else a == b
        for a, b in zip(one, other, strict=True)
    )
