"""Evaluates a user's own models: one record for each profile, scheme and target. Needs no PyTorch itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vgf_conformance.evaluation.isolated import ModelServer
from vgf_conformance.results.record import Record
from vgf_conformance.results.store import schema_refusal
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.runtime_choice import RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.terminal import warn
from vgf_conformance.vocabulary import PROGRAM_TARGET, Finding, Profile, UserError, Verdict

_CHECK = "vgf_conformance.evaluation.userfiles:check_file"


@dataclass(frozen=True)
class Selection:
    """What the user asked for on the command line; empty means the file's own, or all.

    ``driver`` and ``runtime`` are what the targets were opened with; ``min_sqnr``, in decibels, replaces the
    file's own.
    """

    profiles: tuple[Profile, ...]
    schemes: tuple[str, ...]
    targets: tuple[str, ...]
    seed: int
    driver: DriverChoice
    runtime: RuntimeChoice
    min_sqnr: float | None = None

    def options(self, target: str) -> list[str]:
        """The options that choose the same on ``target`` again, whatever the profile and the scheme."""
        return [
            *target_options(target, self.driver, self.runtime),
            *(["--min-sqnr", f"{self.min_sqnr:g}"] if self.min_sqnr is not None else []),
            *(["--seed", str(self.seed)] if self.seed else []),
        ]


def target_options(target: str, driver: DriverChoice, runtime: RuntimeChoice) -> list[str]:
    """The options that open ``target`` again as it was opened."""
    with_runtime = runtime.options if target == PROGRAM_TARGET else []
    return ["--target", target, *driver.options(target), *with_runtime]


def check_files(
    files: Sequence[str], selection: Selection, targets: Mapping[str, Target], server: ModelServer
) -> Iterator[Record]:
    """Yield records as they come, each file's from a process of its own.

    A bad file yields one record with verdict ``error``, finding ``input``, and so does one whose process ends
    by itself. Raises UserError where PyTorch cannot be loaded.
    """
    warned: set[str] = set()
    for file in files:
        try:
            for word, value in server.run(_CHECK, file, targets, selection):
                if word == "warning" and str(value) not in warned:
                    # Each file's process finds out by itself that, say, the cache cannot be written.
                    warned.add(str(value))
                    warn(str(value))
                # Whatever else the model wrote there makes the number of messages wrong, which ends its file.
                elif word == "record" and schema_refusal(value) is None:
                    yield Record.from_json(value)
        except UserError as error:
            yield _bad_input(file, str(error))


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
