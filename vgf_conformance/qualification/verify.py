"""Is a submission what it says? Every check, and every verdict once more from the raw outputs."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator
from pathlib import Path

from vgf_conformance.packs.pack import Pack
from vgf_conformance.qualification.agreement import between_shards, disagreements
from vgf_conformance.qualification.excuses import excuses
from vgf_conformance.qualification.layout import FILE, FOLDER, WAIVERS, Entry, entries, shard_named
from vgf_conformance.qualification.submitted import Submitted, read_shard
from vgf_conformance.qualification.verdicts import untruths
from vgf_conformance.qualification.verification import Verification
from vgf_conformance.terminal import one_line
from vgf_conformance.untrusted import is_folder, kind_of
from vgf_conformance.vocabulary import UserError


def verify(
    folder: Path,
    pack: Pack,
    mandatory: Collection[str],
    today: datetime.date,
    *,
    allow_waived_mandatory: bool = False,
) -> Verification:
    """Check the submission in ``folder`` against the pack that it is said to be of.

    ``mandatory`` are ids, without a target, that it must hold, and that have to pass unless waivers are
    allowed for them too. Raises UserError where the folder is no submission at all.
    """
    listed = _listed(folder)
    found = Verification(reasons=list(_strays(listed)))
    shards: list[Submitted] = []
    for submitted in _shards(folder, listed, pack):
        where = f"shard {submitted.shard}: "
        reasons = [
            *submitted.reasons,
            *disagreements(submitted, pack),
            *untruths(submitted, pack, found),
        ]
        found.reasons += [where + reason for reason in reasons]
        # The next one's records need the room.
        submitted.runs.clear()
        shards.append(submitted)
    found.reasons += between_shards(shards, pack)
    found.statement = next((item.statement for item in shards if item.statement), None)
    found.reasons += excuses(
        folder, listed, found, pack, mandatory, today, allow_mandatory=allow_waived_mandatory
    )
    there = {case.id for case in pack.manifest.cases}
    found.reasons += [f"{case}: mandatory, but not in the pack" for case in mandatory if case not in there]
    found.reasons = [one_line(reason) for reason in found.reasons]
    return found


def _listed(folder: Path) -> list[Entry]:
    """What a submission's folder holds; raises UserError where it is none."""
    if not is_folder(folder):
        raise UserError(f"{folder}: {'not a folder' if kind_of(folder) else 'no such folder'}")
    listed = entries(folder)
    if not any(shard_named(entry.name) for entry in listed):
        raise UserError(f"{folder}: no submission: it has no folder called shard-1-of-1 or alike")
    return listed


def _strays(listed: list[Entry]) -> Iterator[str]:
    """Other things than folders of shards and waivers."""
    for entry in listed:
        if entry.kind != (FOLDER if shard_named(entry.name) else FILE) or (
            entry.name != WAIVERS and shard_named(entry.name) is None
        ):
            yield f"{entry.name}: no part of a submission ({entry.kind})"


def _shards(folder: Path, listed: list[Entry], pack: Pack) -> Iterator[Submitted]:
    for entry in listed:
        shard = shard_named(entry.name)
        if shard is not None and entry.kind == FOLDER:
            yield read_shard(folder / entry.name, shard, pack)
