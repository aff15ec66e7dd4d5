"""Waivers: failures that a vendor knows and explains, each for one device and until a day.

``waivers.toml`` beside the shards::

    [[waiver]]
    case = "suites/operators/test_exponential.py::log[near_one-FP-none]"   # one case, by its whole id
    device = "llvmpipe (LLVM 15.0.6, 256 bits)"                           # the device's name, in full
    reason = "log loses 4 bits near 1"
    link = "https://gitlab.freedesktop.org/mesa/mesa/-/issues/1"
    expires = 2027-06-30

    [[waiver]]
    case = "suites/operators/test_exponential.py::exp[*"   # * is any text, nothing else is special
    cases = 3                                              # how many of the pack's cases that is
    ...
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from vgf_conformance.untrusted import parse_toml

#: Waivers of a submission, and how long one may hold.
MOST = 100
LONGEST = datetime.timedelta(days=731)

_FIELDS = {"case": str, "device": str, "reason": str, "link": str, "expires": datetime.date}
_OPTIONAL = {"cases": int}

#: Characters of a text, at least and at most.
_LENGTHS = {"case": (1, 1000), "device": (1, 2000), "reason": (5, 1000), "link": (1, 2000)}
_LINK = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?([/?#][!-~]*)?")


@dataclass(frozen=True)
class Waiver:
    """One waiver; it holds up to and including the day ``expires``.

    ``cases`` is the number of the pack's cases that a pattern matches, None where ``case`` is a case's id.
    """

    case: str
    device: str
    reason: str
    link: str
    expires: datetime.date
    cases: int | None = None

    def matches(self, case_id: str) -> bool:
        """Whether it is about this case: ``*`` in its pattern is any text."""
        if self.cases is None:
            return case_id == self.case
        return fnmatchcase(case_id, re.sub(r"([?[])", r"[\1]", self.case))


def read_waivers(content: bytes) -> list[Waiver]:
    """The waivers of a file; raises ValueError saying which is wrong, and how."""
    document = parse_toml(content)
    unknown = sorted(document.keys() - {"waiver"})
    tables = document.get("waiver", [])
    if unknown or not isinstance(tables, list):
        raise ValueError(
            f"{unknown[0] if unknown else 'waiver'}: it may hold [[waiver]] tables and nothing else"
        )
    if len(tables) > MOST:
        raise ValueError(
            f"{len(tables)} waivers, where {MOST} are the most: fix the driver, or split the pack"
        )
    waivers = [_waiver(table, number) for number, table in enumerate(tables, 1)]
    for case, count in Counter(waiver.case for waiver in waivers).items():
        if count > 1:
            raise ValueError(f"{count} waivers for {case}: one is enough")
    return waivers


def _waiver(table: Any, number: int) -> Waiver:
    if not isinstance(table, dict) or table.keys() - _OPTIONAL.keys() != _FIELDS.keys():
        raise ValueError(
            f"waiver {number}: it has {', '.join(_FIELDS)}, and for a pattern cases, and nothing else"
        )
    for name, kind in {**_FIELDS, **_OPTIONAL}.items():
        # A date with a time is a date too, and true is an integer.
        if name in table and type(table[name]) is not kind:
            raise ValueError(f"waiver {number}: {name} is no {_WORDS.get(name, 'text')}")
    for name in _LENGTHS:
        if trouble := _text(name, table[name]):
            raise ValueError(f"waiver {number}: {name} {trouble}")
    pattern = "*" in table["case"]
    if pattern and table.get("cases", 0) < 1:
        raise ValueError(
            f"waiver {number}: {table['case']} is a pattern: say with cases = N how many cases it matches"
        )
    if not pattern and "cases" in table:
        raise ValueError(f"waiver {number}: cases is for patterns: {table['case']} is one case")
    return Waiver(**table)


_WORDS = {"expires": "date", "cases": "integer"}


def _text(name: str, text: str) -> str:
    """Why a waiver's text is none; empty where it is one."""
    least, most = _LENGTHS[name]
    if not text.strip():
        return "is no text"
    if not text.isprintable() or text != text.strip():
        return "is not one line of printable text without blanks at its ends"
    if not least <= len(text) <= most:
        return f"has {len(text)} characters: it takes {least} to {most}"
    if name == "link" and not _LINK.fullmatch(text):
        return "is no address of a web page, as https://example.org/1"
    return ""
