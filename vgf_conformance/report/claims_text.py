"""Claims against observations, and TOSA operators by dtype, as Markdown and for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vgf_conformance.report import markdown
from vgf_conformance.report.claims import Coverage, Standing, State, tosa_coverage
from vgf_conformance.report.tally import NOTHING, grouped
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Record

_LEGEND = ", ".join(f"{state.symbol} {state.value}" for state in State)


def claims_section(results: Results) -> str:
    """Counts, then operators by kind of claim, then what does not hold, and why; empty without claims."""
    coverage = Coverage.of(results)
    if not coverage.claims or not coverage.targets:
        return ""
    parts = [
        _counts(coverage),
        f"{_LEGEND}; a cell without symbol: not claimed. Where targets differ, a cell has one symbol for "
        f"each: {', '.join(coverage.targets)}. Operators that this run has no record of are left out here.",
        _operators(coverage),
        _titled("Claimed, and not so", _unmet(coverage)),
        _titled("Unclaimed and working", _unclaimed(coverage)),
        _titled("Not yet covered", _uncovered(coverage)),
    ]
    return "\n\n".join(filter(None, parts))


def claims_lines(results: Results) -> list[str]:
    """One line a target for the terminal: how many claims stand how."""
    coverage = Coverage.of(results)
    if not coverage.claims:
        return []
    return [
        f"claims on {target}: "
        + ", ".join(
            f"{coverage.count(state, target)} {state.value.removeprefix('claimed and ')}"
            for state in State
            if coverage.count(state, target)
        )
        for target in coverage.targets
    ]


def tosa_section(records: Iterable[Record]) -> str:
    """TOSA operators by dtype with numbers of graphs; empty where no record says."""
    table = tosa_coverage(records)
    dtypes = sorted({dtype for found in table.values() for dtype in found})
    if not table:
        return ""
    rows = [
        [name, *(_graphs(found[dtype]) if dtype in found else "" for dtype in dtypes)]
        for name, found in table.items()
    ]
    lead = "Graphs emitted with the operator; passed/emitted where not every record of a graph passed."
    return f"{lead}\n\n{markdown.table(rows, ['TOSA operator', *dtypes])}"


def _graphs(counts: tuple[int, int]) -> str:
    passed, emitted = counts
    return str(emitted) if passed == emitted else f"{passed}/{emitted}"


def _titled(title: str, body: str) -> str:
    return f"### {title}\n\n{body}" if body else ""


def _counts(coverage: Coverage) -> str:
    total = len(coverage.standings)

    def cells(found: int, of: int) -> str:
        return f"{found} ({found / of:.1%})" if of else NOTHING

    rows: list[list[object]] = [
        [
            f"{state.symbol} {state.value}",
            *(cells(coverage.count(state, target), total) for target in coverage.targets),
        ]
        for state in State
    ]
    rows.append([f"of {total} claimed operators by profile, dtype and mode: with a record"])
    rows[-1] += [
        cells(total - coverage.count(State.NOT_COVERED, target), total) for target in coverage.targets
    ]
    pairs = [coverage.pairs(target) for target in coverage.targets]
    rows.append(
        [f"of {pairs[0][1]} claimed operators by profile: with a record", *(cells(*pair) for pair in pairs)]
    )
    rows.append(["unclaimed and working"])
    rows[-1] += [sum(target in item.records for item in coverage.unclaimed) for target in coverage.targets]
    return markdown.table(rows, ["claims", *coverage.targets])


def _operators(coverage: Coverage) -> str:
    kinds = coverage.kinds
    rows = [
        [operator, *(_cell(found[kind]) if kind in found else "" for kind in kinds)]
        for operator, found in coverage.table().items()
        if any(standing.records for by_target in found.values() for standing in by_target.values())
    ]
    return markdown.table(rows, ["operator", *kinds])


def _cell(by_target: Mapping[str, Standing]) -> str:
    symbols = [standing.state.symbol for standing in by_target.values()]
    return symbols[0] if len(set(symbols)) == 1 else " ".join(symbols)


def _unmet(coverage: Coverage) -> str:
    """Failing and undelegated claims; targets that say the same share a row."""
    rows = []
    for computation, by_target in coverage.standings.items():
        unmet = [
            (target, standing)
            for target, standing in by_target.items()
            if standing.state not in (State.PASSING, State.NOT_COVERED)
        ]
        for state, same in grouped(unmet, lambda item: item[1].state).items():
            targets = ", ".join(target for target, _ in same)
            rows.append(
                [
                    computation.operator,
                    computation.kind,
                    targets,
                    f"{state.symbol} {state.value}",
                    same[0][1].why,
                ]
            )
    return markdown.table(rows, ["operator", "claim", "target", "state", "why"]) if rows else ""


def _unclaimed(coverage: Coverage) -> str:
    rows = [
        [item.operator, item.kind, *(item.records.get(target, NOTHING) for target in coverage.targets)]
        for item in coverage.unclaimed
    ]
    headers = ["operator", "profile, dtypes, mode", *(f"cases on {target}" for target in coverage.targets)]
    return markdown.table(rows, headers) if rows else ""


def _uncovered(coverage: Coverage) -> str:
    """Claims without a record: those that no case covers with the reason, the others in short."""
    missing = [
        claim
        for claim in coverage.claims
        if not any(standing.records for standing in coverage.standings[claim.computation].values())
    ]
    explained = [[claim.operator, claim.computation.kind, claim.reason] for claim in missing if claim.reason]
    parts = [markdown.table(explained, ["operator", "claim", "reason"])] if explained else []
    others = grouped((claim for claim in missing if not claim.reason), lambda claim: claim.computation.kind)
    if others:
        parts.append("No record in this run, though the suites have cases of them:")
        parts.append(
            "\n".join(
                f"{markdown.item(kind)}: "
                + markdown.inline(", ".join(claim.operator for claim in found), 20_000)
                for kind, found in others.items()
            )
        )
    return "\n\n".join(parts)
