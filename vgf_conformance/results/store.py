"""results.jsonl, written one fsynced line at a time and read back with every line checked.

Whoever writes a results file holds its lock, a merge too: what one run has written, no other replaces.
Results of an earlier run that have to make room are set aside, and that is told.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from vgf_conformance import files
from vgf_conformance.formats import schema
from vgf_conformance.results.claims import Claim
from vgf_conformance.results.merge import Results, joined_claims, merge
from vgf_conformance.results.record import SCHEMA_VERSION, NotRun, Record, plain
from vgf_conformance.results.shards import Shard
from vgf_conformance.untrusted import FILE, BadFile, Malformed, is_folder, kind_of, opened, parse_json
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

#: Bytes that a results file and one of its lines may have. A record has 2 KB, with a worker's output seldom
#: more than 100; a plan has 100 bytes a case. So this is room for 100,000 records, ten times the largest run,
#: and for a plan of as many; a file that a stranger made takes no more memory than that.
FILE_LIMIT = 256 << 20
LINE_LIMIT = 16 << 20

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
            self._file = _lock(self.path)
        except BadFile as error:
            raise self._refused(error.why) from error
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        try:
            _cut_tail(self._file, self.path)
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
        document = plain(document)
        refusal = schema_refusal(document)
        if refusal:
            raise ValueError(f"not a valid {document['type']} line: {refusal}")
        content = _encoded(document)
        rest = memoryview(content)
        end = os.fstat(self._file).st_size
        if len(content) > LINE_LIMIT or end + len(content) > FILE_LIMIT:
            raise UserError(
                f"{self.path}: a results file takes no more than {FILE_LIMIT} bytes: split the run"
            )
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, end)
            raise self._refused(error.strerror or str(error)) from error

    def _refused(self, why: str) -> UserError:
        return UserError(
            f"cannot write results to {self.path}: {why}. Free space or choose another "
            "folder for the results; what was written before is intact, and the same path continues it"
        )


def write_results(path: Path, parts: Sequence[Results]) -> str:
    """Write ``parts`` as one results file, each with its run lines before its records.

    An id that several have is written as the last one has it. Results that are there already are set aside
    once all is written; returns what was done with them, empty where there were none. Raises UserError where
    that cannot be done, or where a run is writing them.
    """
    with _holding(path) as held:
        with files.replacing(path) as file:
            file.writelines(map(_encoded, _lines(parts)))
            # Copied: there is no moment without a file of this name, in which a run could make one.
            said = _copy_aside(held, path)
        return said


@contextmanager
def _holding(path: Path) -> Iterator[int]:
    """The lock of a results file, made where there is none and removed again where it stays empty."""
    files.make_folder(path.parent)
    held = _lock(path)
    try:
        yield held
    finally:
        if not os.fstat(held).st_size and _is_named(held, path):
            path.unlink()
        os.close(held)


def _copy_aside(held: int, path: Path) -> str:
    if not _has_records(path):
        return ""
    previous, said = _previous(path)
    with opened(path, FILE_LIMIT) as source, files.replacing(previous) as copy:
        shutil.copyfileobj(source, copy)
    return said


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


def set_aside(path: Path) -> str:
    """Rename the results of an earlier run to ``results.previous.jsonl``; returns that in words.

    Results without a single record are removed, and those that lie there already stay. Empty where
    nothing was renamed. Raises UserError where another run is writing them, or the folder refuses.
    """
    if kind_of(path) is None:
        return ""
    held = _lock(path)
    try:
        if not _has_records(path):
            path.unlink()
            return ""
        previous, said = _previous(path)
        path.replace(previous)
        return said
    except OSError as error:
        raise UserError(f"cannot set {path} aside: {error.strerror or error}") from error
    finally:
        os.close(held)


def _previous(path: Path) -> tuple[Path, str]:
    """Where results are set aside to, and the words for it."""
    previous = path.with_suffix(".previous.jsonl")
    kind = kind_of(previous)
    if kind not in (FILE, None):
        raise UserError(f"cannot set {path} aside: {previous} is {kind}; remove it")
    instead = " (the results that were set aside there before are gone)" if kind else ""
    return previous, f"{path}: the results of an earlier run were set aside as {previous.name}{instead}"


def _has_records(path: Path) -> bool:
    """Whether anything would be lost with a file: a record, or a content that is no results at all."""
    try:
        return any(document["type"] == "case" for document in _documents(path, Results()))
    except UserError:
        return True


def _lock(path: Path) -> int:
    """A descriptor of a results file, made where it is missing, that holds its lock until it is closed.

    Raises UserError where another run has it, and BadFile where it is no regular file or cannot be opened.
    """
    while True:
        file = files.appending(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(file, path):
                return file
        except BlockingIOError as error:
            os.close(file)
            raise UserError(
                f"another run is writing {path}: wait for it, or choose another folder"
            ) from error
        except BaseException:
            os.close(file)
            raise
        # Set aside or replaced since it was opened.
        os.close(file)


def _is_named(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except FileNotFoundError:
        return False


def read_results(paths: Iterable[Path]) -> Results:
    """Read results files (or folders that hold a ``results.jsonl``) and join them.

    A torn last line and doubled ids become warnings. Raises UserError, naming file and
    line, for a file that is missing, malformed, refused by the schema, or of a newer one.
    """
    return merge([_read_file(results_file(path)) for path in paths])


def results_file(path: Path) -> Path:
    """The results file that ``path`` names: itself, or ``results.jsonl`` in a folder.

    Raises BadFile where the system refuses the name.
    """
    return path / FILE_NAME if is_folder(path) or (not path.suffix and kind_of(path) is None) else path


def now() -> str:
    """The time in UTC as ISO 8601, to the millisecond."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def schema_refusal(document: Any) -> str | None:
    """Why the schema refuses a line, or None where it accepts it."""
    if not isinstance(document, dict):
        return "a line has to be a JSON object"
    kind = document.get("type")
    if kind not in KINDS:
        return f"unknown line type {str(kind)[:40]!r}; expected one of {', '.join(KINDS)}"
    refusal = schema.newer(document, SCHEMA_VERSION) or schema.refusal(document, __package__, kind=kind)
    if refusal is None and document.get("shard") and kind == "run":
        return _shard_refusal(document["shard"])
    return refusal


