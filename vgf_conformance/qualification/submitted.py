"""A shard's folder as it was handed in, read without trust: what is not as it should be becomes a reason."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from vgf_conformance.packs.folder import output_limit
from vgf_conformance.packs.pack import Pack
from vgf_conformance.qualification.layout import (
    CAPABILITIES,
    FILE,
    LOGS,
    RUNS,
    STATEMENT,
    files_of,
    is_known,
    is_output,
    output_name,
    sha256_of,
)
from vgf_conformance.qualification.statement import Statement, parse_capabilities
from vgf_conformance.results.record import OutputDigest, Record
from vgf_conformance.results.shards import Shard
from vgf_conformance.results.store import schema_refusal
from vgf_conformance.targets.capabilities import Platform
from vgf_conformance.untrusted import BadFile, parse_json, read_bytes

#: Bytes that statement and capability report may have, and the records or the log of a run.
TEXT_LIMIT = 16 << 20
RUN_LIMIT = 64 << 20
#: Bytes of a line of records: a record of hundreds of calls has a tenth of it.
LINE_LIMIT = 4 << 20
#: Run and plan lines of a run: two for each time that it was gone on with.
START_LIMIT = 10_000

Content = TypeVar("Content")


@dataclass
class Run:
    """One of the two runs: its run lines, plans, and records in the order of the file, doubles too.

    ``times`` are when lines were written, by what wrote them, in the same order. A run is ``whole`` unless a
    line could not be read: what follows that is not known.
    """

    name: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    plans: list[list[str]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    whole: bool = True


@dataclass
class Submitted:
    """A shard: statement and capability report (None where they cannot be read), runs, and what is wrong."""

    shard: Shard
    place: Path
    statement: Statement | None = None
    platform: Platform | None = None
    runs: list[Run] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether both runs can be read to their ends."""
        return len(self.runs) == len(RUNS) and all(run.whole for run in self.runs)


def read_shard(place: Path, shard: Shard, pack: Pack) -> Submitted:
    """Read a shard's folder; nothing of it is executed, unpickled or opened by a name that it gives."""
    found = Submitted(shard, place)
    try:
        kinds = {entry.name: _trouble(entry.name, entry.kind, entry.size, pack) for entry in files_of(place)}
    except BadFile as error:
        found.reasons.append(f"{error.path.relative_to(place.parent)}: {error.why}")
        return found
    found.reasons += [f"{name}: {trouble}" for name, trouble in kinds.items() if trouble]
    missing = [name for name in (STATEMENT, CAPABILITIES, *RUNS, *LOGS) if name not in kinds]
    found.reasons += [f"{name}: missing" for name in missing]
    files = {name for name, trouble in kinds.items() if not trouble}
    found.statement = _decoded(found, files, STATEMENT, Statement.decode)
    found.platform = _decoded(found, files, CAPABILITIES, parse_capabilities)
    if found.statement is not None:
        found.reasons += _altered(place, kinds.keys() - {STATEMENT}, files, found.statement)
    found.runs = [_run(found, files, name, len(pack.manifest.cases)) for name in RUNS]
    if found.whole:
        named = {output_name(item.sha256) for item in _outputs(found)}
        unnamed = sorted(name for name in files if is_output(name) and name not in named)
        found.reasons += [f"{name}: no record names it" for name in unnamed]
    return found


def _trouble(name: str, kind: str, size: int, pack: Pack) -> str:
    """Why a file of a shard's folder is not read; empty where it may be."""
    if not is_known(name):
        return "no file of a submission"
    if kind != FILE:
        return f"is {kind}"
    if is_output(name):
        most = output_limit((pack.largest,))
        return f"is too large: {size} bytes, where no output of the pack has more than {most}" * (size > most)
    most = RUN_LIMIT if name in (*RUNS, *LOGS) else TEXT_LIMIT
    return f"is too large: {size} bytes, where {most} are the most" * (size > most)


def _decoded(
    found: Submitted, files: set[str], name: str, decode: Callable[[bytes], Content]
) -> Content | None:
    """The content of a document of the shard; what is wrong with it becomes a reason."""
    if name not in files:
        return None
    try:
        return decode(read_bytes(found.place / name, TEXT_LIMIT))
    except BadFile as error:
        found.reasons.append(f"{name}: {error.why}")
    except ValueError as error:
        found.reasons.append(f"{name}: {error}")
    return None


def _outputs(found: Submitted) -> Iterator[OutputDigest]:
    for run in found.runs:
        for record in run.records:
            for call in (*record.outputs, *record.visible):
                yield from call


def _altered(place: Path, there: set[str], files: set[str], statement: Statement) -> Iterator[str]:
    """Where the statement's list of files is another than what lies there."""
    listed = statement.files
    for name in sorted(listed.keys() - there):
        yield f"{name}: the statement lists it, but it is not there"
    for name in sorted((files - {STATEMENT}) - listed.keys()):
        yield f"{name}: the statement does not list it"
    for name in sorted(files & listed.keys()):
        try:
            if sha256_of(place / name) != listed[name]:
                yield f"{name}: altered: its SHA-256 is not the statement's"
        except BadFile as error:
            yield f"{name}: {error.why}"


def _run(found: Submitted, files: set[str], name: str, cases: int) -> Run:
    """Read a run up to the first line that is none."""
    run = Run(name)
    if name not in files:
        run.whole = False
        return run
    try:
        content = read_bytes(found.place / name, RUN_LIMIT)
    except BadFile as error:
        run.whole = False
        found.reasons.append(f"{name}: {error.why}")
        return run
    for number, line in enumerate(io.BytesIO(content), 1):
        if trouble := _line(run, line, number, cases):
            run.whole = False
            found.reasons.append(f"{name}:{number}: {trouble}")
            break
    return run


def _line(run: Run, line: bytes, number: int, cases: int) -> str:
    """Take a line of a run; returns why it is none, empty where it is one."""
    if not line.endswith(b"\n"):
        return "its last line is torn"
    if len(line) > LINE_LIMIT:
        return f"a line of {len(line)} bytes, where {LINE_LIMIT} are the most"
    try:
        document = parse_json(line)
        if refusal := schema_refusal(document):
            return refusal
        return _take(run, document, number, cases)
    except ValueError as error:
        return str(error)
    except (TypeError, KeyError):
        return "no record"


def _take(run: Run, document: dict[str, Any], number: int, cases: int) -> str:
    kind = document["type"]
    if number == 1 and kind != "run":
        return "a results file begins with a run line"
    if kind == "case":
        # Twice as many tell that there are doubles.
        if len(run.records) >= 2 * cases:
            return f"more than twice as many records as the pack has cases, {cases}"
        run.records.append(Record.from_json(document))
        run.times.append(run.records[-1].written)
    elif kind == "run":
        run.lines.append(document)
        run.times.append(str(document.get("started", "")))
    elif kind == "plan":
        run.plans.append(document["cases"])
    else:
        return f"a submission has no {kind} lines"
    if len(run.lines) + len(run.plans) > START_LIMIT:
        return f"more than {START_LIMIT} starts"
    return ""
