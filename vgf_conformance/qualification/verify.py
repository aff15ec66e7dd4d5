"""Is a submission what it says? Every check, and every verdict once more from the raw outputs."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vgf_conformance.packs.folder import read_limited
from vgf_conformance.packs.manifest import PackedCase
from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.run import run_case
from vgf_conformance.qualification.layout import WAIVERS, entries, shard_named
from vgf_conformance.qualification.machine import device_of, layers_of, platform_of
from vgf_conformance.qualification.outputs import HandedIn
from vgf_conformance.qualification.statement import Statement, this_tool
from vgf_conformance.qualification.submitted import TEXT_LIMIT, Run, Submitted, read_shard
from vgf_conformance.qualification.waivers import Waiver, read_waivers
from vgf_conformance.report.tally import outcome
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard
from vgf_conformance.targets.capable import lacking
from vgf_conformance.terminal import one_line
from vgf_conformance.vocabulary import Finding, UserError, Verdict

#: What a record says of its case, which is the pack's to say.
_FACTS = ("case", "sample", "kind", "file", "operator", "profile", "scheme", "dtypes", "tier")


@dataclass
class Verification:
    """Why a submission is refused, a line for each reason; none where it is accepted.

    ``verdicts`` has that of each of the pack's cases, by id without a target, as far as it is known;
    ``lacking`` those of them for which the device lacks something, ``waived`` those that a waiver excuses.
    """

    reasons: list[str] = field(default_factory=list)
    statement: Statement | None = None
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    waived: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """What was accepted."""
        assert self.statement is not None
        said = self.statement
        device = ", ".join(filter(None, (said.device["name"], said.device.get("driver_info"))))
        return one_line(
            f"accepted: {said.product} on {device} ({said.layers}): {len(self.verdicts)} cases, "
            f"{len(self.waived)} waived, {len(self.lacking)} that the device cannot do"
        )


def verify(folder: Path, pack: Pack, mandatory: Sequence[str], today: datetime.date) -> Verification:
    """Check the submission in ``folder`` against the pack that it is said to be of.

    ``mandatory`` are ids, without a target, that it must hold. Raises UserError where the folder is no
    submission at all.
    """
    found = Verification()
    shards = list(_shards(folder, found))
    for submitted in shards:
        where = f"shard {submitted.shard}: "
        reasons = [*submitted.reasons, *_said(submitted, pack), *_records(submitted, pack, found)]
        found.reasons += [where + reason for reason in reasons]
    found.reasons += _together(shards, pack)
    found.statement = next((item.statement for item in shards if item.statement), None)
    found.lacking = [case for case in found.lacking if case not in mandatory]
    found.reasons += _excused(folder, found, pack, today)
    there = {case.id for case in pack.manifest.cases}
    found.reasons += [f"{case}: mandatory, but not in the pack" for case in mandatory if case not in there]
    found.reasons = [one_line(reason) for reason in found.reasons]
    return found


def _shards(folder: Path, found: Verification) -> Iterator[Submitted]:
    """The shards of a submission; other things than shards and waivers are reasons."""
    if not folder.is_dir():
        raise UserError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    try:
        listed = list(entries(folder))
        if not any(shard_named(name) for name, _ in listed):
            raise UserError(f"{folder}: no submission: it has no folder called shard-1-of-1 or alike")
        for name, kind in listed:
            shard = shard_named(name)
            if shard is not None and kind == "folder":
                yield read_shard(folder / name, shard)
            elif name != WAIVERS or kind != "file":
                found.reasons.append(f"{name}: no part of a submission ({kind})")
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror or error}") from error


def _said(submitted: Submitted, pack: Pack) -> Iterator[str]:
    """What the statement says, against the pack, this tool and the run lines."""
    said = submitted.statement
    if said is None:
        return
    tool = this_tool()
    if said.shard != str(submitted.shard):
        yield f"the statement is of shard {said.shard}"
    if said.pack != pack.sha256:
        yield f"of another pack: its SHA-256 is {said.pack}, that of {pack.path.name} is {pack.sha256}"
    if said.tool != tool:
        yield (
            f"made by vgf-conformance {said.tool.version} ({said.tool.sha256[:16]}), but this is "
            f"{tool.version} ({tool.sha256[:16]}): verify it with the same"
        )
    if submitted.capabilities is not None and submitted.capabilities["identity"] != dict(said.device):
        yield f"the capability report is of another device: {submitted.capabilities['identity']}"
    for run in submitted.runs:
        for line in run.lines:
            yield from _line(run.name, line, said)


def _line(name: str, line: Mapping[str, object], said: Statement) -> Iterator[str]:
    pack = line.get("pack")
    for what, theirs, ours in (
        ("pack", pack.get("sha256") if isinstance(pack, dict) else None, said.pack),
        ("shard", line.get("shard"), said.shard),
        ("product", line.get("product"), said.product),
        ("device", device_of(line), dict(said.device)),
        ("layers", layers_of(line, said.target), said.layers),
        ("versions", line.get("versions"), dict(said.versions)),
    ):
        if theirs != ours:
            yield f"{name}: run with another {what} than the statement's: {theirs}, not {ours}"


def _together(shards: Sequence[Submitted], pack: Pack) -> Iterator[str]:
    """What shards must have in common, and which of them is missing."""
    counts = sorted({submitted.shard.of for submitted in shards})
    if len(counts) > 1:
        yield f"shards of {' and of '.join(map(str, counts))}: a submission is split in one way"
        return
    there = {submitted.shard for submitted in shards}
    for number in range(1, counts[0] + 1):
        shard = Shard(number=number, of=counts[0])
        cases = sum(shard.holds(case.id) for case in pack.manifest.cases)
        if shard not in there:
            yield f"shard {shard} is missing: {cases} cases"
    said = [(submitted.shard, submitted.statement) for submitted in shards if submitted.statement]
    for shard, statement in said[1:]:
        first, other = said[0]
        for what in ("product", "device", "target", "layers"):
            mine, theirs = getattr(statement, what), getattr(other, what)
            if mine != theirs:
                yield f"shard {shard}: another {what} than shard {first}: {mine}, not {theirs}"


def _records(submitted: Submitted, pack: Pack, found: Verification) -> Iterator[str]:
    """The records of both runs against the pack's cases, the raw outputs, and each other."""
    if submitted.statement is None:
        return
    cases = [case for case in pack.manifest.cases if submitted.shard.holds(case.id)]
    target = submitted.statement.target
    for run in submitted.runs:
        yield from _listed(run, [case.id_on(target) for case in cases])
    first, second = ({record.id: record for record in run.records} for run in submitted.runs)
    for case in cases:
        name = case.id_on(target)
        if name in first and name in second:
            found.verdicts[case.id] = first[name].verdict
            if first[name].finding is Finding.CAPABILITY and submitted.capabilities is not None:
                found.lacking.append(case.id)
                yield from _incapable(submitted.capabilities, pack, case)
            yield from _case(submitted.place, pack, case, first[name], second[name])


