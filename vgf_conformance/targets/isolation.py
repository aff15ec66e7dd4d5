"""Whose fault a failure is: the case's own, or that of what ran before it on the same worker.

A worker serves many cases in a row. One that fails is run again alone in a fresh worker; where it passes
there, what ran before it is run before it again, and halved down to the least group that makes it fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from vgf_conformance.results.record import Record
from vgf_conformance.targets.memory import Growth
from vgf_conformance.vocabulary import Finding, Stage, Verdict

Case = TypeVar("Case")

#: What two failures have in common that have one cause.
_Kind = tuple[Verdict, Finding | None]

#: How many runs of cases the search for one failure's cause may take, and all searches of a run together.
PER_FAILURE = 200
PER_RUN = 2000
_ENDED = f"the search ended early, after {PER_FAILURE} runs for one failure or {PER_RUN} for all"

#: Failures that may depend on what a worker did before; a refusal does not.
_FAILURES = (Verdict.FAIL, Verdict.CRASH, Verdict.TIMEOUT)


def of_the_driver(record: Record) -> bool:
    """Whether ``record`` is a failure at ``run``, where a worker's past may play a part."""
    return record.verdict in _FAILURES and record.stage is Stage.RUN


class Isolation(Generic[Case]):
    """Runs cases one after another on one worker, and looks into those whose record is ``suspicious``.

    ``run`` runs a case; ``restart`` ends the worker, so that the next case begins with a fresh one;
    ``name`` is what a case is called in records.
    """

    def __init__(
        self,
        run: Callable[[Case], Record],
        restart: Callable[[], None],
        name: Callable[[Case], str],
        suspicious: Callable[[Record], bool] = of_the_driver,
    ) -> None:
        self._run = run
        self._restart = restart
        self._name = name
        self._suspicious = suspicious
        self._before: list[Case] = []
        self._growth = Growth()
        self._left_of_run = PER_RUN
        self._left = 0

    def judge(self, case: Case) -> Record:
        """The record of ``case``; where it failed, with what became of it alone in a fresh worker."""
        record = self._run(case)
        if leak := self._growth.add(record.worker_bytes):
            record.notes.append(leak)
        if self._suspicious(record):
            self._explain(case, record)
            self._start_anew()
        elif record.verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            self._start_anew()
        else:
            self._before.append(case)
        return record

    def _start_anew(self) -> None:
        self._restart()
        self._before.clear()
        self._growth = Growth()

    def _explain(self, case: Case, record: Record) -> None:
        """Add to ``record`` what running it again shows; its verdict stays."""
        self._left = min(PER_FAILURE, self._left_of_run)
        try:
            alone = self._again([case])
            if _kind(alone) == _kind(record):
                record.notes.append("fails in the same way alone, in a fresh worker")
            elif alone.verdict is not Verdict.PASS:
                record.notes.append(f"alone, in a fresh worker, it ends otherwise: {_words(alone)}")
            else:
                record.notes.append("passes alone, in a fresh worker")
                self._blame_others(case, record)
        except _Spent:
            record.notes.append(_ENDED)

    def _blame_others(self, case: Case, record: Record) -> None:
        kind = _kind(record)
        group = self._window(case, kind)
        if group is None:
            record.notes.append("passes also after what ran before it: why it failed is not known")
            return
        least, whole = self._least(group, case, kind)
        names = ", ".join(map(self._name, least))
        record.notes.append(f"fails ({_words(record)}) after {names}")
        if not whole:
            record.notes.append(f"{_ENDED}: fewer of them may be enough")
        record.finding = Finding.DEPENDENT
        record.message = f"depends on what ran before it ({names}): {record.message}"

    def _window(self, case: Case, kind: _Kind) -> list[Case] | None:
        """The last cases that ran before ``case``, as many as make it fail; None where not all of them do.

        The culprit is mostly near: so the number is doubled from one.
        """
        size = 1
        while self._before:
            window = self._before[-size:]
            if self._fails_after(window, case, kind):
                return window
            if size >= len(self._before):
                break
            size *= 2
        return None

    def _least(self, group: list[Case], case: Case, kind: _Kind) -> tuple[list[Case], bool]:
        """A part of ``group`` after which ``case`` fails and of which none can be left out (delta debugging).

        With it whether the search came to its end.
        """
        parts = 2
        try:
            while len(group) > 1:
                smaller = self._smaller(group, parts, case, kind)
                if smaller is not None:
                    group, parts = smaller, 2
                elif parts >= len(group):
                    break
                else:
                    parts = min(2 * parts, len(group))
        except _Spent:
            return group, False
        return group, True

    def _smaller(self, group: list[Case], parts: int, case: Case, kind: _Kind) -> list[Case] | None:
        step = math.ceil(len(group) / parts)
        chunks = [range(start, min(start + step, len(group))) for start in range(0, len(group), step)]
        alone = ([group[number] for number in chunk] for chunk in chunks)
        without = ([item for number, item in enumerate(group) if number not in chunk] for chunk in chunks)
        candidates = [*alone, *(without if parts > 2 else ())]
        return next((some for some in candidates if self._fails_after(some, case, kind)), None)

    def _fails_after(self, before: Sequence[Case], case: Case, kind: _Kind) -> bool:
        return _kind(self._again([*before, case])) == kind

    def _again(self, cases: Sequence[Case]) -> Record:
        """The last one's record, after the others, in a fresh worker; raises _Spent."""
        if len(cases) > self._left:
            raise _Spent
        self._left -= len(cases)
        self._left_of_run -= len(cases)
        self._restart()
        return [self._run(case) for case in cases][-1]


class _Spent(Exception):
    """No runs are left."""


def _kind(record: Record) -> _Kind:
    return record.verdict, record.finding


def _words(record: Record) -> str:
    return f"{record.verdict.value}, {record.finding.value}" if record.finding else record.verdict.value
