"""Known failures: TOML tables that say which failure is foreseen where, and why.

Each ``[[expectation]]`` of ``golden/expectations/*.toml`` describes failures of one
suite file's cases. A verdict that the tables do not foresee is unexpected, and so is a
pass where they foresee a failure, so that the tables can only say what is true. ``worst`` bounds
the failure: one that is clearly worse (``results.severity``) is unexpected too.
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
from vgf_conformance.results.severity import Severity, severity_of, worst
from vgf_conformance.untrusted import Malformed, parse_toml, read_text, read_toml
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

REVIEW = "REVIEW: "


class CaseId(NamedTuple):
    """What a known failure is looked up by; a plain tuple of the six strings will do."""

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
    """One known failure. ``file`` to ``driver`` are fnmatchcase globs; ``source`` is where it stands.

    ``driver`` is held against the record's: what is known of one driver says nothing about another.
    ``worst`` bounds how wrong each of the failures may be.
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
    worst: Severity | None = None
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
        """Why a record that the globs match is not the known failure; empty where it is."""
        return self.other(record) or self.excess(record)

    def other(self, record: Record) -> str:
        """Why a record is another failure than the known one, or none at all; else empty."""
        foreseen = f"expected {self.verdict.value} at {self.stage.value}"
        if record.verdict is Verdict.PASS:
            return f"{foreseen}, but it passes: remove the entry ({self.source})"
        if (record.verdict, record.stage) != (self.verdict, self.stage):
            seen = f"{record.verdict.value} at {record.stage.value if record.stage else 'no stage'}"
            return f"{foreseen}, but it is {seen} ({self.source})"
        if self.finding and record.finding is not self.finding:
            seen = record.finding.value if record.finding else "none"
            return f"{foreseen} with finding {self.finding.value}, but the finding is {seen} ({self.source})"
        if self.worst and severity_of(record) is None:
            return f"{foreseen} and within a bound, but the failure has no numbers ({self.source})"
        return ""

    def excess(self, record: Record) -> str:
        """By what a record is worse than the known failure; empty where it is not."""
        seen = severity_of(record) if self.worst else None
        worse = seen.worse_than(self.worst) if seen and self.worst else ""
        return worse and f"worse than the known failure ({self.source}): {worse}"


@dataclass
class Expectations:
    """The known failures of a folder, as they hold on the day ``today``."""

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
                f"the known failure expired on {expired.expires} ({expired.source}): {expired.reason}"
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

    def better(self, records: Iterable[Record], whole: Collection[str]) -> list[str]:
        """Which entries are clearly less wrong than they say, by all records of theirs, with both numbers.

        Only entries whose source is in ``whole`` are looked at: those of whose cases none was left out.
        """
        found = []
        for entry, seen in self._seen(records):
            better = seen.better_than(entry.worst) if entry.worst and entry.source in whole else ""
            if better:
                found.append(f"{entry.source} ({entry.case}): {better}")
        return found

    def unbounded(self, records: Iterable[Record]) -> list[str]:
        """The sources of the entries that have no bound though a record of theirs has numbers."""
        return [entry.source for entry, _ in self._seen(records) if entry.worst is None]

    def _seen(self, records: Iterable[Record]) -> Iterator[tuple[Expectation, Severity]]:
        """Each entry with the worst of the failures that it covers, where they have numbers."""
        ids_of = _grouped(
            (record for record in records if record.verdict is not Verdict.PASS), lambda item: item.suite_file
        )
        for entry in self._holding(self.entries):
            chosen = [file for file in ids_of if fnmatchcase(file, entry.file)]
            about = [record for file in chosen for record in ids_of[file] if entry.about(record)]
            seen = _worst_of(record for record in about if not entry.other(record))
            if seen:
                yield entry, seen

    def whole(self, collected: Iterable[tuple[str, ...]], left_out: Iterable[tuple[str, ...]]) -> list[str]:
        """The sources of the entries that match a collected id and none that was left out."""
        collected_of, left_of = (_grouped(ids, lambda case: case[0]) for ids in (collected, left_out))
        return [
            entry.source
            for entry in self.entries
            if any(map(entry.matches, collected_of.get(entry.file, [])))
            and not any(map(entry.matches, left_of.get(entry.file, [])))
        ]

    def _holding(self, entries: Iterable[Expectation]) -> list[Expectation]:
        return [entry for entry in entries if not entry.expired(self.today)]


def _only(entries: list[Expectation], wanted: CaseId) -> Expectation | None:
    if len(entries) > 1:
        raise UserError(
            f"two known failures match {wanted}: {entries[0].source} and {entries[1].source}; "
            "narrow or remove one"
        )
    return entries[0] if entries else None


