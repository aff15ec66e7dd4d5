"""Claims against observations: how each claim of the backend stands on each target."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vgf_conformance.report.tally import explanation, grouped, outcome
from vgf_conformance.results.claims import Claim, Computation, observed
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import TARGETS, Verdict


class State(str, enum.Enum):
    """What became of a claim on a target; exactly one of these.

    ``KNOWN`` is a claim that fails as well, each time a known failure.
    """

    PASSING = "claimed and passing"
    KNOWN = "claimed and failing, known"
    FAILING = "claimed and failing"
    NOT_DELEGATED = "claimed and not delegated"
    NOT_COVERED = "not yet covered"

    @property
    def symbol(self) -> str:
        """One character for a cell."""
        return {"PASSING": "✓", "KNOWN": "◐", "FAILING": "✗", "NOT_DELEGATED": "○", "NOT_COVERED": "·"}[
            self.name
        ]


@dataclass(frozen=True)
class Standing:
    """A claim on a target: its state, from how many records, and why it is not ``passing``."""

    state: State
    records: int = 0
    why: str = ""


@dataclass(frozen=True)
class Unclaimed:
    """What passes on a delegate in all its records of a target, though no claim covers it."""

    operator: str
    kind: str
    records: Mapping[str, int]


@dataclass(frozen=True)
class Coverage:
    """Every claim of the results with its standing by target, and what works unclaimed."""

    claims: list[Claim]
    targets: list[str]
    standings: dict[Computation, dict[str, Standing]]
    unclaimed: list[Unclaimed]

    @classmethod
    def of(cls, results: Results) -> Coverage:
        """Hold what the runs claim against their records of operators."""
        records = [record for record in results.records if record.kind == "operator"]
        targets = [target for target in TARGETS if any(record.target == target for record in records)]
        seen: dict[tuple[Computation, str], list[Record]] = defaultdict(list)
        for record in records:
            for computation in _observed(record):
                seen[computation, record.target].append(record)
        standings = {
            claim.computation: {
                target: _standing(claim, seen.get((claim.computation, target), [])) for target in targets
            }
            for claim in results.claims
        }
        return cls(results.claims, targets, standings, _unclaimed(records, standings))

    def count(self, state: State, target: str) -> int:
        """How many claims stand so on a target."""
        return sum(by_target[target].state is state for by_target in self.standings.values())

    def pairs(self, target: str) -> tuple[int, int]:
        """Claimed (operator, profile) pairs that a record of the target observes, and all of them."""
        found = {
            computation[:2] for computation, by_target in self.standings.items() if by_target[target].records
        }
        return len(found), len({computation[:2] for computation in self.standings})

    @property
    def kinds(self) -> list[str]:
        """The kinds of claims in the order of a table's columns: FP before INT, each by how common."""
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for computation in self.standings:
            counts[computation.profile, computation.kind] += 1
        return [kind for _, kind in sorted(counts, key=lambda key: (key[0], -counts[key], key[1]))]

    def table(self) -> dict[str, dict[str, dict[str, Standing]]]:
        """Standings by operator, kind of claim, and target."""
        rows: dict[str, dict[str, dict[str, Standing]]] = defaultdict(dict)
        for computation, by_target in self.standings.items():
            rows[computation.operator][computation.kind] = by_target
        return dict(sorted(rows.items()))


def observed_kinds(record: Record) -> list[str]:
    """The kinds of claims that a record of an operator counts for."""
    return (
        sorted({computation.kind for computation in _observed(record)}) if record.kind == "operator" else []
    )


def fell_back(record: Record) -> bool:
    """Whether the record's operator was lowered and left to the CPU."""
    if not record.delegates:
        return bool(record.artifact or record.leftovers)
    return any(_base(leftover.operator) == _base(record.operator) for leftover in record.leftovers)


def _base(operator: str) -> str:
    """The edge dialect's ``aten.view_copy.default`` is the ``aten.view.default`` that was exported."""
    return ".".join(operator.split(".")[:2]).removesuffix("_copy")


def _observed(record: Record) -> set[Computation]:
    return observed(record.operator, record.profile, record.scheme, record.dtypes)


def _standing(claim: Claim, records: list[Record]) -> Standing:
    if not records:
        return Standing(State.NOT_COVERED, 0, claim.reason)
    delegated = [record for record in records if not fell_back(record)]
    if not delegated:
        reasons = {leftover.reason for record in records for leftover in record.leftovers}
        return Standing(State.NOT_DELEGATED, len(records), "; ".join(sorted(reasons)))
    failed = [record for record in delegated if record.verdict is not Verdict.PASS]
    if not failed:
        return Standing(State.PASSING, len(records))
    foreseen = all(record.expected is not None and not record.unexpected for record in failed)
    # What nobody expected says more than what somebody did.
    worst = min(failed, key=lambda record: (not record.unexpected, record.id))
    why = f"{worst.name}: {outcome(worst)}: {worst.expected or explanation(worst)}"
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return Standing(State.KNOWN if foreseen else State.FAILING, len(records), why + more)


def _unclaimed(records: Iterable[Record], claimed: Mapping[Computation, object]) -> list[Unclaimed]:
    """A record counts where nothing of what it observes is claimed; dtypes of one record stay together."""

    def key(record: Record) -> tuple[str, str] | None:
        computations = _observed(record)
        if not record.operator or not computations or claimed.keys() & computations:
            return None
        profile = next(iter(computations)).profile
        return record.operator, " ".join(
            (profile, *record.dtypes, record.scheme.partition("-")[0])
        ).removesuffix(" none")

    found = []
    for name, members in grouped(records, key).items():
        counts = {
            target: len(same)
            for target, same in grouped(members, lambda record: record.target).items()
            if all(record.verdict is Verdict.PASS and not fell_back(record) for record in same)
        }
        if name is not None and counts:
            found.append(Unclaimed(*name, counts))
    return sorted(found, key=lambda item: (item.operator, item.kind))


def emitted(records: Iterable[Record]) -> list[Record]:
    """The records whose graphs the backend made: TOSA's own tests bring theirs along."""
    return [record for record in records if record.kind != "tosa"]


def tosa_coverage(records: Iterable[Record]) -> dict[str, dict[str, tuple[int, int]]]:
    """TOSA operator -> dtype -> graphs that passed on every target, and graphs emitted with it.

    A graph is one delegate of one artifact, however many records ran it.
    """
    graphs_by_use: dict[tuple[str, str], dict[tuple[str, str], bool]] = defaultdict(dict)
    for record in records:
        for delegate in record.delegates:
            graph = (record.artifact or record.id, delegate.name)
            for operator, dtypes in delegate.tosa_dtypes.items():
                for dtype in dtypes:
                    passed = graphs_by_use[operator, dtype]
                    passed[graph] = passed.get(graph, True) and record.verdict is Verdict.PASS
    table: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for (operator, dtype), graphs in sorted(graphs_by_use.items()):
        table[operator][dtype] = (sum(graphs.values()), len(graphs))
    return dict(table)
