"""What changed from one run to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import artifact_of, shards_of
from vgf_conformance.vocabulary import Verdict


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
    """What changed from one run to the next; each list is sorted by id.

    ``missing_cases`` were asked for again and have no record; ``not_asked_for`` counts the cases of the
    earlier run that the later one was not asked for.
    """

    new_failures: list[Change] = field(default_factory=list)
    fixed: list[Change] = field(default_factory=list)
    changed_failures: list[Change] = field(default_factory=list)
    new_cases: list[Record] = field(default_factory=list)
    missing_cases: list[Record] = field(default_factory=list)
    not_asked_for: int = 0
    gained_delegation: list[DelegationChange] = field(default_factory=list)
    lost_delegation: list[DelegationChange] = field(default_factory=list)

    @property
    def worse(self) -> bool:
        """Whether anything that passed, ran or was delegated no longer is."""
        return bool(self.new_failures or self.missing_cases or self.lost_delegation)


def compare_runs(old: Results, new: Results) -> RunComparison:
    """What changed from ``old`` to ``new``, by id and by lowered program."""
    before = {record.id: record for record in old.records}
    after = {record.id: record for record in new.records}
    shared = [Change(before[key], after[key]) for key in sorted(before.keys() & after.keys())]

    def select(wanted: Callable[[bool, bool], bool]) -> list[Change]:
        return [change for change in shared if wanted(_passed(change.old), _passed(change.new))]

    moved = _delegation_changes(old, new)
    gone = [before[key] for key in sorted(before.keys() - after.keys())]
    asked = _asked(old, new)
    missing = [record for record in gone if asked(record.id)]
    return RunComparison(
        new_failures=select(lambda was, is_now: was and not is_now),
        fixed=select(lambda was, is_now: is_now and not was),
        changed_failures=[
            change
            for change in select(lambda was, is_now: not was and not is_now)
            if (change.old.verdict, change.old.stage) != (change.new.verdict, change.new.stage)
        ],
        new_cases=[after[key] for key in sorted(after.keys() - before.keys())],
        missing_cases=missing,
        not_asked_for=len(gone) - len(missing),
        gained_delegation=[change for change in moved if change.new_nodes > change.old_nodes],
        lost_delegation=[change for change in moved if change.new_nodes < change.old_nodes],
    )


def _asked(old: Results, new: Results) -> Callable[[str], bool]:
    """Whether ``new`` was asked for a case of ``old``, by its id.

    Cases outside its plan were not, unless both runs selected alike: then they are gone from the suites.
    Cases of shards that it has not were not either. A run that does not say what it selected had everything.
    """
    shards, planned = shards_of(new), set(new.plan)
    alike = not planned or _selections(old) == _selections(new)

    def asked(identity: str) -> bool:
        in_shard = not shards or any(shard.holds(artifact_of(identity)) for shard in shards)
        return in_shard and (alike or identity in planned)

    return asked


def _selections(results: Results) -> list[dict[str, str]]:
    """The different selections of its runs, in their order."""
    # Workers' lines repeat their machine alone.
    found: list[dict[str, str]] = []
    for run in results.runs:
        selection = run.get("selection", {})
        if "worker" not in run and selection not in found:
            found.append(selection)
    return found


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
