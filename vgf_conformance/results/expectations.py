"""Known failures: TOML tables that say which failure is foreseen where, and why.

Each ``[[expectation]]`` of ``golden/expectations/*.toml`` describes failures of one
suite file's cases. A verdict that the tables do not foresee is unexpected, and so is a
pass where they foresee a failure, so that the tables can only say what is true.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import glob
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from vgf_conformance import files
from vgf_conformance.results.record import Record
from vgf_conformance.untrusted import read_text, read_toml
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

REVIEW = "REVIEW: "


class CaseId(NamedTuple):
    """What an expectation is looked up by; a plain tuple of the six strings will do."""

    file: str
    case: str
    sample: str
    profile: str
    scheme: str
    target: str

    @classmethod
    def of(cls, record: Record) -> CaseId:
        """The id of a record."""
        return cls(
            record.suite_file, record.case, record.sample, record.profile, record.scheme, record.target
        )

    def __str__(self) -> str:
        return f"{self.file}::{self.case}[{'-'.join(self[2:])}]"


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One foreseen failure. ``file`` to ``driver`` are fnmatchcase globs; ``source`` is where it stands.

    ``driver`` is held against the record's: what is known of one driver says nothing about another.
    """

    file: str
    case: str
    sample: str = "*"
    profile: str = "*"
    scheme: str = "*"
    target: str = "*"
    driver: str = "*"
    verdict: Verdict
    stage: Stage
    finding: Finding | None = None
    reason: str
    evidence: str
    link: str = ""
    expires: datetime.date | None = None
    versions: dict[str, str]
    source: str = field(default="", compare=False)

    @property
    def globs(self) -> CaseId:
        """The six globs, in the order of a case id."""
        return CaseId(self.file, self.case, self.sample, self.profile, self.scheme, self.target)

    def matches(self, case: Iterable[str]) -> bool:
        """Whether all six globs match."""
        return all(map(fnmatchcase, case, self.globs))

    def about(self, record: Record) -> bool:
        """Whether it holds for a record: its id and its driver."""
        return self.matches(CaseId.of(record)) and fnmatchcase(record.driver, self.driver)

    def expired(self, today: datetime.date) -> bool:
        """Whether ``today`` is past its last day."""
        return self.expires is not None and today > self.expires

    def misfit(self, record: Record) -> str:
        """Why a record that the globs match is not the failure foreseen; empty where it is."""
        foreseen = f"expected {self.verdict.value} at {self.stage.value}"
        if record.verdict is Verdict.PASS:
            return f"{foreseen}, but it passes: remove the entry ({self.source})"
        if (record.verdict, record.stage) != (self.verdict, self.stage):
            seen = f"{record.verdict.value} at {record.stage.value if record.stage else 'no stage'}"
            return f"{foreseen}, but it is {seen} ({self.source})"
        if self.finding and record.finding is not self.finding:
            seen = record.finding.value if record.finding else "none"
            return f"{foreseen} with finding {self.finding.value}, but the finding is {seen} ({self.source})"
        return ""


@dataclass
class Expectations:
    """The expectations of a folder, as they hold on the day ``today``."""

    entries: list[Expectation] = field(default_factory=list)
    today: datetime.date = field(default_factory=datetime.date.today)

    def find(
        self, file: str, case: str, sample: str, profile: str, scheme: str, target: str
    ) -> Expectation | None:
        """The first entry for an id, on whatever driver; an expired one counts as none.

        Raises UserError, naming both, where two entries for the same drivers match.
        """
        wanted = CaseId(file, case, sample, profile, scheme, target)
        matching = self._holding(entry for entry in self.entries if entry.matches(wanted))
        return _only([entry for entry in matching if entry.driver == matching[0].driver], wanted)

    def apply(self, record: Record) -> Record:
        """The record with ``expected``, ``unexpected`` and ``expectation_note`` set.

        Raises UserError, naming both, where two entries match.
        """
        matching = [entry for entry in self.entries if entry.about(record)]
        entry = _only(self._holding(matching), CaseId.of(record))
        if entry is not None:
            note = entry.misfit(record)
            return dataclasses.replace(
                record,
                expected=None if note else entry.reason,
                unexpected=bool(note),
                expectation_note=note,
            )
        expired = next(iter(matching), None)
        return dataclasses.replace(
            record,
            expected=None,
            unexpected=record.verdict is not Verdict.PASS,
            expectation_note=(
                f"the expectation expired on {expired.expires} ({expired.source}): {expired.reason}"
                if expired
                else ""
            ),
        )

    def stale(
        self, collected: Iterable[tuple[str, ...]], complete_files: Collection[str]
    ) -> list[Expectation]:
        """The entries that match no collected id, of the files that were collected completely.

        An entry whose ``file`` is a pattern is never called stale: other files may match it.
        """
        ids_of = _grouped(collected, lambda case: case[0])
        return [
            entry
            for entry in self.entries
            if entry.file in complete_files and not any(map(entry.matches, ids_of.get(entry.file, [])))
        ]

    def _holding(self, entries: Iterable[Expectation]) -> list[Expectation]:
        return [entry for entry in entries if not entry.expired(self.today)]


