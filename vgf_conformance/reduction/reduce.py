"""Reduces a failing user model, and writes what is left of it as a case file."""

from __future__ import annotations

import os
import shlex
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgf_conformance.cases.userfile import UserModel, load_user_model
from vgf_conformance.evaluation.attribute import Attribution, Attributor
from vgf_conformance.evaluation.check import target_options
from vgf_conformance.evaluation.eager import leaves
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.forkserver import Send
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.userfiles import configurations, subject_of_file
from vgf_conformance.formats.convert import convert
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.lowering.versions import versions
from vgf_conformance.reduction.candidate import Candidate, Cutter
from vgf_conformance.reduction.search import fewest
from vgf_conformance.reduction.shrink import shrunk
from vgf_conformance.reduction.source import NotWritable, write_case
from vgf_conformance.reduction.suspects import neighbourhoods, suspects
from vgf_conformance.reduction.trace import Trace, trace
from vgf_conformance.reduction.trial import (
    Configuration,
    OutOfTime,
    Symptom,
    Trial,
    evaluate_file,
    symptom,
)
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.runtime_choice import RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Finding, Profile, Stage, UserError, Verdict

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What the user asked for; without profiles or schemes the file's own are taken.

    ``targets`` are tried in their order. ``budget`` is in seconds, from the moment in which a failure is
    known; a candidate that is being lowered then is waited for. ``driver`` and ``runtime`` are what the
    targets were opened with.
    """

    profiles: tuple[Profile, ...]
    schemes: tuple[str, ...]
    targets: tuple[str, ...]
    seed: int
    budget: float
    driver: DriverChoice
    runtime: RuntimeChoice


@dataclass(frozen=True)
class Failure:
    """The failure to reproduce, and what it was seen with."""

    record: Record
    subject: Subject
    configuration: Configuration


@dataclass(frozen=True)
class Reduction:
    """What came of it: ``files`` are the case file and, where one is needed, the .npz beside it.

    ``operators`` are those that are left, of ``before`` nodes; ``complete`` is False where the time ran
    out first. ``again`` are the options that check the file on the same target. ``lowered`` counts the
    candidates that were lowered.
    """

    failure: Failure
    again: tuple[str, ...]
    files: tuple[Path, ...]
    operators: tuple[str, ...]
    before: int
    lowered: int
    seconds: float
    complete: bool

    def __str__(self) -> str:
        configuration = self.failure.configuration
        chosen = f"{configuration.profile.name} {configuration.scheme} on {configuration.target}"
        many = "" if self.before == 1 else "s"
        lines = [
            f"{self.failure.record.file}, {chosen}: {symptom(self.failure.record)}",
            f"  {len(self.operators)} of {self.before} node{many} left: {', '.join(self.operators)}",
            f"  written to {' and '.join(map(str, self.files))}, which fails in the same way",
        ]
        if not self.complete:
            lines.append("  the time ran out: fewer nodes or smaller inputs may do (--budget)")
        command = ["vgf-conformance", "check", str(self.files[0]), "--profile", configuration.profile.name]
        return "\n".join([*lines, f"  reproduce: {shlex.join([*command, *self.again])}"])


def reduce_file(
    send: Send, file: str, targets: Mapping[str, Target], options: tuple[Any, ...], output: Path
) -> bool:
    """Send the reduction of the first failure of ``file``, written to ``output``, in words.

    ``options`` are those of Options. Progress is sent too, and nothing else where nothing fails. Called by
    ``evaluation.forkserver``. Raises UserError as Reducer.reduce does.
    """
    reducer = Reducer(targets, Cache(default_folder().absolute()), lambda text: send("progress", text))
    found = reducer.reduce(file, Options(*options), output)
    if found is not None:
        send("found", str(found))
    return True


class Reducer:
    """Reduces with ``targets`` by name, of which one is ``reference``."""

    def __init__(self, targets: Mapping[str, Target], cache: Cache | None, say: Say) -> None:
        self._targets = dict(targets)
        self._cache = cache
        self._say = say

    def reduce(self, file: str, options: Options, output: Path) -> Reduction | None:
        """Reduce the first failure of ``file`` into ``output``; None where nothing fails.

        Raises UserError for a file that cannot be used or reduced, and where what was written does not fail
        in the same way.
        """
        here = Path.cwd()
        user = load_user_model(file, options.seed)
        # The model may have changed the working directory, on which the output depends.
        os.chdir(here)
        evaluator = Evaluator(self._targets, self._cache)
        failure = first_failure(user, options, evaluator)
        if failure is None:
            return None
        record = failure.record
        self._say(f"{record.profile} {record.scheme} on {record.target}: {symptom(record)}")
        _require_reducible(record)
        if failure.subject.before:
            raise UserError(f"{file}: {record.sample} fails after other calls: only first calls are reduced")
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
            trial = Trial(
                evaluator,
                failure.configuration,
                symptom(record),
                Path(folder),
                start + options.budget,
                self._say,
            )
            complete = self._searched(failure, trial)
        assert trial.best is not None
        files = self._written(trial.best, failure, output)
        return Reduction(
            failure=failure,
            again=tuple(target_options(failure.configuration.target, options.driver, options.runtime)),
            files=tuple(files),
            operators=tuple(unit.operator for unit in trial.best.units),
            before=len(trial.best.trace.units),
            lowered=trial.lowered,
            seconds=time.monotonic() - start,
            complete=complete,
        )

    def _searched(self, failure: Failure, trial: Trial) -> bool:
        """Whether the search came to its end; its result is the trial's best."""
        subject = failure.subject
        traced = trace(subject.file, subject.module, subject.inputs)
        cutter = Cutter(traced, leaves(subject.inputs), _calibration(subject, failure.configuration.scheme))
        everything = cutter.cut(range(len(traced.units)))
        if not trial.fails(everything):
            raise UserError(_not_reproduced(subject, trial.symptom))
        try:
            # Who is to blame is asked only now: a model that cannot be reduced is refused sooner.
            first = suspects(traced, failure.record, lambda: self._attributed(failure))
            shrunk(self._fewest_nodes(traced, cutter, trial, first), trial.fails)
        except OutOfTime:
            return False
        return True

    def _fewest_nodes(self, traced: Trace, cutter: Cutter, trial: Trial, first: list[int]) -> Candidate:
        def fails(kept: tuple[int, ...]) -> bool:
            return trial.part_fails(kept, cutter.cut)

        everything = tuple(range(len(traced.units)))
        start = next((kept for kept in neighbourhoods(traced, first) if fails(kept)), everything)
        return cutter.cut(fewest(start, fails))

    def _attributed(self, failure: Failure) -> Attribution | None:
        configuration = failure.configuration
        attributor = Attributor(
            reference=self._targets["reference"],
            target=self._targets[configuration.target],
            convert=convert,
            cache=self._cache,
            folder=None,
        )
        return attributor.attribute(
            failure.subject, configuration.profile, configuration.scheme, failure.record
        )

    def _written(self, best: Candidate, failure: Failure, output: Path) -> list[Path]:
        """Write the case file, and see that it fails in the same way when nothing is remembered."""
        configuration = failure.configuration
        text = _description(best, failure)
        try:
            written = write_case(output, best, configuration.profile.name, configuration.scheme, text)
        except NotWritable as error:
            raise UserError(f"{failure.subject.file}: cannot be written as a case file: {error}") from error
        seen = symptom(evaluate_file(output, configuration, Evaluator(self._targets, None)))
        if seen != symptom(failure.record):
            raise UserError(
                f"{output}: does not fail in the same way when it is checked afresh: {seen} instead of "
                f"{symptom(failure.record)}; it is left for you to look at"
            )
        return written


