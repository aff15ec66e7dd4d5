"""results.jsonl, written one fsynced line at a time and read back with every line checked."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from vgf_conformance.formats import schema
from vgf_conformance.results.claims import Claim
from vgf_conformance.results.merge import Results, joined_claims, joined_plan, merge
from vgf_conformance.results.record import SCHEMA_VERSION, NotRun, Record
from vgf_conformance.vocabulary import UserError

__all__ = [
    "FILE_NAME",
    "Results",
    "ResultsWriter",
    "now",
    "parse_line",
    "read_results",
    "results_file",
    "schema_refusal",
    "set_aside",
    "write_results",
]

FILE_NAME = "results.jsonl"

#: What a line may be.
KINDS = ("run", "plan", "claims", "not_run", "case")


class ResultsWriter:
    """Appends to a results file; what was written stays readable if the run is killed.

    ``path`` is the file, or a folder for its ``results.jsonl``. An existing file is
    continued: a torn last line is cut off and a further ``run`` line is written.
    """

    def __init__(self, path: Path, environment: Mapping[str, Any]) -> None:
        """Open the file and write the run line; raises UserError where that cannot be done."""
        self.path = results_file(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise self._refused(error) from error
        try:
            _lock(self._file, self.path)
            if self.path.is_file():
                _mend_tail(self._file, self.path)
            self.append_run(environment)
        except BaseException:
            self.close()
            raise

    def append_run(self, environment: Mapping[str, Any]) -> None:
        """Write a run line: this run's, or that of a worker on another machine; raises UserError."""
        self._write_line({"started": now(), **environment, "type": "run", "schema": SCHEMA_VERSION})

    def append(self, record: Record) -> None:
        """Write one record and fsync it; raises UserError where the disk refuses.

        Raises ValueError for a record that the schema refuses: that is a bug of the harness.
        """
        self._write_line(replace(record, written=record.written or now()).to_json())

    def append_plan(self, cases: Sequence[str]) -> None:
        """Write the ids of all cases of the run, every shard's; raises UserError where the disk refuses."""
        self._write_line(_plan_line(cases))

    def append_claims(self, claims: Iterable[Claim]) -> None:
        """Write what the backend claims; raises UserError where the disk refuses."""
        self._write_line(_claims_line(claims))

    def append_not_run(self, case: NotRun) -> None:
        """Write that a case could not be run; raises UserError where the disk refuses."""
        self._write_line(_not_run_line(case))

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_line(self, document: dict[str, Any]) -> None:
        refusal = schema_refusal(document)
        if refusal:
            raise ValueError(f"not a valid {document['type']} line: {refusal}")
        rest = memoryview(_encoded(document))
        end = os.fstat(self._file).st_size
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, end)
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> UserError:
        return UserError(
            f"cannot write results to {self.path}: {error.strerror or error}. Free space or choose another "
            "folder for the results; what was written before is intact, and the same path continues it"
        )


