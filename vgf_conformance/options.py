"""The options that several commands have, and how options are read and refused.

pytest takes the same ones for the suites. The readers raise argparse.ArgumentTypeError: one message, and
exit status 2 (pytest: 4).
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from vgf_conformance.terminal import one_line, say, warn
from vgf_conformance.vocabulary import LAYER_CHOICES, SCHEMES, TARGETS, TIERS, TIME_LIMIT

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


@dataclasses.dataclass(frozen=True)
class Option:
    """A flag, with what argparse's ``add_argument`` and pytest's ``addoption`` take beside it."""

    flag: str
    settings: Mapping[str, Any]

    def but(self, **settings: Any) -> Option:
        """The same option with some settings of its own."""
        return Option(self.flag, {**self.settings, **settings})


def option(flag: str, **settings: Any) -> Option:
    """Declare an option."""
    return Option(flag, settings)


def declare(add: Callable[..., Any], *options: Option) -> None:
    """Give a command or pytest ``options``: ``add`` is its ``add_argument`` or ``addoption``."""
    for each in options:
        add(each.flag, **each.settings)


def profiles(default: str) -> Option:
    """The profiles; ``default`` says in words which without the option."""
    text = f"TOSA profile: FP, INT or FP+INT, with extensions or whole (repeatable; default: {default})"
    return option("--profile", action="append", default=[], help=text)


def schemes(default: str) -> Option:
    """The quantisation schemes; ``default`` as for profiles."""
    text = f"quantisation scheme: {', '.join(SCHEMES)} (repeatable; default: {default})"
    return option("--scheme", action="append", default=[], help=text)


TARGET = option(
    "--target",
    action="append",
    default=[],
    help=f"where to run: {', '.join(TARGETS)} (repeatable; default: reference and emulation)",
)
TIER = option("--tier", choices=TIERS, default="smoke", help="how many of the cases (default: smoke)")
DRIVER = option(
    "--driver", type=some_text, help="Vulkan driver: a name or an ICD manifest (default: lavapipe)"
)
LAYERS = option(
    "--layers",
    choices=LAYER_CHOICES,
    default="auto",
    help="emulation layers of the targets vulkan and runtime: those whose extension the driver lacks "
    "(auto), all or none (default: auto)",
)
EXPECT_DRIVER = option(
    "--expect-driver",
    metavar="TEXT",
    type=some_text,
    help="run nothing unless the device's or driver's name contains this",
)
VALIDATION = option(
    "--validation",
    action="store_true",
    help="run with the Vulkan validation layer next to the driver; its errors are notes of the cases",
)
RUNTIME_LIBRARY = option(
    "--runtime-library",
    metavar="FILE",
    type=some_text,
    help="of the target runtime: a library that registers the VGF backend, loaded before the installed "
    "executorch's runtime (default: VGF_CONFORMANCE_RUNTIME_LIBRARY)",
)
EXECUTOR_RUNNER = option(
    "--executor-runner",
    metavar="FILE",
    type=some_text,
    help="of the target runtime: execute programs with this stand-alone executor_runner instead",
)
SEED = option("--seed", type=seed, default=0, help="seed behind inputs and weights (default: 0)")
TIME_LIMIT_OPTION = option(
    "--time-limit",
    type=seconds,
    default=TIME_LIMIT,
    metavar="SECONDS",
    help=f"for one delegate call (default: {TIME_LIMIT:g})",
)
SHARD = option(
    "--shard",
    metavar="I/N",
    type=some_text,
    help="only this part of the run, as 1/4: see vgf-conformance merge",
)
RESUME = option(
    "--resume", action="store_true", help="keep the records that are there and run only what is missing"
)
NO_CACHE = option(
    "--no-cache",
    action="store_true",
    help="lower everything anew: no artifact is taken from the cache or kept there",
)