def _only(entries: list[Expectation], wanted: CaseId) -> Expectation | None:
    if len(entries) > 1:
        raise UserError(
            f"two expectations match {wanted}: {entries[0].source} and {entries[1].source}; "
            "narrow or remove one"
        )
    return entries[0] if entries else None


def load_expectations(folder: Path) -> Expectations:
    """Read ``folder``'s ``*.toml``; a missing folder holds none.

    Raises UserError, naming file and entry, for one that is malformed.
    """
    return Expectations([entry for path in sorted(folder.glob("*.toml")) for entry in _read(path)])


def update(folder: Path, records: Iterable[Record], versions: Mapping[str, str]) -> list[Path]:
    """Make the expectations of ``folder`` foresee ``records``; returns the files that changed.

    A failure not foreseen gets an entry whose reason begins with ``REVIEW:``, for a person
    to complete; failures of one kind share as few entries as is possible without covering
    any other record, and are for the driver that was seen where the failure is at ``run``. An entry
    that foresees something that is not so is narrowed to what is, or removed. Entries that match none of
    ``records`` stay. Raises UserError as ``load_expectations`` does, and where two entries match one record.
    """
    records = sorted(records, key=CaseId.of)
    expectations = load_expectations(folder)
    universe = _grouped(map(CaseId.of, records), lambda case: case[:2])
    kept: list[Expectation] = []
    unforeseen = [
        record
        for record in map(expectations.apply, records)
        if record.unexpected and record.verdict is not Verdict.PASS
    ]
    for entry in expectations.entries:
        matched = [record for record in records if entry.about(record)]
        fitting = [record for record in matched if not entry.misfit(record)]
        if matched and entry.expired(expectations.today):
            continue
        if len(fitting) == len(matched):
            kept.append(entry)
        else:
            kept += _covering(fitting, universe, functools.partial(_narrowed, entry))
    for group in _grouped(unforeseen, _kind).values():
        kept += _covering(group, universe, functools.partial(_drafted, versions))
    return _write(folder, kept)


def _read(path: Path) -> list[Expectation]:
    document = read_toml(path)
    tables = document.pop("expectation", [])
    if document or not isinstance(tables, list):
        raise UserError(f"{path}: only [[expectation]] tables belong here, not {', '.join(document)}")
    if not all(isinstance(table, dict) for table in tables):
        raise UserError(f"{path}: expectation has to be an array of tables, [[expectation]]")
    return [_entry(table, f"{path.name}, entry {number}", path) for number, table in enumerate(tables, 1)]


_FIELDS = {item.name: item for item in dataclasses.fields(Expectation) if item.name != "source"}
_REQUIRED = [name for name, item in _FIELDS.items() if item.default is dataclasses.MISSING]
_ENUMS: dict[str, type[Verdict] | type[Stage] | type[Finding]] = {
    "verdict": Verdict,
    "stage": Stage,
    "finding": Finding,
}


def _entry(table: dict[str, Any], source: str, path: Path) -> Expectation:
    def refuse(what: str) -> UserError:
        return UserError(f"{path.parent / source} ({table.get('case', 'no case')}): {what}")

    missing = [name for name in _REQUIRED if table.get(name) in (None, "", {})]
    if missing:
        raise refuse(f"{', '.join(missing)} must be given")
    unknown = sorted(table.keys() - _FIELDS.keys())
    if unknown:
        raise refuse(f"unknown field {', '.join(unknown)}: choose from {', '.join(_FIELDS)}")
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "versions":
            fits = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
            wanted = "a table of package = 'version'"
        elif name == "expires":
            fits, wanted = type(value) is datetime.date, "a date such as 2026-12-31"
        elif name in _ENUMS:
            choices = [item.value for item in _ENUMS[name] if item is not Verdict.PASS]
            fits, wanted = value in choices, f"one of {', '.join(choices)}"
        else:
            fits, wanted = isinstance(value, str) and bool(value.strip()), "a text that is not empty"
        if not fits:
            raise refuse(f"{name} must be {wanted}, not {value!r}")
        values[name] = _ENUMS[name](value) if name in _ENUMS else value
    return Expectation(**values, source=source)


def _grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


