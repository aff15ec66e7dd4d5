"""What results files hold, and how those of shards are joined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vgf_conformance.results.baselines import Baseline
from vgf_conformance.results.claims import Claim
from vgf_conformance.results.record import NotRun, Record


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
