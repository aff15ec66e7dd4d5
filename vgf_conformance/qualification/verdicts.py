"""Are the verdicts of a shard true? Each record against its case, and once more from the raw outputs."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from vgf_conformance.packs.manifest import PackedCase
from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.run import run_case
from vgf_conformance.qualification.outputs import HandedIn, read_outputs, read_visible
from vgf_conformance.qualification.submitted import Run, Submitted
from vgf_conformance.qualification.verification import Verification
from vgf_conformance.report.tally import outcome
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Array
from vgf_conformance.targets.capabilities import Platform
from vgf_conformance.targets.capable import CapableTarget
from vgf_conformance.targets.process import recorded_driver
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: What a run finds out, and the verifier looks at by itself or does not believe. All else that a record says
#: follows from pack, target and driver.
_FOUND_OUT = (
    *("verdict", "stage", "finding", "message", "log", "expected", "unexpected", "expectation_note"),
    *("comparisons", "outputs", "visible", "first_wrong", "worker_bytes", "notes", "seconds", "written"),
)

_Ending = tuple[Verdict, Finding | None]

#: How a case can end, with the least number of its calls whose outputs it then has and the most: None is all,
#: and a negative number so many fewer.
_ENDINGS: dict[_Ending, tuple[int | None, int | None]] = {
    (Verdict.PASS, None): (None, None),
    (Verdict.PASS, Finding.NOISY): (None, None),
    (Verdict.FAIL, Finding.WRONG): (None, None),
    (Verdict.FAIL, Finding.UNWRITTEN): (1, None),
    (Verdict.FAIL, Finding.UNREPEATABLE): (1, None),
    (Verdict.FAIL, Finding.RAISED): (0, -1),
    (Verdict.FAIL, Finding.DEPENDENT): (0, None),
    (Verdict.UNSUPPORTED, Finding.CAPABILITY): (0, -1),
    (Verdict.CRASH, Finding.CRASHED): (0, -1),
    (Verdict.CRASH, Finding.DEPENDENT): (0, -1),
    (Verdict.TIMEOUT, Finding.HUNG): (0, -1),
    (Verdict.TIMEOUT, Finding.DEPENDENT): (0, -1),
    (Verdict.ERROR, Finding.RAISED): (0, None),
}

#: What shows only while a driver runs, and comes before what a later call does.
_SEEN_RUNNING = (Finding.UNWRITTEN, Finding.UNREPEATABLE, Finding.DEPENDENT)


def untruths(submitted: Submitted, pack: Pack, found: Verification) -> Iterator[str]:
    """What is wrong with the records of both runs; notes the verdicts in ``found``.

    Only of a shard whose runs, statement and capability report can be read: of another nothing is known.
    """
    said, platform = submitted.statement, submitted.platform
    if said is None or platform is None or not submitted.whole:
        return
    cases = [case for case in pack.manifest.cases if submitted.shard.holds(case.id)]
    for run in submitted.runs:
        yield from _listed(run, [case.id_on(said.target) for case in cases])
    first, second = ({record.id: record for record in run.records} for run in submitted.runs)
    for case in cases:
        name = case.id_on(said.target)
        if name in first and name in second:
            pair = _Pair(submitted, platform, said.target, case, first[name], second[name])
            yield from pair.reasons(pack)
            found.verdicts[case.id] = pair.verdict
            if pair.lacking:
                found.lacking.append(case.id)


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


@dataclasses.dataclass(frozen=True)
class _Pair:
    """The records of one case in both runs on ``target``."""

    submitted: Submitted
    platform: Platform
    target: str
    case: PackedCase
    first: Record
    second: Record

    @property
    def verdict(self) -> Verdict:
        """The worse of the two: what passes once only does not pass."""
        return self.first.verdict if self.first.verdict is not Verdict.PASS else self.second.verdict

    @property
    def lacking(self) -> bool:
        """Whether both say that the device does not support the case."""
        wanted = (Verdict.UNSUPPORTED, Finding.CAPABILITY)
        return all((record.verdict, record.finding) == wanted for record in (self.first, self.second))

    def reasons(self, pack: Pack) -> Iterator[str]:
        """What is wrong with the two."""
        first, second = self.first, self.second
        if (first.outputs, first.visible) != (second.outputs, second.visible):
            yield f"{first.id}: the two runs gave other outputs"
        if (first.verdict, first.finding) != (second.verdict, second.finding):
            yield f"{first.id}: {outcome(first)} in the first run, {outcome(second)} in the second"
        impossible = list(dict.fromkeys(self._impossible()))
        yield from impossible
        try:
            outputs = read_outputs(self.submitted.place, self.case, first)
            visible = read_visible(self.submitted.place, pack, self.case, first)
        except ValueError as error:
            yield f"{first.id}: {error}"
            return
        again = self._again(pack, outputs, visible)
        yield from dict.fromkeys(self._facts(again))
        if not impossible:
            yield from self._judged(again)

    def _impossible(self) -> Iterator[str]:
        """Endings that no run has, and outputs of more or fewer calls than such an ending leaves."""
        for record in (self.first, self.second):
            ending = record.verdict, record.finding
            stage = None if record.verdict is Verdict.PASS else Stage.RUN
            if ending not in _ENDINGS or record.stage is not stage:
                yield f"{record.id}: no case ends as {_ending(record)}"
                continue
            calls = len(self.case.calls)
            least, most = (_calls(limit, calls) for limit in _ENDINGS[ending])
            if not least <= len(record.outputs) <= most:
                wanted = least if least == most else f"{least} to {most}"
                yield (
                    f"{record.id}: {outcome(record)}, with outputs of {len(record.outputs)} of {calls} "
                    f"calls: such a case has those of {wanted}"
                )

    def _again(
        self, pack: Pack, outputs: Sequence[Sequence[Array]], visible: Mapping[int, Sequence[Array]]
    ) -> Record:
        """The record of a target that gives these outputs, on the device of the capability report."""
        driver = recorded_driver(self.target, self.platform)
        calls = len(self.case.calls)
        handed_in = HandedIn(self.target, driver, outputs, calls=calls, visible=visible)
        return run_case(pack, self.case, CapableTarget(handed_in, self.platform))

    def _facts(self, again: Record) -> Iterator[str]:
        for record in (self.first, self.second):
            for item in dataclasses.fields(Record):
                mine, right = getattr(record, item.name), getattr(again, item.name)
                if item.name not in _FOUND_OUT and mine != right:
                    where = "should be" if item.name in ("target", "driver") else "in the pack"
                    yield f"{record.id}: its {item.name} is {mine!r}, {where} {right!r}"

    def _judged(self, again: Record) -> Iterator[str]:
        """Where the verdict is another than the one that outputs and capability report make."""
        first = self.first
        if self.lacking:
            if again.finding is not Finding.CAPABILITY:
                yield (
                    f"{self.case.id}: unsupported in the results, but the device can by its capability report"
                )
            for message in {first.message, self.second.message} - {again.message}:
                if again.finding is Finding.CAPABILITY:
                    yield f"{first.id}: says {message!r}, the capability report {again.message!r}"
        elif again.finding is Finding.CAPABILITY and first.finding not in _SEEN_RUNNING:
            yield (
                f"{first.id}: {outcome(first)} in the results, but by the capability report "
                f"{outcome(again)}: {again.message}"
            )
        # What ended without all outputs, or was seen as it ran, is not seen again.
        elif first.finding in (None, Finding.WRONG, Finding.NOISY) and _kind(first) != _kind(again):
            yield (
                f"{first.id}: {first.verdict.value} in the results, but by its outputs {outcome(again)}"
                f"{': ' if again.message else ''}{again.message}"
            )


def _calls(limit: int | None, calls: int) -> int:
    if limit is None:
        return calls
    return calls + limit if limit < 0 else limit


def _kind(record: Record) -> tuple[Verdict, Stage | None, Finding | None]:
    return record.verdict, record.stage, record.finding


def _ending(record: Record) -> str:
    return ", ".join(
        f"{what} {value.value if value else 'none'}"
        for what, value in (("verdict", record.verdict), ("stage", record.stage), ("finding", record.finding))
    )
