"""A worker that processes forked from this one use: its crashes, its words, and what is left of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from tests.targets.test_capabilities import absolute
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.lending import workers
from vgf_conformance.targets.process import ProcessTarget

VALUES = [np.array([1.5, -2.0, 0.0, -0.5], np.float32)]


@pytest.fixture
def lent() -> Iterator[ProcessTarget]:
    target = ProcessTarget("emulation", "tests.fakes:Troubled", time_limit=1)
    yield target
    target.kill()


def forked(target: ProcessTarget, work: Callable[[], str]) -> str:
    """What ``work`` gives in a process that borrows the worker of ``target``."""
    target.lend()
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        said = "raised"
        try:
            target.borrow()
            said = f"{work()}, waiting: {target.waiting}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading) as file:
        return file.read()


def run(target: ProcessTarget, number: int) -> str:
    target.load([dataclasses.replace(absolute(), name=f"abs {number}")])
    try:
        right = bool((target.run(0, VALUES).arrays[0] == np.abs(VALUES[0])).all())
        return f"{right} from {target._process.pid}" if target._process else "no process"
    except TargetFailure as failure:
        return failure.message


def test_processes_share_one_worker_until_it_dies(lent: ProcessTarget) -> None:
    lent.lend()
    assert lent._process is not None
    first = lent._process.pid
    for number in (1, 2):
        assert forked(lent, partial(run, lent, number)) == f"True from {first}, waiting: False"
    crash = forked(lent, lambda: run(lent, 17))
    assert crash == "the worker was ended by SIGSEGV, waiting: True"
    assert forked(lent, lambda: run(lent, 31)).startswith("no answer within 1 s")
    last = forked(lent, lambda: run(lent, 3))
    assert last.startswith("True from ") and f"from {first}," not in last


def test_a_process_goes_on_after_a_crash_and_with_closed_descriptors(lent: ProcessTarget) -> None:
    lent.lend()
    assert lent._connection is not None
    descriptor = lent._connection.fileno()

    def crashes_first() -> str:
        return f"{run(lent, 17)}; {run(lent, 3)[:4]}"

    def closed() -> str:
        os.close(descriptor)
        return run(lent, 3)[:4]

    assert forked(lent, closed) == "True, waiting: False"
    assert forked(lent, crashes_first) == "the worker was ended by SIGSEGV; True, waiting: False"


def test_a_request_that_was_given_up_is_not_answered_later(lent: ProcessTarget) -> None:
    def gives_up() -> str:
        assert lent._connection is not None
        lent.load([dataclasses.replace(absolute(), name="abs 1")])
        lent._connection.send(("run", 0, [VALUES[0] * 3]))
        lent.waiting = True
        return run(lent, 2)[:4]

    assert forked(lent, gives_up) == "True, waiting: False"


def test_workers_are_named_once(lent: ProcessTarget) -> None:
    assert workers([lent, lent]) == [lent]