def _shard_refusal(text: str) -> str | None:
    try:
        Shard.parse(text)
    except UserError as error:
        return f"$.shard: {error}"
    return None


def _cut_tail(file: int, path: Path) -> None:
    """Cut off a last line that a killed run left half written; raises UserError for a file of others."""
    size = last = 0
    tail = b""
    for number, line in _raw_lines(path):
        if number == 1 and line.endswith(b"\n"):
            parse_line(line, path, 1)
        last, size, tail = size, size + len(line), line
    if not tail or tail.endswith(b"\n"):
        return
    if _is_whole(tail):
        os.write(file, b"\n")
    else:
        os.ftruncate(file, last)


def _is_whole(line: bytes) -> bool:
    try:
        return schema_refusal(parse_json(line)) is None
    except Malformed:
        return False


def _read_file(path: Path) -> Results:
    results = Results()
    records: dict[str, Record] = {}
    plan: dict[str, None] = {}
    claims: list[Claim] = []
    for number, document in _numbered(path, results):
        kind = document["type"]
        if kind == "run":
            results.runs.append(document)
        elif kind == "plan":
            plan |= dict.fromkeys(document["cases"])
        elif kind == "claims":
            claims += map(Claim.from_json, document["claims"])
        elif kind == "not_run":
            results.not_run.append(NotRun(document["id"], document["reason"]))
        else:
            record = Record.from_json(document)
            if record.id in records:
                results.warnings.append(f"{path}:{number}: {record.id} is doubled: the last one is kept")
            records[record.id] = record
    results.records, results.plan = list(records.values()), list(plan)
    results.claims = joined_claims((), claims)
    return results


def _documents(path: Path, results: Results) -> Iterator[dict[str, Any]]:
    return (document for _, document in _numbered(path, results))


def _numbered(path: Path, results: Results) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a file with their numbers; a torn last line is left out, and noted in ``results``."""
    try:
        for number, line in _raw_lines(path):
            if line.endswith(b"\n") or _is_whole(line):
                yield number, parse_line(line, path, number)
            else:
                results.torn = True
                results.warnings.append(f"{path}:{number}: the last line is torn (a killed run) and left out")
    except BadFile as error:
        raise UserError(
            f"cannot read results from {path}: {error.why}. Name a results.jsonl or its folder"
        ) from error


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file as they are, counted from 1; raises BadFile for one that is too large."""
    read = 0
    with opened(path, FILE_LIMIT) as file:
        for number in itertools.count(1):
            line = file.readline(LINE_LIMIT + 1)
            read += len(line)
            if len(line) > LINE_LIMIT or read > FILE_LIMIT:
                raise BadFile(path, f"line {number} is too long: {LINE_LIMIT} bytes are the most")
            if not line:
                return
            yield number, line


def parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """A line of a results file, the first of which is number 1; raises UserError naming ``path`` and it."""
    try:
        document: dict[str, Any] = parse_json(line)
    except Malformed as error:
        raise UserError(
            f"{path}:{number}: {error if line.strip() else 'not JSON: the line is empty'}"
        ) from error
    refusal = schema_refusal(document)
    if refusal is None and number == 1 and document["type"] != "run":
        refusal = "a results file begins with a run line"
    if refusal:
        raise UserError(f"{path}:{number}: {refusal}")
    return document
