"""Failures looked into: the case's own, those of its predecessors, and those that nobody sees again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.results.records import record
from vgf_conformance.results.record import Record
from vgf_conformance.targets import isolation
from vgf_conformance.targets.isolation import Isolation, of_the_driver
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: What becomes of a case on a worker on which the cases of the set ran before it.
Behaviour = Callable[[int, set[int]], Record]

PASS = record(verdict=Verdict.PASS)


def failed(verdict: Verdict = Verdict.FAIL, finding: Finding = Finding.WRONG) -> Record:
    return record(verdict=verdict, stage=Stage.RUN, finding=finding, message="it is wrong")


class Worker:
    """Runs numbers for cases; remembers what ran, until it is restarted or crashes."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._ran: set[int] = set()
        self.runs = 0
        self.isolation = Isolation(self.run, self._ran.clear, str)

    def run(self, case: int) -> Record:
        self.runs += 1
        result = Record(**vars(self._behaviour(case, self._ran)))
        result.notes = []
        self._ran.add(case)
        if result.verdict is Verdict.CRASH:
            self._ran.clear()
        return result

    def judge(self, count: int) -> list[Record]:
        return [self.isolation.judge(case) for case in range(count)]


def fails_after(case: int, *culprits: int, result: Record | None = None) -> Behaviour:
    """``case`` fails where all of ``culprits`` ran before it; everything else passes."""

    def behave(number: int, ran: set[int]) -> Record:
        return (result or failed()) if number == case and ran.issuperset(culprits) else PASS

    return behave


def test_a_failure_of_its_own_is_seen_again_alone() -> None:
    worker = Worker(fails_after(3))
    records = worker.judge(6)
    assert [item.verdict for item in records] == [Verdict.PASS] * 3 + [Verdict.FAIL] + [Verdict.PASS] * 2
    assert records[3].notes == ["fails in the same way alone, in a fresh worker"]
    assert (records[3].finding, records[3].message) == (Finding.WRONG, "it is wrong")
    assert worker.runs == 7


@pytest.mark.parametrize("culprits", [(49,), (0,), (13,), (48, 49), (5, 31), (0, 17, 44)], ids=str)
@pytest.mark.parametrize(
    ("verdict", "finding"),
    [(Verdict.FAIL, Finding.WRONG), (Verdict.CRASH, Finding.CRASHED), (Verdict.TIMEOUT, Finding.HUNG)],
)
def test_the_least_group_of_culprits_is_named(
    culprits: tuple[int, ...], verdict: Verdict, finding: Finding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "PER_FAILURE", 2000)
    worker = Worker(fails_after(50, *culprits, result=failed(verdict, finding)))
    records = worker.judge(53)
    named = ", ".join(map(str, culprits))
    assert records[50].notes == [
        "passes alone, in a fresh worker",
        f"fails ({verdict.value}, {finding.value}) after {named}",
    ]
    assert (records[50].verdict, records[50].finding) == (verdict, Finding.DEPENDENT)
    assert records[50].message == f"depends on what ran before it ({named}): it is wrong"
    assert all(item.verdict is Verdict.PASS for item in records[:50] + records[51:])


def test_a_near_culprit_costs_few_runs() -> None:
    worker = Worker(fails_after(50, 49))
    worker.judge(51)
    assert worker.runs == 51 + 1 + 2


def test_what_happens_once_is_said_to_have() -> None:
    seen = []

    def once(case: int, ran: set[int]) -> Record:
        seen.append(case)
        return failed(Verdict.CRASH, Finding.CRASHED) if case == 4 and seen.count(4) == 1 else PASS

    records = Worker(once).judge(6)
    assert (records[4].verdict, records[4].finding) == (Verdict.CRASH, Finding.CRASHED)
    assert records[4].notes == [
        "passes alone, in a fresh worker",
        "passes also after what ran before it: why it failed is not known",
    ]


def test_another_failure_alone_is_told() -> None:
    def changing(case: int, ran: set[int]) -> Record:
        if case != 2:
            return PASS
        return failed() if ran else failed(Verdict.CRASH, Finding.CRASHED)

    records = Worker(changing).judge(3)
    assert records[2].verdict is Verdict.FAIL
    assert records[2].notes == ["alone, in a fresh worker, it ends otherwise: crash, crashed"]


def test_the_next_case_has_a_fresh_worker() -> None:
    """What a failure left behind must not reach the cases after it."""

    def poisoned(case: int, ran: set[int]) -> Record:
        return failed() if case == 2 or 2 in ran else PASS

    assert [item.verdict for item in Worker(poisoned).judge(5)].count(Verdict.FAIL) == 1


def test_refusals_and_other_stages_are_left_alone() -> None:
    for other in (
        record(verdict=Verdict.UNSUPPORTED, stage=Stage.RUN, finding=Finding.CAPABILITY),
        record(verdict=Verdict.FAIL, stage=Stage.LOWER, finding=Finding.WRONG),
        record(verdict=Verdict.ERROR, stage=Stage.RUN, finding=Finding.RAISED),
    ):
        assert not of_the_driver(other)
        worker = Worker(lambda case, ran, other=other: other)  # type: ignore[misc]
        assert worker.judge(1)[0].notes == []
        assert worker.runs == 1


def test_a_crash_that_is_not_looked_into_ends_the_worker_all_the_same() -> None:
    """What ran before it has no part in what fails after it."""

    def behave(case: int, ran: set[int]) -> Record:
        if case == 1:
            return failed(Verdict.CRASH, Finding.CRASHED)
        return failed() if case == 3 and 2 in ran else PASS

    worker = Worker(behave)
    looked_into = Isolation(
        worker.run, worker._ran.clear, str, suspicious=lambda item: item.verdict is Verdict.FAIL
    )
    records = [looked_into.judge(case) for case in range(4)]
    assert records[1].notes == []
    assert records[3].message.startswith("depends on what ran before it (2): ")


def test_searches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "PER_FAILURE", 12)
    monkeypatch.setattr(isolation, "PER_RUN", 20)
    early = Worker(fails_after(50, 0))
    records = early.judge(51)
    assert records[50].notes == ["passes alone, in a fresh worker", isolation._ENDED]
    assert early.runs <= 51 + 12
    partly = Worker(fails_after(5, 1, 3))
    assert partly.judge(6)[5].notes[-1].startswith(isolation._ENDED)
    monkeypatch.setattr(isolation, "PER_RUN", 2)
    every = Worker(lambda case, ran: failed())
    assert [item.notes for item in every.judge(3)] == [
        ["fails in the same way alone, in a fresh worker"],
        ["fails in the same way alone, in a fresh worker"],
        [isolation._ENDED],
    ]


def test_a_leak_is_told_once_and_a_restart_begins_anew() -> None:
    size = 0

    def growing(case: int, ran: set[int]) -> Record:
        nonlocal size
        size = (size if ran else 100 << 20) + (1 << 20)
        return Record(**{**vars(PASS), "worker_bytes": size})

    notes = [note for item in Worker(growing).judge(200) for note in item.notes]
    assert len(notes) == 1
    assert notes[0].startswith("memory leak: the worker grows by 1.0 MB with each case")
