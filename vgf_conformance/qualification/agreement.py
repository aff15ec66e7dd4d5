"""Does a shard agree with itself? Statement, capability report and run lines, and shards with each other."""

from __future__ import annotations

import datetime
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.session import described_pack
from vgf_conformance.qualification.machine import useless
from vgf_conformance.qualification.statement import Statement, this_tool
from vgf_conformance.qualification.submitted import Run, Submitted
from vgf_conformance.results.shards import Shard
from vgf_conformance.targets.environment import described_driver

#: As results have it: UTC, to the millisecond. Such texts have the order of their times.
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00")


def disagreements(submitted: Submitted, pack: Pack) -> Iterator[str]:
    """What the statement of a shard says, against the pack, this tool, the capability report and the runs."""
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
    yield from _capabilities(submitted, said)
    for run in submitted.runs:
        if run.whole and not run.lines:
            yield f"{run.name}: no run line"
        for line in run.lines:
            yield from _line(run.name, line, submitted, said, pack)
        plan = [case.id_on(said.target) for case in pack.manifest.cases]
        if any(other != plan for other in run.plans):
            yield f"{run.name}: its plan is not the pack's list of cases"
    yield from _times(submitted)


def _capabilities(submitted: Submitted, said: Statement) -> Iterator[str]:
    found = submitted.platform
    if found is None:
        return
    if found.identity != dict(said.device):
        yield f"the capability report is of another device: {found.identity}"
    if found.layers_text != said.layers:
        mine, theirs = said.layers, found.layers_text
        yield f"the capability report is of other layers than the statement's: {theirs}, not {mine}"
    if trouble := useless(said.target, found):
        yield f"the capability report: {trouble}"


def _line(
    name: str, line: Mapping[str, object], submitted: Submitted, said: Statement, pack: Pack
) -> Iterator[str]:
    wanted: dict[str, tuple[str, object]] = {
        "pack": ("pack", described_pack(pack)),
        "shard": ("shard", said.shard),
        "product": ("product", said.product),
        "target": ("targets", [said.target]),
        "device": ("device", dict(said.device)),
        "layers": ("layers", {said.target: said.layers}),
        "versions": ("versions", dict(said.versions)),
        "python": ("python", said.python),
        "cpu": ("cpu", said.cpu),
        "os": ("os", said.os),
    }
    for what, (key, ours) in wanted.items():
        if line.get(key) != ours:
            yield f"{name}: run with another {what} than the statement's: {line.get(key)}, not {ours}"
    if submitted.platform is not None:
        theirs, ours = line.get("driver"), described_driver(submitted.platform)
        if theirs != ours:
            yield f"{name}: run with another driver than the capability report's: {theirs}, not {ours}"


def _times(submitted: Submitted) -> Iterator[str]:
    """A run is written from its first line to its last, and the second after the first."""
    for run in submitted.runs:
        wrong = next((time for time in run.times if not _is_time(time)), None)
        if wrong is not None:
            yield f"{run.name}: {wrong!a} is no time"
            return
        for before, after in itertools.pairwise(run.times):
            if before > after:
                yield f"{run.name}: its times run backwards: {after} is written after {before}"
                return
    if submitted.whole:
        yield from _second(*submitted.runs)


def _is_time(text: str) -> bool:
    """Whether it is written as one, and is one: there is no 13th month."""
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return _TIME.fullmatch(text) is not None


def _second(first: Run, second: Run) -> Iterator[str]:
    # A start may be noted in the first run while the second goes on.
    last = max((record.written for record in first.records), default="")
    if second.times and second.times[0] < last:
        yield f"{second.name}: begun at {second.times[0]}, before the first run ended at {last}"


def between_shards(shards: Sequence[Submitted], pack: Pack) -> Iterator[str]:
    """What shards must have in common, and which of them is missing."""
    counts = sorted({submitted.shard.of for submitted in shards})
    if not counts:
        return
    if len(counts) > 1:
        yield f"shards of {' and of '.join(map(str, counts))}: a submission is split in one way"
        return
    there = {submitted.shard for submitted in shards}
    cases = Counter(Shard.with_artifact(case.id, counts[0]) for case in pack.manifest.cases)
    for number in range(1, counts[0] + 1):
        shard = Shard(number=number, of=counts[0])
        if shard not in there:
            yield f"shard {shard} is missing: {cases[shard]} cases"
    said = [(submitted.shard, submitted.statement) for submitted in shards if submitted.statement]
    for shard, statement in said[1:]:
        first, other = said[0]
        for what in ("product", "device", "target", "layers", "versions"):
            mine, theirs = getattr(statement, what), getattr(other, what)
            if mine != theirs:
                yield f"shard {shard}: another {what} than shard {first}: {mine}, not {theirs}"