def load_expectations(folder: Path) -> Expectations:
    """Read the known failures of ``folder``'s ``*.toml``; a missing folder holds none.

    Raises UserError, naming file and entry, for one that is malformed.
    """
    return Expectations([entry for path in sorted(folder.glob("*.toml")) for entry in _read(path)])


def update(folder: Path, records: Iterable[Record], versions: Mapping[str, str]) -> list[Path]:
    """Make the known failures of ``folder`` foresee ``records``; returns the files that changed.

    A failure not foreseen gets an entry whose reason begins with ``REVIEW:``, for a person
    to complete; failures of one kind share as few entries as is possible without covering
    any other record, and are for the driver that was seen where the failure is at ``run``. An entry
    that foresees something that is not so is narrowed to what is, or removed. One without a bound gets
    what was seen; a bound that was exceeded is widened, for review. Bounds are never tightened: a run may
    lack the worst case. Entries that match none of ``records`` stay. What does not change stays as it is
    written. Raises UserError as ``load_expectations`` does, and where two entries match one record.
    """
    records = sorted(records, key=CaseId.of)
    expectations = load_expectations(folder)
    universe = _grouped(map(CaseId.of, records), lambda case: case[:2])
    applied = [(record, expectations.apply(record)) for record in records]
    kept: list[Expectation] = []
    explained: set[str] = set()
    for entry in expectations.entries:
        matched = [record for record in records if entry.about(record)]
        if matched and entry.expired(expectations.today):
            continue
        fitting = [record for record in matched if not entry.other(record)]
        explained.update(record.id for record in fitting)
        # An entry with a bound is for failures that have numbers.
        groups = _grouped(fitting, lambda record: severity_of(record) is None)
        if len(fitting) == len(matched) and len(groups) <= 1:
            kept.append(_bounded(entry, fitting))
        else:
            for group in groups.values():
                kept += _covering(group, universe, functools.partial(_bounded, entry))
    unforeseen = [
        record
        for record, judged in applied
        if judged.unexpected and record.verdict is not Verdict.PASS and record.id not in explained
    ]
    for group in _grouped(unforeseen, _kind).values():
        kept += _covering(group, universe, functools.partial(_drafted, versions))
    return _write(folder, expectations.entries, kept)


def _bounded(entry: Expectation, records: list[Record]) -> Expectation:
    """The entry with a bound that holds for the records that it covers."""
    seen = _worst_of(records)
    if seen is None:
        return entry
    if entry.worst is None:
        return dataclasses.replace(entry, worst=seen.rounded())
    if not any(map(entry.excess, records)):
        return entry
    widened = worst([entry.worst, seen])
    reason = entry.reason if entry.reason.startswith(REVIEW) else f"{REVIEW}worse than known: {entry.reason}"
    return dataclasses.replace(entry, worst=widened and widened.rounded(), reason=reason)


def _worst_of(records: Iterable[Record]) -> Severity | None:
    return worst(filter(None, map(severity_of, records)))


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
        elif name == "worst":
            values[name] = _bound(value, refuse)
            continue
        elif name in _ENUMS:
            choices = [item.value for item in _ENUMS[name] if item is not Verdict.PASS]
            fits, wanted = value in choices, f"one of {', '.join(choices)}"
        else:
            fits, wanted = isinstance(value, str) and bool(value.strip()), "a text that is not empty"
        if not fits:
            raise refuse(f"{name} must be {wanted}, not {value!r}")
        values[name] = _ENUMS[name](value) if name in _ENUMS else value
    if "worst" in values and values["verdict"] is not Verdict.FAIL:
        raise refuse(f"worst is for the verdict fail, not {values['verdict'].value}, which has no numbers")
    return Expectation(**values, source=source)


def _bound(value: Any, refuse: Callable[[str], UserError]) -> Severity:
    try:
        return Severity.parse(value)
    except ValueError as error:
        raise refuse(f"worst {error}") from error


def _grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