_NUMBERS = re.compile(r"\[[\d\s,]*\]|0x[0-9a-fA-F]+|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


def _kind(record: Record) -> tuple[object, ...]:
    """What records must have in common to share an entry; numbers in the message do not count."""
    message = _NUMBERS.sub("#", _first_line(record.message))
    driver = _driver_glob(record)
    return (record.suite_file, record.case, record.verdict, record.stage, record.finding, message, driver)


def _driver_glob(record: Record) -> str:
    """The drivers that a failure is foreseen on: what happens before ``run`` is the same on all."""
    return glob.escape(record.driver) if record.driver and record.stage is Stage.RUN else "*"


def _covering(
    records: list[Record],
    universe: dict[tuple[str, ...], list[CaseId]],
    make: Callable[[list[Record]], Expectation],
) -> Iterator[Expectation]:
    """Entries that match each of ``records`` once and nothing else of ``universe``, greedily few.

    ``make`` gives the entry for the records that one pattern covers; its globs are replaced.
    """
    waiting = {CaseId.of(record): record for record in records}
    while waiting:
        best = max(
            _patterns(waiting, universe),
            key=lambda pattern: (len(pattern.covered), -pattern.wildcards, pattern.globs),
        )
        covered = [waiting.pop(case) for case in best.covered]
        yield dataclasses.replace(make(covered), **best.globs._asdict(), source="")


class _Pattern(NamedTuple):
    globs: CaseId
    covered: list[CaseId]
    wildcards: int


def _patterns(
    waiting: Mapping[CaseId, Record], universe: dict[tuple[str, ...], list[CaseId]]
) -> Iterator[_Pattern]:
    """Every pattern of literals and ``*`` that covers waiting ids and no other id."""
    for (file, case), ids in _grouped(waiting, lambda case: case[:2]).items():
        for kept in itertools.product((True, False), repeat=4):
            literals = functools.partial(_literals, kept)
            everything = _grouped(universe[file, case], literals)
            for values, covered in _grouped(ids, literals).items():
                if len(everything[values]) == len(covered):
                    globs = ["*" if value is None else glob.escape(value) for value in (file, case, *values)]
                    yield _Pattern(CaseId(*globs), covered, values.count(None))


def _literals(kept: tuple[bool, ...], case: CaseId) -> tuple[str | None, ...]:
    return tuple(value if keep else None for value, keep in zip(case[2:], kept, strict=True))


def _narrowed(entry: Expectation, records: list[Record]) -> Expectation:
    return entry


def _drafted(versions: Mapping[str, str], records: list[Record]) -> Expectation:
    """An entry for records of one kind; its globs are those of the first record."""
    first = records[0]
    if first.stage is None:
        raise UserError(f"{first.id}: {first.verdict.value} without a stage cannot be expected")
    message = _first_line(first.message)
    return Expectation(
        file=first.suite_file,
        case=first.case,
        driver=_driver_glob(first),
        verdict=first.verdict,
        stage=first.stage,
        finding=first.finding,
        reason=REVIEW + (message or f"{first.verdict.value} at {first.stage.value}"),
        evidence=f"{len(records)} seen, first {CaseId.of(first)}: {message}\n{first.repro}".rstrip(": \n"),
        versions=dict(versions),
    )


def _first_line(text: str, limit: int = 300) -> str:
    return text.strip().partition("\n")[0].strip()[:limit]


def _write(folder: Path, entries: list[Expectation]) -> list[Path]:
    """Write the entries, each to its suite file's TOML; returns the files that changed."""
    folder.mkdir(parents=True, exist_ok=True)
    by_path = _grouped(entries, lambda entry: folder / _file_name(entry))
    changed = []
    for path in sorted({*folder.glob("*.toml"), *by_path}):
        old = read_text(path) if path.exists() else None
        if path not in by_path:
            path.unlink()
        else:
            tables = map(_table, sorted(by_path[path], key=lambda entry: (entry.globs, entry.driver)))
            new = _HEADER + tomli_w.dumps({"expectation": list(tables)})
            if new == old:
                continue
            files.write(path, new)
        changed.append(path)
    return changed


def _file_name(entry: Expectation) -> str:
    stem = re.sub(r"[^\w.-]+", "_", Path(entry.file).stem).strip("_")
    return f"{stem or 'expectations'}.toml"


_HEADER = """\
# Known failures; every entry says why. Sorted, and rewritten when expectations are
# updated: keep what is worth saying in reason, evidence and link, not in comments.

"""


def _table(entry: Expectation) -> dict[str, Any]:
    values = {name: getattr(entry, name) for name in _FIELDS}
    return {
        name: getattr(value, "value", value)
        for name, value in values.items()
        if value != _FIELDS[name].default
    }
