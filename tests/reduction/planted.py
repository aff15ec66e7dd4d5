"""Runners that err, crash or hang at certain operators of a graph, wherever in it they stand."""

from __future__ import annotations

import abc
import os
import signal
import time
from collections.abc import Callable

from tests.fakes import Planted
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.targets.base import Array
from vgf_conformance.targets.reference import ReferenceGraph, ReferenceRunner


class Striking(abc.ABC):
    """The reference model, but for graphs that hold all of ``operators``."""

    operators: frozenset[str] = frozenset()

    def build(self, delegate: Delegate) -> ReferenceGraph | Planted:
        graph = ReferenceRunner().build(delegate)
        names = {operator.name for operator in read_graph(delegate.tosa).operators}
        fault: Callable[[list[Array], int], list[Array]] = self.fault
        return Planted(graph, fault) if self.operators <= names else graph

    @abc.abstractmethod
    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        """What becomes of the outputs."""


class WrongAtTanh(Striking):
    """The first element of each output is off, and only there."""

    operators = frozenset({"TANH"})

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        for output in outputs:
            flat = output.reshape(-1)
            flat[0] = float(flat[0]) + 1
        return outputs


class WrongAtExp(WrongAtTanh):
    operators = frozenset({"EXP"})


class CrashesAtPair(Striking):
    """Needs two operators in one graph."""

    operators = frozenset({"SIGMOID", "MAX_POOL2D"})

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        os.kill(os.getpid(), signal.SIGILL)
        return outputs


class HangsAtClamp(Striking):
    operators = frozenset({"CLAMP"})

    def fault(self, outputs: list[Array], sentinel: int) -> list[Array]:
        time.sleep(3600)
        return outputs
