"""Waivers: failures that a vendor knows and explains, each for one device and until a day.

``waivers.toml`` beside the shards::

    [[waiver]]
    case = "suites/operators/test_exponential.py::log[near_one-*"    # * is any text, nothing else is special
    device = "llvmpipe (LLVM 15.0.6, 256 bits)"                      # the device's name, in full
    reason = "log loses 4 bits near 1"
    link = "https://gitlab.freedesktop.org/mesa/mesa/-/issues/1"
    expires = 2027-06-30
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from vgf_conformance.formats import toml

_FIELDS = {"case": str, "device": str, "reason": str, "link": str, "expires": datetime.date}


@dataclass(frozen=True)
class Waiver:
    """One waiver; it holds up to and including the day ``expires``."""

    case: str
    device: str
    reason: str
    link: str
    expires: datetime.date

    def matches(self, case_id: str) -> bool:
        """Whether it is about this case: ``*`` in its pattern is any text."""
        return fnmatchcase(case_id, re.sub(r"([?[])", r"[\1]", self.case))


def read_waivers(content: bytes) -> list[Waiver]:
    """The waivers of a file; raises ValueError saying which is wrong, and how."""
    document = toml.parse(content)
    unknown = sorted(document.keys() - {"waiver"})
    tables = document.get("waiver", [])
    if unknown or not isinstance(tables, list):
        raise ValueError(
            f"{unknown[0] if unknown else 'waiver'}: it may hold [[waiver]] tables and nothing else"
        )
    return [_waiver(table, number) for number, table in enumerate(tables, 1)]


def _waiver(table: Any, number: int) -> Waiver:
    if not isinstance(table, dict) or table.keys() != _FIELDS.keys():
        raise ValueError(f"waiver {number}: it has {', '.join(_FIELDS)}, and nothing else")
    for name, kind in _FIELDS.items():
        # A date with a time is a date too.
        if type(table[name]) is not kind or not table[name]:
            raise ValueError(f"waiver {number}: {name} is no {'date' if name == 'expires' else 'text'}")
    return Waiver(**table)
