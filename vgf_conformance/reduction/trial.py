"""Whether a candidate fails as the user's model does: asked of the file that it would be written as."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vgf_conformance.cases.userfile import load_user_model
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.userfiles import subject_of_file
from vgf_conformance.reduction.candidate import Candidate
from vgf_conformance.reduction.source import NotWritable, write_case
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Finding, Profile, Stage, UserError, Verdict

#: The place at the end of a message that names where in a package something was raised.
_PLACE = re.compile(r"\((\S+:\d+ in \S+)\)$")
#: What differs between two messages on the same kind of boundary.
_NUMBERS = re.compile(r"\[[^\]]*\]|\d+ ?")
#: The operator that a verifier refuses.
_OPERATOR = re.compile(r"'([\w.]+)' op")


@dataclass(frozen=True)
class Symptom:
    """How something fails: two records with the same symptom fail in the same way.

    ``words`` tells apart what has no numbers to compare: the kind of exception with the place that raised
    it, the operator that the converter rejects, what is wrong at a boundary, the signal that ended a worker.
    """

    verdict: Verdict
    stage: Stage | None
    finding: Finding | None
    words: str = ""

    def __str__(self) -> str:
        at = f" at {self.stage.value}" if self.stage else ""
        found = f" ({self.finding.value})" if self.finding else ""
        return f"{self.verdict.value}{at}{found}"


def symptom(record: Record) -> Symptom:
    """How ``record`` fails."""
    return Symptom(record.verdict, record.stage, record.finding, _words(record))


def _words(record: Record) -> str:
    if record.finding is Finding.CRASHED:
        return record.message.partition(",")[0]
    if record.finding is Finding.BOUNDARY:
        return _NUMBERS.sub("", record.message)
    if record.finding not in (Finding.RAISED, Finding.INVALID):
        return ""
    found = [record.message.removeprefix("outside the delegates: ").partition(":")[0].partition(" (")[0]]
    found += _PLACE.findall(record.message) + _OPERATOR.findall(record.message)
    return " ".join(found)


class OutOfTime(Exception):
    """The budget is used up."""


@dataclass(frozen=True)
class Configuration:
    """What a model is evaluated with."""

    profile: Profile
    scheme: str
    target: str


@dataclass
class Trial:
    """Tries candidates; ``best`` is the last that failed alike, ``lowered`` counts those that ran.

    Candidates are written into ``folder``. ``say`` is told each time that one has fewer nodes than all
    before it. After ``deadline`` (of time.monotonic) every question raises OutOfTime.
    """

    evaluator: Evaluator
    configuration: Configuration
    symptom: Symptom
    folder: Path
    deadline: float
    say: Callable[[str], None]
    best: Candidate | None = None
    lowered: int = 0
    _number: int = 0
    _known: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def fails(self, candidate: Candidate) -> bool:
        """Whether ``candidate`` fails as the model does; then it is the best so far."""
        if time.monotonic() > self.deadline:
            raise OutOfTime
        if not candidate.outputs:
            return False
        record = self._evaluated(candidate)
        if record is None or symptom(record) != self.symptom:
            return False
        if self.best is None or len(candidate.kept) < len(self.best.kept):
            self.say(f"{len(candidate.kept)} of {len(candidate.trace.units)} nodes ({self.lowered} lowered)")
        self.best = candidate
        return True

    def part_fails(self, kept: tuple[int, ...], cut: Callable[[tuple[int, ...]], Candidate]) -> bool:
        """The same for units by number, each part asked about once."""
        if kept not in self._known:
            self._known[kept] = self.fails(cut(kept))
        return self._known[kept]

    def _evaluated(self, candidate: Candidate) -> Record | None:
        self._number += 1
        # A name of its own: Python remembers the source of a file by its name.
        path = self.folder / f"candidate{self._number}.py"
        try:
            write_case(path, candidate, self.configuration.profile.name, self.configuration.scheme, "Tried.")
        except NotWritable:
            return None
        try:
            record = evaluate_file(path, self.configuration, self.evaluator)
        except UserError:
            return None
        if record.finding is not Finding.INPUT:
            self.lowered += 1
        return record


def evaluate_file(path: Path, configuration: Configuration, evaluator: Evaluator) -> Record:
    """Evaluate the model file at ``path`` with its first inputs. Raises UserError where it is none."""
    subject = subject_of_file(load_user_model(str(path), 0), 0)
    return evaluator.evaluate(subject, configuration.profile, configuration.scheme, configuration.target)
