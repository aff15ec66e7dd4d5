"""Evaluates a user's own models: one record for each profile, scheme and target."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vgf_conformance.cases.userfile import UserModel, load_user_model
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Finding, Profile, Stage, UserError, Verdict

_STAGES = list(Stage)


@dataclass(frozen=True)
class Selection:
    """What the user asked for on the command line; empty means the file's own, or all."""

    profiles: tuple[Profile, ...]
    schemes: tuple[str, ...]
    targets: tuple[str, ...]
    seed: int


def check_files(files: Sequence[str], selection: Selection, evaluator: Evaluator) -> Iterator[Record]:
    """Yield records as they come; a bad file yields one record with verdict ``error``, finding ``input``."""
    for file in files:
        try:
            user = load_user_model(file, selection.seed)
            yield from _check(user, selection, evaluator)
        except UserError as error:
            yield _bad_input(file, str(error))


def _check(user: UserModel, selection: Selection, evaluator: Evaluator) -> Iterator[Record]:
    subjects = [subject_of_file(user, number) for number in range(len(user.samples))]
    for profile, scheme in configurations(user, selection.profiles, selection.schemes):
        for target in selection.targets:
            records = [evaluator.evaluate(subject, profile, scheme, target) for subject in subjects]
            record, subject = min(zip(records, subjects, strict=True), key=lambda pair: _gravity(pair[0]))
            evaluator.attribute(record, subject, profile, scheme, folder=None)
            record.repro = _repro(record, selection)
            yield record


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
        notes=user.notes,
    )


def _gravity(record: Record) -> tuple[int, int]:
    """Samples share a row: the first failure, at the earliest stage, speaks for all."""
    if record.verdict is Verdict.PASS:
        return (1, 0)
    return (0, _STAGES.index(record.stage) if record.stage else len(_STAGES))


def _repro(record: Record, selection: Selection) -> str:
    command = [
        "vgf-conformance",
        "check",
        record.file,
        "--profile",
        record.profile,
        "--scheme",
        record.scheme,
    ]
    command += ["--target", record.target]
    if selection.seed:
        command += ["--seed", str(selection.seed)]
    return shlex.join(command)


def _bad_input(file: str, message: str) -> Record:
    return Record(
        id=file,
        case=file,
        sample="",
        kind="model",
        suite="check",
        profile="",
        scheme="",
        target="",
        verdict=Verdict.ERROR,
        finding=Finding.INPUT,
        message=message,
        file=file,
        repro=shlex.join(["vgf-conformance", "check", file]),
    )
