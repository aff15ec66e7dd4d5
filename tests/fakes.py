"""Runners that lie, crash and hang: each gives the reference model's results with one fault planted.

The fault strikes delegates of two outputs only, so that a case with one output, run next on the
same target, shows whether the target still works.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.pte import Executable
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.targets.base import Array
from vgf_conformance.targets.reference import ReferenceGraph, ReferenceRunner
from vgf_conformance.targets.runner import Refused
from vgf_conformance.targets.sentinel import filled
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: Names the file to which Counting adds a line for each delegate that it builds.
COUNT_FILE = "VGF_CONFORMANCE_TEST_COUNT"


class Planted:
    """A delegate whose outputs pass through ``fault``; ``sentinel`` is that of the run."""

    def __init__(self, graph: ReferenceGraph, fault: Callable[[list[Array], int], list[Array]]) -> None:
        self._graph = graph
        self._fault = fault

    def run(self, inputs: Sequence[Array], sentinel: int) -> list[Array]:
        return self._fault([np.array(item) for item in self._graph.run(inputs, sentinel)], sentinel)


class Faithful:
    """The reference model's results as they are; the base of all that change them."""

    def build(self, delegate: Delegate) -> ReferenceGraph | Planted:
        graph = ReferenceRunner().build(delegate)
        return Planted(graph, self.fault) if len(delegate.outputs) == 2 else graph

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        return outputs