def write_results(path: Path, parts: Sequence[Results]) -> None:
    """Write ``parts`` as one results file, each with its run lines before its records.

    An id that several have is written as the last one has it. An existing file is replaced once all is
    written. Raises UserError where that cannot be done.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(map(_encoded, _lines(parts)))
        # mkstemp's own mode is for its owner alone.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _lines(parts: Sequence[Results]) -> Iterator[dict[str, Any]]:
    joined = merge(parts)
    kept = {id(record) for record in joined.records}
    for number, part in enumerate(parts):
        yield from part.runs
        if number == 0 and joined.plan:
            yield _plan_line(joined.plan)
        if number == 0 and joined.claims:
            yield _claims_line(joined.claims)
        yield from (record.to_json() for record in part.records if id(record) in kept)
    yield from map(_not_run_line, joined.not_run)


def _plan_line(cases: Sequence[str]) -> dict[str, Any]:
    return {"type": "plan", "cases": list(cases)}


def _claims_line(claims: Iterable[Claim]) -> dict[str, Any]:
    return {"type": "claims", "claims": [claim.to_json() for claim in claims]}


def _not_run_line(case: NotRun) -> dict[str, Any]:
    return {"type": "not_run", "id": case.id, "reason": case.reason}


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def set_aside(path: Path) -> None:
    """Rename the results of an earlier run to ``results.previous.jsonl``, replacing what is there.

    Raises UserError where another run is writing them, or the folder refuses.
    """
    try:
        with path.open("rb") as file:
            _lock(file.fileno(), path)
            path.replace(path.with_suffix(".previous.jsonl"))
    except OSError as error:
        raise UserError(f"cannot set {path} aside: {error.strerror or error}") from error


def _lock(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(f"another run is writing {path}: wait for it, or choose another folder") from error


def read_results(paths: Iterable[Path]) -> Results:
    """Read results files (or folders that hold a ``results.jsonl``) and join them.

    A torn last line and doubled ids become warnings. Raises UserError, naming file and
    line, for a file that is missing, malformed, refused by the schema, or of a newer one.
    """
    return merge([_read_file(results_file(path)) for path in paths])


def results_file(path: Path) -> Path:
    """The results file that ``path`` names: itself, or ``results.jsonl`` in a folder."""
    return path / FILE_NAME if path.is_dir() or (not path.suffix and not path.exists()) else path


def now() -> str:
    """The time in UTC as ISO 8601, to the millisecond."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def schema_refusal(document: Any) -> str | None:
    """Why the schema refuses a line, or None where it accepts it."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind not in KINDS:
        return f"neither a run nor a case line: a line is an object whose type is one of {', '.join(KINDS)}"
    return schema.newer(document, SCHEMA_VERSION) or schema.refusal(document, __package__, kind=kind)


def _mend_tail(file: int, path: Path) -> None:
    """Cut off a last line that a killed run left half written; refuse a file that is not ours."""
    content = path.read_bytes()
    first, newline, _ = content.partition(b"\n")
    if newline:
        parse_line(first, path, 1)
    tail = content[content.rfind(b"\n") + 1 :]
    if not tail:
        return
    if _is_whole(tail):
        os.write(file, b"\n")
    else:
        os.ftruncate(file, len(content) - len(tail))


def _is_whole(line: bytes) -> bool:
    try:
        return schema_refusal(json.loads(line)) is None
    except ValueError:
        return False


def _read_file(path: Path) -> Results:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read results from {path}: {error.strerror or error}. Name a results.jsonl or its folder"
        ) from error
    results = Results()
    lines = content.split(b"\n")
    tail = lines.pop()
    if tail and _is_whole(tail):
        lines.append(tail)
    elif tail:
        results.torn = True
        results.warnings.append(f"{path}:{len(lines) + 1}: the last line is torn (a killed run) and left out")
    records: dict[str, Record] = {}
    for number, line in enumerate(lines, 1):
        document = parse_line(line, path, number)
        if document["type"] == "run":
            results.runs.append(document)
            continue
        if document["type"] == "plan":
            results.plan = joined_plan(results.plan, document["cases"])
            continue
        if document["type"] == "claims":
            claims = map(Claim.from_json, document["claims"])
            results.claims = joined_claims(results.claims, claims)
            continue
        if document["type"] == "not_run":
            results.not_run.append(NotRun(document["id"], document["reason"]))
            continue
        record = Record.from_json(document)
        if record.id in records:
            results.warnings.append(f"{path}:{number}: {record.id} is doubled: the last one is kept")
        records[record.id] = record
    results.records = list(records.values())
    return results


def parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """A line of a results file, the first of which is number 1; raises UserError naming ``path`` and it."""
    try:
        document: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise UserError(f"{path}:{number}: not JSON: {error}") from error
    refusal = schema_refusal(document)
    if refusal is None and number == 1 and document["type"] != "run":
        refusal = "a results file begins with a run line"
    if refusal:
        raise UserError(f"{path}:{number}: {refusal}")
    return document
