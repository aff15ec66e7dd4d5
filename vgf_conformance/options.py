"""How the options of the commands and of pytest are read and refused.

The readers raise argparse.ArgumentTypeError: one message, and exit status 2 (pytest: 4).
"""

from __future__ import annotations

import argparse
import math
import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, NoReturn

from vgf_conformance.terminal import one_line, say, warn

#: What torch.manual_seed takes.
SEEDS = (-(2**63), 2**64 - 1)

#: Eleven days and a half: what systems wait for has an end.
LONGEST = 1_000_000


class Parser(argparse.ArgumentParser):
    """Prints what it quotes from the command line as the rest of the program does."""

    def error(self, message: str) -> NoReturn:
        """Print usage and ``message``; end with exit status 2."""
        super().error(one_line(message))

    def _print_message(self, message: str, file: Any = None) -> None:
        show = say if file is sys.stdout else warn
        show(message.removesuffix("\n"))


def some_text(value: str) -> str:
    """Any text but none: an empty value is that of a variable that was never set."""
    if not value.strip():
        raise ArgumentTypeError("is empty: give a value, or leave it out")
    return value


def some_path(value: str) -> Path:
    """A path; an empty one would mean the working directory."""
    return Path(some_text(value))


def seed(value: str) -> int:
    """A whole number that PyTorch takes for a seed."""
    lowest, highest = SEEDS
    try:
        number = int(value)
    except ValueError:
        raise ArgumentTypeError(f"{one_line(ascii(value), 60)} is not a whole number") from None
    if not lowest <= number <= highest:
        raise ArgumentTypeError(
            f"{one_line(value, 60)} is not a seed: give a number from {lowest} to {highest}"
        )
    return number


def decibels(value: str) -> float:
    """A signal-to-noise ratio."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentTypeError(f"{one_line(ascii(value), 60)} is not a number of decibels, such as 20")
    return number


def seconds(value: str) -> float:
    """A time limit."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    # What is not a number is in no range.
    if not 0 < number <= LONGEST:
        raise ArgumentTypeError(
            f"{one_line(ascii(value), 60)} is not a time: give seconds, more than 0 and at most {LONGEST}"
        )
    return number
