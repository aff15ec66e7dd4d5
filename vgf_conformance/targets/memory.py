"""Whether a worker's memory grows from case to case and never stops."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

#: How many cases are looked at together, in how many parts, and the growth with each case that counts.
CASES = 80
PARTS = 4
BYTES = 1 << 18

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Growth:
    """The resident sizes of one worker, one after each case.

    What counts is the smallest size in each part of the last cases: a large case lifts a few sizes, a leak
    lifts all. Warming up ends, so that later parts grow less than the first; a leak grows evenly.
    """

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._told = False

    def add(self, size: int) -> str:
        """Note ``size``, in bytes (0: unknown); the first time that it is a leak, says how large one."""
        if not size or self._told:
            return ""
        self._sizes = [*self._sizes, size][-CASES:]
        part = CASES // PARTS
        floors = [min(self._sizes[start : start + part]) for start in range(0, len(self._sizes), part)]
        steps = [after - before for before, after in itertools.pairwise(floors)]
        mean = sum(steps) / max(1, len(steps))
        if len(self._sizes) < CASES or mean < part * BYTES or min(steps) < mean * 2 / 3:
            return ""
        self._told = True
        return (
            f"memory leak: the worker grows by {mean / part / 2**20:.1f} MB with each case, over the last "
            f"{CASES} cases from {floors[0] / 2**20:.0f} to {floors[-1] / 2**20:.0f} MB"
        )


def resident() -> int:
    """The bytes that this process holds in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
