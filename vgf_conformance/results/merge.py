"""Results: joining those of shards, and comparing one run with an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from vgf_conformance.results.baselines import Baseline
from vgf_conformance.results.claims import Claim
from vgf_conformance.results.record import NotRun, Record
from vgf_conformance.vocabulary import Verdict


@dataclass
class Results:
    """What one or more results files hold.

    ``plan`` has the ids of all cases that the runs were to have, those of their other shards too, in their
    order; empty where no run says.
    ``claims`` are what the runs' backends claim, sorted, and empty where no run says. ``not_run`` are
    cases that could not be run, and have no record. ``warnings`` tells what had to be left out;
    ``torn`` that a file ends in the middle of a line. ``baselines`` are the headrooms on file that
    reports show beside those of the records.
    """

    runs: list[dict[str, Any]] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    torn: bool = False
    baselines: list[Baseline] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """One id that both runs have, as it was and as it is."""

    old: Record
    new: Record


@dataclass(frozen=True)
class DelegationChange:
    """The delegated nodes of one lowered program, as they were and as they are."""

    file: str
    case: str
    sample: str
    profile: str
    scheme: str
    old_nodes: int
    new_nodes: int


@dataclass
class RunComparison:
    """What changed from one run to the next; each list is sorted by id."""

    new_failures: list[Change] = field(default_factory=list)
    fixed: list[Change] = field(default_factory=list)
    changed_failures: list[Change] = field(default_factory=list)
    new_cases: list[Record] = field(default_factory=list)
    missing_cases: list[Record] = field(default_factory=list)
    gained_delegation: list[DelegationChange] = field(default_factory=list)
    lost_delegation: list[DelegationChange] = field(default_factory=list)

    @property
    def worse(self) -> bool:
        """Whether anything that passed, ran or was delegated no longer is."""
        return bool(self.new_failures or self.missing_cases or self.lost_delegation)


def merge(results: Iterable[Results]) -> Results:
    """Join the results of shards in the order given.

    An id that more than one of them holds is kept as the last one has it, with a warning; a claim is kept
    as the last one has it too, in silence: shards of one run make the same claims.
    """
    joined = Results()
    records: dict[str, Record] = {}
    not_run: dict[str, NotRun] = {}
    for part in results:
        joined.runs += part.runs
        joined.plan = joined_plan(joined.plan, part.plan)
        joined.claims = joined_claims(joined.claims, part.claims)
        joined.warnings += part.warnings
        joined.torn |= part.torn
        not_run.update({item.id: item for item in part.not_run})
        for record in part.records:
            earlier = records.get(record.id)
            if earlier is not None:
                joined.warnings.append(
                    f"{record.id} is in more than one of the merged results "
                    f"({earlier.verdict.value}, then {record.verdict.value}): the last one is kept"
                )
            records[record.id] = record
    joined.records = list(records.values())
    joined.not_run = [item for item in not_run.values() if item.id not in records]
    return joined


def joined_plan(earlier: Iterable[str], later: Iterable[str]) -> list[str]:
    """Both, each id once."""
    return list(dict.fromkeys([*earlier, *later]))


def joined_claims(earlier: Iterable[Claim], later: Iterable[Claim]) -> list[Claim]:
    """Both, sorted; what both claim as ``later`` has it."""
    by_computation = {claim.computation: claim for claims in (earlier, later) for claim in claims}
    return sorted(by_computation.values())


def compare_runs(old: Results, new: Results) -> RunComparison:
    """What changed from ``old`` to ``new``, by id and by lowered program."""
    before = {record.id: record for record in old.records}
    after = {record.id: record for record in new.records}
    shared = [Change(before[key], after[key]) for key in sorted(before.keys() & after.keys())]

    def select(wanted: Callable[[bool, bool], bool]) -> list[Change]:
        return [change for change in shared if wanted(_passed(change.old), _passed(change.new))]

    moved = _delegation_changes(old, new)
    return RunComparison(
        new_failures=select(lambda was, is_now: was and not is_now),
        fixed=select(lambda was, is_now: is_now and not was),
        changed_failures=[
            change
            for change in select(lambda was, is_now: not was and not is_now)
            if (change.old.verdict, change.old.stage) != (change.new.verdict, change.new.stage)
        ],
        new_cases=[after[key] for key in sorted(after.keys() - before.keys())],
        missing_cases=[before[key] for key in sorted(before.keys() - after.keys())],
        gained_delegation=[change for change in moved if change.new_nodes > change.old_nodes],
        lost_delegation=[change for change in moved if change.new_nodes < change.old_nodes],
    )


def _passed(record: Record) -> bool:
    return record.verdict is Verdict.PASS


def _delegation_changes(old: Results, new: Results) -> list[DelegationChange]:
    before, after = _delegated_nodes(old), _delegated_nodes(new)
    return [
        DelegationChange(*key, before[key], after[key])
        for key in sorted(before.keys() & after.keys())
        if before[key] != after[key]
    ]


def _delegated_nodes(results: Results) -> dict[tuple[str, str, str, str, str], int]:
    """Delegated nodes of each lowered program; those that never got so far are left out."""
    return {
        (record.suite_file, record.case, record.sample, record.profile, record.scheme): sum(
            delegate.nodes for delegate in record.delegates
        )
        for record in results.records
        if record.delegates or record.leftovers
    }
