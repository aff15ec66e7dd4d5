from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.results.records import record
from vgf_conformance.results.compare import compare_runs
from vgf_conformance.results.merge import Results, merge
from vgf_conformance.results.record import DelegateFacts, Leftover, Record
from vgf_conformance.results.shards import Shard, artifact_of
from vgf_conformance.vocabulary import Stage, Verdict


def run(*records: Record) -> Results:
    return Results(runs=[{"type": "run", "schema": 1}], records=list(records))


def delegated(nodes: int, sample: str, target: str) -> Record:
    delegates = [DelegateFacts("d0", nodes, {"ADD": 1}, 1, 1)] if nodes else []
    leftovers = [Leftover("aten.topk.default", "no")]
    return record(delegates=delegates, leftovers=leftovers, sample=sample, target=target)


def test_shards_are_joined_in_order() -> None:
    joined = merge([run(record(sample="a")), run(record(sample="b"), record(sample="c"))])
    assert [item.sample for item in joined.records] == ["a", "b", "c"]
    assert len(joined.runs) == 2
    assert joined.warnings == []


def test_doubles_are_reported_and_the_last_wins() -> None:
    joined = merge([run(record()), run(record(verdict=Verdict.FAIL))])
    assert [item.verdict for item in joined.records] == [Verdict.FAIL]
    assert len(joined.warnings) == 1
    assert "(pass, then fail)" in joined.warnings[0]


def test_warnings_of_the_parts_are_kept() -> None:
    assert merge([Results(warnings=["torn"]), run()]).warnings == ["torn"]


def test_what_changed_between_runs() -> None:
    old = run(
        record(sample="steady"),
        record(sample="breaks"),
        record(sample="heals", verdict=Verdict.FAIL),
        record(sample="worsens", verdict=Verdict.FAIL),
        record(sample="moves", verdict=Verdict.FAIL),
        record(sample="goes"),
    )
    new = run(
        record(sample="steady"),
        record(sample="breaks", verdict=Verdict.TIMEOUT),
        record(sample="heals"),
        record(sample="worsens", verdict=Verdict.CRASH, stage=Stage.RUN),
        record(sample="moves", verdict=Verdict.FAIL, stage=Stage.RUN),
        record(sample="comes", verdict=Verdict.FAIL),
    )
    comparison = compare_runs(old, new)
    assert [change.new.sample for change in comparison.new_failures] == ["breaks"]
    assert [change.new.sample for change in comparison.fixed] == ["heals"]
    assert [change.new.sample for change in comparison.changed_failures] == ["moves", "worsens"]
    assert [item.sample for item in comparison.new_cases] == ["comes"]
    assert [item.sample for item in comparison.missing_cases] == ["goes"]
    assert comparison.worse


def test_equal_runs_are_not_worse() -> None:
    results = run(record(), record(sample="b", verdict=Verdict.FAIL))
    comparison = compare_runs(results, results)
    assert comparison == type(comparison)()
    assert not comparison.worse


def selected(results: Results, *samples: str, **run: Any) -> Results:
    """``results`` as those of a run with a plan of ``samples``."""
    plan = [record(sample=name).id for name in samples]
    return replace(results, runs=[{**results.runs[0], **run}], plan=plan)


def test_what_a_run_was_not_asked_for_is_not_missing() -> None:
    """A run with -k has all that it planned; one that died lacks some of it."""
    old = run(*(record(sample=name) for name in "abcd"))
    part = selected(run(record(sample="a")), "a", "b", selection={"names": "a or b"})
    comparison = compare_runs(old, part)
    assert [item.sample for item in comparison.missing_cases] == ["b"]
    assert comparison.not_asked_for == 2
    assert comparison.worse
    assert not compare_runs(old, selected(run(record(sample="a")), "a", selection={"names": "a"})).worse


def test_what_is_gone_from_the_suites_is_missing() -> None:
    """Two runs that select alike: what the later one did not even plan has gone."""
    old = selected(run(record(sample="a"), record(sample="b")), "a", "b", selection={"tiers": "smoke"})
    new = selected(run(record(sample="a")), "a", selection={"tiers": "smoke"})
    comparison = compare_runs(old, new)
    assert [item.sample for item in comparison.missing_cases] == ["b"]
    assert comparison.not_asked_for == 0


def test_another_shard_was_not_asked_for() -> None:
    names = "abcdefgh"
    old = selected(run(*(record(sample=name) for name in names)), *names)
    inside = [name for name in names if Shard(2, 1).holds(artifact_of(record(sample=name).id))]
    assert 0 < len(inside) < len(names)
    new = selected(run(*(record(sample=name) for name in inside[1:])), *names, shard="1/2")
    comparison = compare_runs(old, new)
    assert [item.sample for item in comparison.missing_cases] == inside[:1]
    assert comparison.not_asked_for == len(names) - len(inside)


def test_delegation_is_compared_once_for_each_lowered_program() -> None:
    def both(nodes: int, sample: str) -> list[Record]:
        return [delegated(nodes, sample=sample, target=target) for target in ("reference", "emulation")]

    comparison = compare_runs(
        run(*both(3, "loses"), *both(0, "gains"), *both(2, "steady")),
        run(*both(0, "loses"), *both(1, "gains"), *both(2, "steady")),
    )
    assert [(item.sample, item.old_nodes, item.new_nodes) for item in comparison.lost_delegation] == [
        ("loses", 3, 0)
    ]
    assert [(item.sample, item.old_nodes, item.new_nodes) for item in comparison.gained_delegation] == [
        ("gains", 0, 1)
    ]
    assert comparison.worse


def test_a_program_that_was_never_lowered_has_no_delegation_to_lose() -> None:
    raised = record(verdict=Verdict.ERROR, stage=Stage.EXPORT)
    assert compare_runs(run(delegated(3, "rank1", "reference")), run(raised)).lost_delegation == []
