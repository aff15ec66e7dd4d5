"""What runs inside the worker process: one runner for each kind of target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.targets.base import Array
from vgf_conformance.vocabulary import Finding, Stage, Verdict


class Refused(Exception):
    """The runner cannot run a delegate, and says so instead of giving numbers."""

    def __init__(self, verdict: Verdict, stage: Stage, finding: Finding, message: str) -> None:
        super().__init__(verdict, stage, finding, message)
        self.verdict = verdict
        self.stage = stage
        self.finding = finding
        self.message = message


class Built(Protocol):
    """A delegate made ready to run."""

    def run(self, inputs: Sequence[Array], sentinel: int) -> list[Array]:
        """Run once on arrays in memory order, after filling every output with ``sentinel``."""


class Runner(Protocol):
    """Builds delegates; lives in the worker process."""

    def build(self, delegate: Delegate) -> Built:
        """Make ``delegate`` ready; raises Refused."""
