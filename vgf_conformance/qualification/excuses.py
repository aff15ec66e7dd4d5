"""Which failures are excused: by a waiver, or because the device does not support the case."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator
from pathlib import Path

from vgf_conformance.packs.pack import Pack
from vgf_conformance.qualification.layout import FILE, WAIVERS, Entry
from vgf_conformance.qualification.verification import Verification
from vgf_conformance.qualification.waivers import LONGEST, Waiver, read_waivers
from vgf_conformance.untrusted import BadFile, read_bytes
from vgf_conformance.vocabulary import Verdict

#: Bytes that the file of waivers may have.
_LIMIT = 256 << 10


def excuses(
    folder: Path,
    listed: Collection[Entry],
    found: Verification,
    pack: Pack,
    mandatory: Collection[str],
    today: datetime.date,
    *,
    allow_mandatory: bool,
) -> Iterator[str]:
    """What is wrong with the waivers, and which failures have none; notes in ``found`` what is excused.

    A mandatory case that the device does not support needs a waiver as any other failure, and none can be
    waived without ``allow_mandatory``.
    """
    found.lacking = [case for case in found.lacking if case not in mandatory]
    try:
        waivers = _read(folder, listed)
    except BadFile as error:
        yield f"{WAIVERS}: {error.why}"
        return
    except ValueError as error:
        yield f"{WAIVERS}: {error}"
        return
    by_case: dict[str, int] = {}
    for number, waiver in enumerate(waivers, 1):
        cases = [case.id for case in pack.manifest.cases if waiver.matches(case.id)]
        for trouble in _troubles(waiver, cases, found, today):
            yield f"{WAIVERS}: waiver {number} ({waiver.case}): {trouble}"
        for case in cases:
            if by_case.setdefault(case, number) != number:
                yield f"{WAIVERS}: waivers {by_case[case]} and {number} both match {case}: one is enough"
    found.waivers = len(waivers)
    for case, verdict in found.verdicts.items():
        if verdict is Verdict.PASS or case in found.lacking:
            continue
        if case not in by_case:
            yield f"{case}: {verdict.value}, and no waiver says why"
        elif case in mandatory and not allow_mandatory:
            yield f"{case}: {verdict.value}, and mandatory: no waiver excuses it (--allow-waived-mandatory)"
        else:
            found.waived.append(case)
            if case in mandatory:
                found.mandatory.append(case)


def _read(folder: Path, listed: Collection[Entry]) -> list[Waiver]:
    """The waivers of a submission, whose folder holds what is ``listed``; raises BadFile and ValueError."""
    if not any(entry.name == WAIVERS and entry.kind == FILE for entry in listed):
        return []
    return read_waivers(read_bytes(folder / WAIVERS, _LIMIT))


def _troubles(waiver: Waiver, cases: list[str], found: Verification, today: datetime.date) -> Iterator[str]:
    device = found.statement.device["name"] if found.statement else waiver.device
    if waiver.device != device:
        yield f"for the device {waiver.device}, but this is {device}"
    if waiver.expires < today:
        yield f"expired on {waiver.expires}"
    if waiver.expires > today + LONGEST:
        yield f"expires on {waiver.expires}: it may hold until {today + LONGEST}"
    if not cases:
        yield "matches no case of the pack"
    elif waiver.cases is not None and waiver.cases != len(cases):
        yield f"says that it matches {waiver.cases} cases, but it matches {len(cases)}"
    for case in cases:
        if found.verdicts.get(case) is Verdict.PASS:
            yield f"stale: {case} passes"
        elif case in found.lacking:
            yield f"stale: {case} is unsupported by the device, and needs none"