class DropsLast(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        return outputs[:-1]


class ReturnsNone(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        return []


class ReturnsExtra(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        return [*outputs, outputs[0]]


class ReturnsNan(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        outputs[0][...] = np.nan
        return outputs


class OffByTenthOfRms(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        wide = outputs[0].astype(np.float64)
        outputs[0][1, 2] = wide[1, 2] + 0.1 * np.sqrt(np.mean(wide**2))
        return outputs


class OffByOneStep(Faithful):
    """One quantisation step, away from the end of the range."""

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        value = int(outputs[0][1, 2])
        outputs[0][1, 2] = value - 1 if value > 0 else value + 1
        return outputs


class Transposed(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        return [outputs[0].T, *outputs[1:]]


class WrongDtype(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        return [outputs[0].astype(np.float16), *outputs[1:]]


class LeavesTail(Faithful):
    """The last four elements keep what the buffer held before the run."""

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        buffer = np.array(filled(outputs[0].shape, outputs[0].dtype, sentinel))
        buffer.reshape(-1)[:-4] = outputs[0].reshape(-1)[:-4]
        return [buffer, *outputs[1:]]


class RepeatsDifferently(Faithful):
    """The second run is off by one bit in one element."""

    def __init__(self) -> None:
        self._runs = 0

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        self._runs += 1
        outputs[1].view(np.uint8).reshape(-1)[0] ^= self._runs % 2
        return outputs


class LastBit(Faithful):
    """The last bit of one element of the first output is another, in every run."""

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        outputs[0].view(np.uint8).reshape(-1)[0] ^= 1
        return outputs


class DiffersBetweenRuns(Faithful):
    """Each build adds another last bit to the second output, the same in every run of that build."""

    _builds = 0

    def build(self, delegate: Delegate) -> ReferenceGraph | Planted:
        DiffersBetweenRuns._builds += 1
        return super().build(delegate)

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        outputs[1].view(np.uint8).reshape(-1)[0] ^= self._builds % 2
        return outputs


class CrashesWithSigill(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        print("last words of a driver", flush=True)
        os.kill(os.getpid(), signal.SIGILL)
        return outputs


class CrashesWithSigsegv(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        os.kill(os.getpid(), signal.SIGSEGV)
        return outputs


class Exits(Faithful):
    """A driver that calls exit() instead of crashing."""

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        os._exit(3)


class Hangs(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        print("still compiling", flush=True)
        time.sleep(3600)
        return outputs


class Raises(Faithful):
    """A fault of the runner itself."""

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        raise RuntimeError("the device was lost")


class Refuses(Faithful):
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        raise Refused(Verdict.UNSUPPORTED, Stage.RUN, Finding.INVALID, "no such operator here")


class Counting(Faithful):
    """Notes each build, to show how many samples share one."""

    def build(self, delegate: Delegate) -> ReferenceGraph | Planted:
        with Path(os.environ[COUNT_FILE]).open("a") as file:
            file.write(f"{os.getpid()}\n")
        return super().build(delegate)


class CrashesLater(Counting):
    """Answers rightly and dies a moment after, as a driver's own threads may make it."""

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        faulthandler.disable()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGSEGV)).start()
        return outputs


class Numbered:
    """Delegates whose names end in a number; each gives the right results."""

    def build(self, delegate: Delegate) -> Planted:
        number = int(delegate.name.rpartition(" ")[2])
        return Planted(ReferenceRunner().build(delegate), functools.partial(self.numbered, number))

    def numbered(self, number: int, outputs: list[Array], sentinel: int) -> list[Array]:
        return outputs


class Troubled(Numbered):
    """Crashes on 17, hangs on 31, gives NaN on 40, and wrong numbers on 52 where 51 ran before it."""

    def __init__(self) -> None:
        self._ran: set[int] = set()

    def numbered(self, number: int, outputs: list[Array], sentinel: int) -> list[Array]:
        self._ran.add(number)
        if number == 17:
            os.kill(os.getpid(), signal.SIGSEGV)
        if number == 31:
            time.sleep(3600)
        if number == 40:
            outputs[0][...] = np.nan
        if number == 52 and 51 in self._ran:
            outputs[0].view(np.float32)[...] += 1
        return outputs


class Leaks(Numbered):
    """Keeps a megabyte of each run: two for each case."""

    def __init__(self) -> None:
        self._kept: list[Array] = []

    def numbered(self, number: int, outputs: list[Array], sentinel: int) -> list[Array]:
        self._kept.append(np.ones(1 << 20, np.uint8))
        return outputs


class Remembers:
    """Gives wrong sums in a process that took an absolute value before."""

    def __init__(self) -> None:
        self._before: set[str] = set()

    def build(self, delegate: Delegate) -> Planted:
        operators = read_graph(delegate.tosa).operator_counts().keys()
        spoilt = "ADD" in operators and "ABS" in self._before
        self._before |= operators
        return Planted(
            ReferenceRunner().build(delegate),
            lambda outputs, sentinel: [np.add(item, spoilt) for item in outputs],
        )


class Negates:
    """Gives the negative of every result."""

    def build(self, delegate: Delegate) -> Planted:
        return Planted(
            ReferenceRunner().build(delegate),
            lambda outputs, sentinel: [np.negative(item) for item in outputs],
        )


class Complains(Numbered):
    """Has a validation layer's words for each run, on standard output."""

    def numbered(self, number: int, outputs: list[Array], sentinel: int) -> list[Array]:
        print("Validation Error: [ VUID-fake ] | MessageID = 0x1", flush=True)
        print(f"delegate {number} is wrong\nThe Vulkan spec states: it is not\n", flush=True)
        return outputs


class DiesComplaining(Complains):
    """Says much after the validation layer's words, and dies."""

    def numbered(self, number: int, outputs: list[Array], sentinel: int) -> list[Array]:
        super().numbered(number, outputs, sentinel)
        print("a driver's own words\n" * 1000, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
        return outputs


class RuntimeThatCrashes:
    """In place of the ExecuTorch runtime: programs are what it builds."""

    def build(self, program: Executable) -> Planted:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError("still here")


class RuntimeThatRefuses:
    """Logs the cause as the runtime does, and gives a number for it."""

    def build(self, program: Executable) -> Planted:
        print(f"[VGFSetup.cpp:1497] no decoder for {program.method}", flush=True)
        print("[method.cpp:128] Init failed: 0x12", flush=True)
        raise Refused(Verdict.FAIL, Stage.RUN, Finding.RAISED, "the ExecuTorch runtime: error: 0x:12")
