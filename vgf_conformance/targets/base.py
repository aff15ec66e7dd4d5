"""The one interface behind which every target stands, and what can go wrong on one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.vocabulary import Finding, Stage, Verdict

Array = NDArray[np.generic]


@dataclass
class Outputs:
    """What one delegate call gave back.

    ``arrays`` are in memory order (the delegate's physical shapes). ``unwritten`` maps an
    output to the number of its elements that both runs left at their sentinels.
    ``unrepeatable`` lists outputs whose two runs differ in a bit. ``worker_bytes`` is the size of the
    worker in memory afterwards, 0 where it is not known; ``validation`` is what the Vulkan validation layer
    said meanwhile.
    """

    arrays: list[Array]
    unwritten: dict[int, int] = field(default_factory=dict)
    unrepeatable: list[int] = field(default_factory=list)
    worker_bytes: int = 0
    validation: list[str] = field(default_factory=list)

    def faults(self) -> Iterator[tuple[Finding, str]]:
        """What makes the run a failure whatever its numbers are, as finding and message."""
        for output, count in self.unwritten.items():
            total = self.arrays[output].size
            yield Finding.UNWRITTEN, f"output {output}: {count} of {total} elements were never written"
        for output in self.unrepeatable:
            yield Finding.UNREPEATABLE, f"output {output}: two runs on the same inputs differ"


class TargetFailure(Exception):
    """A target did not give outputs; says with which verdict, stage and finding that is recorded.

    ``log`` holds the last words of the worker process.
    """

    def __init__(self, verdict: Verdict, stage: Stage, finding: Finding, message: str, log: str = "") -> None:
        super().__init__(message)
        self.verdict = verdict
        self.stage = stage
        self.finding = finding
        self.message = message
        self.log = log


class Target(Protocol):
    """Runs the delegates of one artifact after another."""

    @property
    def name(self) -> str:
        """The target's word in ids and records."""

    @property
    def driver(self) -> str:
        """The Vulkan driver underneath, empty where there is none."""

    def load(self, delegates: Sequence[Delegate]) -> None:
        """Make ``delegates`` the ones that ``run`` counts; they are built on first use."""

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        """Run delegate ``index`` on arrays in memory order; raises TargetFailure."""

    def close(self) -> None:
        """Give the target's process back."""


class OnTargets:
    """What evaluates on named targets, and ends their processes."""

    def __init__(self, targets: Mapping[str, Target]) -> None:
        self._targets = dict(targets)

    def restart(self, target: str) -> None:
        """End the process of ``target``; its next run begins with a fresh one."""
        self._targets[target].close()

    def close(self) -> None:
        """End every target's process."""
        for target in self._targets.values():
            target.close()