def _listed(run: Run, wanted: Sequence[str]) -> Iterator[str]:
    """Missing, double, unknown and out-of-order records."""
    times = Counter(record.id for record in run.records)
    yield from (f"{run.name}: {case}: missing" for case in wanted if case not in times)
    yield from (f"{run.name}: {case}: there {count} times" for case, count in times.items() if count > 1)
    unknown = times.keys() - set(wanted)
    yield from (f"{run.name}: {case}: no case of this shard" for case in sorted(unknown))
    place = {case: number for number, case in enumerate(wanted)}
    order = [case for case in times if case in place]
    for before, after in itertools.pairwise(order):
        if place[before] > place[after]:
            yield f"{run.name}: out of order: {after} comes after {before}"


def _case(place: Path, pack: Pack, case: PackedCase, first: Record, second: Record) -> Iterator[str]:
    if first.outputs != second.outputs:
        yield f"{first.id}: the two runs gave other outputs"
    if (first.verdict, first.finding) != (second.verdict, second.finding):
        yield f"{first.id}: {outcome(first)} in the first run, {outcome(second)} in the second"
    again = run_case(pack, case, HandedIn(place, case, first))
    for name in _FACTS:
        if getattr(first, name) != getattr(again, name):
            yield f"{first.id}: its {name} is {getattr(first, name)!r}, in the pack {getattr(again, name)!r}"
    # What ended without all outputs, or was seen as it ran (unwritten, unrepeatable), is not seen again.
    judged = first.verdict is Verdict.PASS or first.finding is Finding.WRONG
    if judged and (first.verdict is Verdict.PASS) != (again.verdict is Verdict.PASS):
        yield (
            f"{first.id}: {first.verdict.value} in the results, but by its outputs {outcome(again)}"
            f"{': ' if again.message else ''}{again.message}"
        )


def _incapable(report: Mapping[str, Any], pack: Pack, case: PackedCase) -> Iterator[str]:
    """Whether the device lacks what a case needs, by its own report."""
    platform = platform_of(report)
    delegates = [pack.load(call).delegate for call in case.calls]
    if not any(any(lacking(platform, delegate)) for delegate in delegates):
        yield f"{case.id}: unsupported in the results, but the device can by its capability report"


def _excused(folder: Path, found: Verification, pack: Pack, today: datetime.date) -> Iterator[str]:
    """What is wrong with the waivers, and which failures have none."""
    waivers: list[Waiver] = []
    try:
        if (folder / WAIVERS).is_file() and not (folder / WAIVERS).is_symlink():
            waivers = read_waivers(read_limited(folder / WAIVERS, TEXT_LIMIT))
    except (ValueError, OSError) as error:
        yield f"{WAIVERS}: {error}"
    device = found.statement.device["name"] if found.statement else ""
    excused: set[str] = set()
    for number, waiver in enumerate(waivers, 1):
        named = f"{WAIVERS}: waiver {number} ({waiver.case})"
        cases = [case.id for case in pack.manifest.cases if waiver.matches(case.id)]
        excused.update(cases)
        if not cases:
            yield f"{named}: matches no case of the pack"
        if waiver.device != device:
            yield f"{named}: for the device {waiver.device}, but this is {device}"
        if waiver.expires < today:
            yield f"{named}: expired on {waiver.expires}"
        for case in cases:
            if found.verdicts.get(case) is Verdict.PASS:
                yield f"{named}: stale: {case} passes"
    for case, verdict in found.verdicts.items():
        if verdict is not Verdict.PASS and case not in excused and case not in found.lacking:
            yield f"{case}: {verdict.value}, and no waiver says why"
    failing = (case for case, verdict in found.verdicts.items() if verdict is not Verdict.PASS)
    found.waived = [case for case in failing if case in excused]
