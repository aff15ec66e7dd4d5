"""A shard's folder as it was handed in, read without trust: what is not as it should be becomes a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vgf_conformance.packs.folder import read_limited
from vgf_conformance.qualification.layout import (
    CAPABILITIES,
    LOGS,
    OUTPUTS,
    RUNS,
    STATEMENT,
    files_of,
    is_known,
    output_name,
    sha256_of,
)
from vgf_conformance.qualification.statement import Statement, parse_capabilities
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard
from vgf_conformance.results.store import parse_line
from vgf_conformance.vocabulary import UserError

#: Bytes that statement, capability report and waivers may have, and the records of a run.
TEXT_LIMIT = 16 << 20
RUN_LIMIT = 256 << 20


@dataclass
class Run:
    """One of the two runs: its run lines, and its records in the order of the file, doubles too."""

    name: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


@dataclass
class Submitted:
    """A shard: statement and capability report (None where they cannot be read), runs, and what is wrong."""

    shard: Shard
    place: Path
    statement: Statement | None = None
    capabilities: dict[str, Any] | None = None
    runs: list[Run] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def read_shard(place: Path, shard: Shard) -> Submitted:
    """Read a shard's folder; nothing of it is executed, unpickled or opened by a name that it gives."""
    found = Submitted(shard, place)
    kinds = dict(files_of(place))
    for name, kind in kinds.items():
        if not is_known(name):
            found.reasons.append(f"{name}: no file of a submission")
        elif kind != "file":
            found.reasons.append(f"{name}: is {kind}")
    files = {name for name, kind in kinds.items() if kind == "file" and is_known(name)}
    missing = [name for name in (STATEMENT, CAPABILITIES, *RUNS, *LOGS) if name not in files]
    found.reasons += [f"{name}: missing" for name in missing]
    try:
        if STATEMENT in files:
            found.statement = Statement.decode(read_limited(place / STATEMENT, TEXT_LIMIT))
            found.reasons += _altered(place, files, found.statement)
    except (ValueError, OSError) as error:
        found.reasons.append(f"{STATEMENT}: {error}")
    try:
        if CAPABILITIES in files:
            found.capabilities = parse_capabilities(read_limited(place / CAPABILITIES, TEXT_LIMIT))
    except (ValueError, OSError) as error:
        found.reasons.append(f"{CAPABILITIES}: {error}")
    for name in RUNS:
        run = Run(name)
        found.runs.append(run)
        if name in files:
            found.reasons += _read_run(place / name, run)
    if not missing:
        named = {output_name(item.sha256) for item in _outputs(found)}
        unnamed = sorted(name for name in files if name.startswith(f"{OUTPUTS}/") and name not in named)
        found.reasons += [f"{name}: no record names it" for name in unnamed]
    return found


def _outputs(found: Submitted) -> Iterator[Any]:
    for run in found.runs:
        for record in run.records:
            for call in record.outputs:
                yield from call


def _altered(place: Path, files: set[str], statement: Statement) -> Iterator[str]:
    """Where the statement's list of files is another than what lies there."""
    listed = statement.files
    for name in sorted((files - {STATEMENT}) ^ listed.keys()):
        what = "the statement lists it, but it is not there"
        yield f"{name}: {what if name in listed else 'the statement does not list it'}"
    for name in sorted(files & listed.keys()):
        if sha256_of(place / name) != listed[name]:
            yield f"{name}: altered: its SHA-256 is not the statement's"


def _read_run(path: Path, run: Run) -> Iterator[str]:
    try:
        content = read_limited(path, RUN_LIMIT)
    except (ValueError, OSError) as error:
        yield f"{path.name}: {error}"
        return
    *lines, rest = content.split(b"\n")
    if rest:
        yield f"{path.name}: its last line is torn"
    for number, line in enumerate(lines, 1):
        try:
            document = parse_line(line, Path(path.name), number)
            if document["type"] == "run":
                run.lines.append(document)
            elif document["type"] == "case":
                run.records.append(Record.from_json(document))
            elif document["type"] != "plan":
                raise UserError(f"{path.name}:{number}: a submission has no {document['type']} lines")
        except UserError as error:
            yield str(error)
        except (ValueError, TypeError, KeyError, RecursionError):
            yield f"{path.name}:{number}: no record"
