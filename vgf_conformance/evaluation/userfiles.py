"""Evaluates the model of a user's file, in the process that ``evaluation.isolated`` has for it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vgf_conformance.cases.userfile import UserModel, load_user_model
from vgf_conformance.evaluation.check import Selection
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.forkserver import Send
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.results.record import Accuracy, Record
from vgf_conformance.targets.base import Target
from vgf_conformance.vocabulary import Profile, Stage, UserError, Verdict

_STAGES = list(Stage)


class _CountingCache(Cache):
    """Counts what was not there yet."""

    puts = 0

    def put(self, key: str, value: Any) -> None:
        """As Cache.put."""
        self.puts += 1
        super().put(key, value)


def check_file(send: Send, file: str, targets: Mapping[str, Target], selection: Selection) -> bool:
    """Send a record for each profile, scheme and target; whether something was lowered.

    Raises UserError where the file cannot be used.
    """
    # The model may change the working directory.
    cache = _CountingCache(default_folder().absolute(), lambda text: send("warning", text))
    evaluator = Evaluator(targets, cache)
    user = load_user_model(file, selection.seed)
    if selection.min_sqnr is not None:
        user = dataclasses.replace(user, budget=selection.min_sqnr)
    subjects = [subject_of_file(user, number) for number in range(len(user.samples))]
    for profile, scheme in configurations(user, selection.profiles, selection.schemes):
        for target in selection.targets:
            record = judged(evaluator, subjects, profile, scheme, target, folder=None)
            record.repro = _repro(record, selection)
            send("record", record.to_json())
    return cache.puts > 0


def judged(
    evaluator: Evaluator,
    subjects: Sequence[Subject],
    profile: Profile,
    scheme: str,
    target: str,
    folder: Path | None,
) -> Record:
    """The record that speaks for all samples of a model, with the operator that is to blame where it fails.

    What shows that operator goes below ``folder``.
    """
    records = [evaluator.evaluate(subject, profile, scheme, target) for subject in subjects]
    record, subject = min(zip(records, subjects, strict=True), key=lambda pair: _gravity(pair[0]))
    record.accuracy = _least([item.accuracy for item in records if item.accuracy is not None])
    evaluator.attribute(record, subject, profile, scheme, folder)
    return record


def configurations(
    user: UserModel, profiles: Sequence[Profile], schemes: Sequence[str]
) -> list[tuple[Profile, str]]:
    """The (profile, scheme) pairs to lower for; without profiles or schemes the file's own are taken.

    Raises UserError where there is none.
    """
    chosen = [
        (profile, scheme)
        for profile in profiles or user.profiles
        for scheme in schemes or user.schemes(profile)
        if scheme == "none" or profile.integer
    ]
    if not chosen:
        raise UserError(f"{user.file}: nothing to run: only profiles with INT can be quantised")
    return chosen


def subject_of_file(user: UserModel, number: int) -> Subject:
    """The subject of the user's model with sample ``number``."""
    return Subject(
        case=user.file,
        sample="inputs" if number == 0 else f"samples[{number - 1}]",
        kind="model",
        suite="check",
        file=user.file,
        operator="",
        tier="",
        module=user.module,
        inputs=user.samples[number],
        example=user.samples[0],
        calibration=user.calibration,
        dynamic_shapes=user.dynamic_shapes,
        configure_quantizer=user.configure_quantizer,
        min_sqnr=user.budget,
        task=user.task,
        notes=user.notes,
        before=user.samples[:number] if user.sequence else None,
    )


def _gravity(record: Record) -> tuple[int, int]:
    """Samples share a row: the first failure, at the earliest stage, speaks for all."""
    if record.verdict is Verdict.PASS:
        return (1, 0)
    return (0, _STAGES.index(record.stage) if record.stage else len(_STAGES))


def _least(found: Sequence[Accuracy]) -> Accuracy | None:
    """The accuracy that speaks for all samples: the least, of those that were not calibrated on if any."""
    return min(found, key=lambda item: (item.calibrated is True, item.sqnr_db), default=None)


def _repro(record: Record, selection: Selection) -> str:
    command = ["vgf-conformance", "check", record.file]
    command += ["--profile", record.profile, "--scheme", record.scheme]
    return shlex.join([*command, *selection.options(record.target)])