_NUMBERS = re.compile(r"\[[\d\s,]*\]|0x[0-9a-fA-F]+|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


def _kind(record: Record) -> tuple[object, ...]:
    """What records must have in common to share an entry; numbers in the message do not count."""
    message = _NUMBERS.sub("#", _first_line(record.message))
    driver, measured = _driver_glob(record), severity_of(record) is not None
    what = record.verdict, record.stage, record.finding, message
    return (record.suite_file, record.case, *what, driver, measured)


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
        yield dataclasses.replace(make(covered), **best.globs._asdict())


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


def _drafted(versions: Mapping[str, str], records: list[Record]) -> Expectation:
    """An entry for records of one kind; its globs are those of the first record."""
    first = records[0]
    if first.stage is None:
        raise UserError(f"{first.id}: {first.verdict.value} without a stage cannot be expected")
    message = _first_line(first.message)
    seen = _worst_of(records)
    return Expectation(
        file=first.suite_file,
        case=first.case,
        driver=_driver_glob(first),
        verdict=first.verdict,
        stage=first.stage,
        finding=first.finding,
        worst=seen and seen.rounded(),
        reason=REVIEW + (message or f"{first.verdict.value} at {first.stage.value}"),
        evidence=f"{len(records)} seen, first {CaseId.of(first)}: {message}\n{first.repro}".rstrip(": \n"),
        versions=dict(versions),
    )


def _first_line(text: str, limit: int = 300) -> str:
    return text.strip().partition("\n")[0].strip()[:limit]


def _write(folder: Path, before: Iterable[Expectation], entries: list[Expectation]) -> list[Path]:
    """Write the entries, each to the file that it stands in, new ones to their suite file's.

    Returns the files that changed. Entries that are as they were in ``before`` keep their text and place.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = _grouped(before, lambda entry: folder / _file_name(entry))
    by_path = _grouped(entries, lambda entry: folder / _file_name(entry))
    changed = []
    for path in sorted({*known, *by_path}):
        if by_path.get(path) == known.get(path):
            continue
        changed.append(path)
        if path not in by_path:
            path.unlink()
            continue
        written = _Written.of(path, known.get(path, []))
        old = [entry for entry in by_path[path] if entry.source]
        new = sorted(
            (entry for entry in by_path[path] if not entry.source),
            key=lambda entry: (entry.globs, entry.driver),
        )
        texts = [written.head, *map(written.text, [*old, *new])]
        files.write(path, "\n".join(filter(None, texts)))
    return changed


def _file_name(entry: Expectation) -> str:
    if entry.source:
        return entry.source.rpartition(", entry ")[0]
    stem = re.sub(r"[^\w.-]+", "_", Path(entry.file).stem).strip("_")
    return f"{stem or 'expectations'}.toml"


_HEADER = "# Known failures of the stack: see README. Each entry was seen by running the case.\n"
_START = re.compile(r"^(?:#[^\n]*\n)*\[\[expectation\]\]", re.MULTILINE)
_WORST = re.compile(r"^worst\s*=[^\n]*\n", re.MULTILINE)
_REASON = re.compile(r"^(?=reason\s*=)", re.MULTILINE)


@dataclass(frozen=True)
class _Written:
    """A file of known failures as it is written: what comes first, and the text of each entry by source."""

    head: str
    texts: dict[str, tuple[Expectation, str]]

    @classmethod
    def of(cls, path: Path, entries: list[Expectation]) -> _Written:
        """Cut a file into its entries; without their texts where it is not written as such tables."""
        if not entries:
            return cls(_HEADER, {})
        text = read_text(path)
        starts = [match.start() for match in _START.finditer(text)]
        texts = [f"{text[start:end].rstrip()}\n" for start, end in itertools.pairwise([*starts, len(text)])]
        if len(texts) != len(entries) or not all(map(_says, texts, entries)):
            return cls(_HEADER, {})
        pairs = zip(entries, texts, strict=True)
        head = text[: starts[0]].strip()
        return cls(f"{head}\n" if head else "", {entry.source: (entry, cut) for entry, cut in pairs})

    def text(self, entry: Expectation) -> str:
        """The text of an entry: as it was, with another bound or reason, or new."""
        before, text = self.texts.get(entry.source, (None, ""))
        if before == entry:
            return text
        if before and entry.worst and dataclasses.replace(before, worst=entry.worst) == entry:
            bound = _line("worst", entry.worst.measures())
            edited = _REASON.sub(lambda _: bound, _WORST.sub("", text), count=1)
            if _says(edited, entry):
                return edited
        return "[[expectation]]\n" + "".join(_line(name, value) for name, value in _table(entry).items())


def _says(text: str, entry: Expectation) -> bool:
    """Whether a text is that of the entry alone."""
    try:
        tables = parse_toml(text.encode()).get("expectation")
        return isinstance(tables, list) and [_entry(table, "", Path()) for table in tables] == [entry]
    except (Malformed, UserError):
        return False


def _line(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        return tomli_w.dumps({name: value})
    return f"{name} = {{ {', '.join(tomli_w.dumps({key: item}).strip() for key, item in value.items())} }}\n"


def _table(entry: Expectation) -> dict[str, Any]:
    values = {name: getattr(entry, name) for name in _FIELDS} | {
        "worst": entry.worst.measures() if entry.worst else None
    }
    return {
        name: getattr(value, "value", value)
        for name, value in values.items()
        if value != _FIELDS[name].default
    }
