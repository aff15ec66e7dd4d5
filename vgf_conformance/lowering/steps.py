"""What is kept of the steps of the quantise stage, so that they can be judged on any sample."""

from __future__ import annotations

from dataclasses import dataclass

from vgf_conformance.lowering.edges import Problem
from vgf_conformance.lowering.program import Program
from vgf_conformance.lowering.scheme import Parameters


@dataclass(frozen=True)
class Steps:
    """``prepared`` is the program that was calibrated, as it was before (see ``program.read_prepared``).

    ``problems`` is what is wrong in the steps parameters and convert, on no matter which sample.
    ``parameters`` are what quantises in the place of each observer.
    """

    prepared: Program
    problems: tuple[Problem, ...]
    parameters: dict[str, Parameters]
