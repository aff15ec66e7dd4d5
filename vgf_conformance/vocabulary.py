"""The project's words as types: one meaning each, used in code, ids, reports and docs.

Standard library only, so that every other layer may use it.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass


class UserError(Exception):
    """Input that a person has to fix: shown as one message, exit code 2, no traceback."""


class Verdict(str, enum.Enum):
    """What came of one case on one target."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    CRASH = "crash"
    TIMEOUT = "timeout"
    ERROR = "error"


class Stage(str, enum.Enum):
    """Where a failure is attributed, in the order in which data passes through."""

    EXPORT = "export"
    QUANTISE = "quantise"
    LOWER = "lower"
    CONVERT = "convert"
    RUN = "run"


class Finding(str, enum.Enum):
    """The kind of a failure: what was seen, apart from where. NOISY is no failure: see docs/tolerance.md."""

    RAISED = "raised"
    WRONG = "wrong"
    UNPREDICTABLE = "unpredictable"
    INVALID = "invalid"
    BOUNDARY = "boundary"
    UNWRITTEN = "unwritten"
    UNREPEATABLE = "unrepeatable"
    DISAGREEMENT = "disagreement"
    CRASHED = "crashed"
    HUNG = "hung"
    BLIND = "blind"
    CAPABILITY = "capability"
    DEPENDENT = "dependent"
    INPUT = "input"
    NOISY = "noisy"
    UNQUANTISED = "unquantised"


class Grade(str, enum.Enum):
    """How useful the outputs are beside eager's, whatever the verdict: limits in ``evaluation.accuracy``."""

    GOOD = "good"
    DEGRADED = "degraded"
    UNUSABLE = "unusable"


#: Quantisation schemes that the harness can apply, with what each means.
SCHEMES: dict[str, str] = {
    "none": "not quantised",
    "a8w8-pc": "int8 activations, int8 weights with one scale per output channel",
    "a8w8-pt": "int8 activations, int8 weights with one scale per tensor",
    "a16w8": "int16 activations, int8 weights with one scale per output channel",
    "a8w4": "int8 activations, int4 weights with one scale per output channel",
}

TARGETS: dict[str, str] = {
    "reference": "the TOSA reference model",
    "emulation": "the ML emulation layers over a Vulkan driver",
    "vulkan": "a Vulkan driver's own tensors and data graphs",
    "runtime": "the whole .pte in the ExecuTorch runtime",
}

#: Those that run a VGF by itself, and the one that runs whole programs; all need a Vulkan driver.
VGF_TARGETS = ("emulation", "vulkan")
PROGRAM_TARGET = "runtime"
VULKAN_TARGETS = (*VGF_TARGETS, PROGRAM_TARGET)

#: Where a run goes that names no target.
DEFAULT_TARGETS = ("reference", "emulation")

#: Which emulation layers the target ``vulkan`` uses: none, all, or those whose extension the driver lacks.
LAYER_CHOICES = ("none", "emulation", "auto")

#: Seconds that one delegate call may take, building included, where no other limit is asked for.
TIME_LIMIT = 120.0

#: When a case runs; ``all`` is both.
TIERS = ("smoke", "nightly", "all")

_PROFILE = re.compile(r"(?:TOSA-(?P<version>1\.\d+)\+)?(?P<parts>(?:FP|INT)(?:\+[A-Za-z0-9]+)*)")

#: Characters of a profile: with every extension of TOSA 1.1 it has some 120.
_LONGEST_PROFILE = 200


@dataclass(frozen=True)
class Profile:
    """A TOSA profile lowered for, with its extensions.

    ``name`` is what the user wrote (``FP``, ``FP+INT``, ``INT+int16``,
    ``TOSA-1.1+FP+shape``); ``specification`` is what the backend is given.
    """

    name: str
    specification: str
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Profile:
        """Read a profile; raises UserError where it is malformed."""
        match = _PROFILE.fullmatch(text)
        parts = match["parts"].split("+") if match else []
        if match is None or len(set(parts)) < len(parts) or len(text) > _LONGEST_PROFILE:
            raise UserError(
                f"unknown profile {text[:_LONGEST_PROFILE]!r}: write FP, INT or FP+INT, optionally with "
                "extensions (INT+int16, FP+bf16) or a whole specification (TOSA-1.1+FP+shape)"
            )
        version = match["version"] or "1.0"
        return cls(text, f"TOSA-{version}+{match['parts']}", tuple(parts))

    @property
    def floating(self) -> bool:
        """Whether the profile has floating-point operators."""
        return "FP" in self.parts

    @property
    def integer(self) -> bool:
        """Whether the profile has the quantised integer operators."""
        return "INT" in self.parts


def known_scheme(text: str) -> str:
    """Return ``text`` where it names a scheme; raises UserError otherwise."""
    if text not in SCHEMES:
        raise UserError(f"unknown scheme {text[:100]!r}: choose from {', '.join(SCHEMES)}")
    return text


def known_target(text: str) -> str:
    """Return ``text`` where it names a target; raises UserError otherwise."""
    if text not in TARGETS:
        raise UserError(f"unknown target {text[:100]!r}: choose from {', '.join(TARGETS)}")
    return text
