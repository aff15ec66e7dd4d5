"""What executes programs on the target ``runtime``, as options and the environment name it.

By itself: the command line reads it at every start, and needs none of what runs a program.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vgf_conformance.untrusted import absolute, is_file
from vgf_conformance.vocabulary import PROGRAM_TARGET, UserError

#: Names the backend library, for people and for the worker.
LIBRARY = "VGF_CONFORMANCE_RUNTIME_LIBRARY"


@dataclass(frozen=True)
class RuntimeChoice:
    """What executes programs: the installed executorch's runtime, after ``library`` is loaded where that is
    given, or the stand-alone ``runner``. Paths are absolute."""

    library: Path | None = None
    runner: Path | None = None

    @classmethod
    def of(cls, library: str | None, runner: str | None, targets: Sequence[str]) -> RuntimeChoice:
        """Read the options; the environment names a library where neither is given.

        Raises UserError for a choice that contradicts itself or ``targets``, or names what is not there.
        """
        for option, text in (("--runtime-library", library), ("--executor-runner", runner)):
            if text and PROGRAM_TARGET not in targets:
                raise UserError(f"{option} is for --target {PROGRAM_TARGET}: no other executes programs")
        if library and runner:
            raise UserError("--runtime-library and --executor-runner exclude each other: give one of them")
        if runner:
            return cls(runner=_runner(absolute(runner)))
        named = library or os.environ.get(LIBRARY)
        if named and PROGRAM_TARGET in targets:
            return cls(library=_library(absolute(named)))
        return cls()

    @property
    def options(self) -> list[str]:
        """The options that make the same choice again."""
        if self.runner is not None:
            return ["--executor-runner", str(self.runner)]
        return ["--runtime-library", str(self.library)] if self.library is not None else []

    def __str__(self) -> str:
        if self.runner is not None:
            return f"the stand-alone {self.runner.name}"
        if self.library is not None:
            return f"the installed executorch with {self.library.name}"
        return "the installed executorch"


#: What nobody chose.
INSTALLED = RuntimeChoice()


def _library(path: Path) -> Path:
    if not is_file(path):
        raise UserError(f"the runtime library {path} does not exist: name a shared library (.so)")
    return path


def _runner(path: Path) -> Path:
    if not is_file(path):
        raise UserError(f"the executor runner {path} does not exist: name the program executor_runner")
    if not os.access(path, os.X_OK):
        raise UserError(f"the executor runner {path} is not executable: chmod +x it, or name another")
    return path