def first_failure(user: UserModel, options: Options, evaluator: Evaluator) -> Failure | None:
    """The first failure over profiles, schemes, targets and samples, in check's order; None without one."""
    subjects = [subject_of_file(user, number) for number in range(len(user.samples))]
    for configuration in _configurations(user, options):
        for subject in subjects:
            record = evaluator.evaluate(
                subject, configuration.profile, configuration.scheme, configuration.target
            )
            if record.verdict is not Verdict.PASS:
                return Failure(record, subject, configuration)
    return None


def _configurations(user: UserModel, options: Options) -> Iterator[Configuration]:
    for profile, scheme in configurations(user, options.profiles, options.schemes):
        for target in options.targets:
            yield Configuration(profile, scheme, target)


def _require_reducible(record: Record) -> None:
    """Raises UserError for what is no failure of the stack below: nothing to reduce."""
    unlaunched = record.verdict is Verdict.ERROR and record.stage is Stage.CONVERT
    if record.finding is Finding.INPUT or record.stage is Stage.EXPORT or unlaunched:
        raise UserError(f"{record.file}: {record.message}")


def _calibration(subject: Subject, scheme: str) -> list[list[object]]:
    """The calibration sets, flattened; none where the sample is the only one, or nothing is quantised."""
    if scheme == "none" or (len(subject.calibration) == 1 and subject.calibration[0] is subject.inputs):
        return []
    return [leaves(inputs) for inputs in subject.calibration]


def _not_reproduced(subject: Subject, sought: Symptom) -> str:
    reasons = ["what it does to its buffers"]
    if subject.dynamic_shapes is not None:
        reasons.append("its dynamic_shapes()")
    if subject.configure_quantizer is not None:
        reasons.append("its configure_quantizer()")
    return (
        f"{subject.file}: cannot be reduced: its operators in a row, with fixed shapes, do not fail in the "
        f"same way ({sought}); it may fail by {' or '.join(reasons)}"
    )


def _description(best: Candidate, failure: Failure) -> str:
    record, configuration = failure.record, failure.configuration
    sample = "" if record.sample == "inputs" else f", {record.sample}"
    known = versions()
    shown = ("torch", "executorch", "torchao", "ai-ml-sdk-model-converter", "tosa-tools")
    count = f"{len(best.kept)} of {len(best.trace.units)} nodes"
    paragraphs = [
        f"Reduced from {Path(record.file).name}{sample} by vgf-conformance reduce: {count}.",
        f"With profile {configuration.profile.name} and scheme {configuration.scheme}, on "
        f"{configuration.target}{f' ({record.driver})' if record.driver else ''}: {symptom(record)}.",
        f"The whole model's message: {record.message}",
        ", ".join(f"{name} {known[name]}" for name in shown if name in known),
    ]
    return "\n\n".join(
        textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)
        for paragraph in paragraphs
    )
