"""Puts faults into one delegate's result and graph, and counts those that the comparison catches.

A fault that changes nothing, on the sample's inputs and on further ones, is equivalent and does not count.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import islice

import numpy as np

from vgf_conformance.attribution.cut import as_delegate
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.formats.tosa import TosaGraph
from vgf_conformance.results.record import Sensitivity
from vgf_conformance.sensitivity.faults import inject
from vgf_conformance.sensitivity.mutants import Mutant, mutants
from vgf_conformance.targets.base import Array, Target, TargetFailure

#: Mutants of one graph: large graphs have thousands, of a few kinds.
MOST_MUTANTS = 64
#: Further inputs on which a mutant must differ from the graph to count as a fault that the sample misses.
FURTHER = 2


def measure(
    graph: TosaGraph, inputs: Sequence[Array], outputs: Sequence[Array], reference: Target
) -> Sensitivity:
    """What the comparison catches in one run of ``graph`` that gave ``outputs``.

    ``reference`` runs the mutants. All arrays are in the graph's order, in memory layout.
    """
    return _Measurement(graph, inputs, outputs, reference).made()


class _Measurement:
    """One run of one graph, and the faults that are planted in it."""

    def __init__(
        self, graph: TosaGraph, inputs: Sequence[Array], outputs: Sequence[Array], reference: Target
    ) -> None:
        self._graph = graph
        self._inputs = inputs
        self._outputs = outputs
        self._reference = reference
        self._found = Sensitivity()

    def made(self) -> Sensitivity:
        for injected in inject(self._outputs):
            self._found.tried += 1
            if same(injected.outputs, self._outputs):
                self._found.equivalent += 1
            else:
                name = f"{injected.fault} in output {injected.output}"
                self._found.caught += self._caught(name, injected.outputs)
        every = list(mutants(self._graph))
        step = max(1, -(-len(every) // MOST_MUTANTS))
        for mutant in islice(every, 0, None, step):
            self._found.tried += 1
            self._try(mutant)
        return self._found

    def _try(self, mutant: Mutant) -> None:
        wrong = self._run(mutant.graph, self._inputs)
        if wrong is None:
            # The reference model refuses it: no result at all is noticed.
            self._catch(mutant)
        elif not same(wrong, self._outputs):
            if self._caught(mutant.name, wrong):
                self._catch(mutant)
        elif any(self._differs(mutant.graph, *further) for further in self._further):
            self._found.survivors.append(f"{mutant.name}: the sample's values do not reach it")
        else:
            self._found.equivalent += 1

    def _catch(self, mutant: Mutant) -> None:
        self._found.caught += 1
        self._found.mutants.append(mutant.name)

    def _caught(self, name: str, wrong: Sequence[Array]) -> bool:
        """Whether the comparison fails ``wrong``; otherwise it has survived, and is noted."""
        judged = judge_device(self._graph, self._inputs, wrong, self._outputs, target="mutant", delegate="")
        if not all(comparison.passed for comparison in judged):
            return True
        share = max((comparison.headroom or 0.0 for comparison in judged), default=0.0)
        self._found.survivors.append(f"{name}: within the tolerance ({share:.0%} of it used)")
        return False

    @functools.cached_property
    def _further(self) -> list[tuple[list[Array], list[Array]]]:
        """Other inputs of the same range, each with the graph's own outputs; without those it refuses."""
        generator = np.random.default_rng(0)
        drawn = [[redrawn(array, generator) for array in self._inputs] for _ in range(FURTHER)]
        ran = [(inputs, self._run(self._graph, inputs)) for inputs in drawn]
        return [(inputs, right) for inputs, right in ran if right is not None]

    def _differs(self, mutant: TosaGraph, inputs: Sequence[Array], right: Sequence[Array]) -> bool:
        wrong = self._run(mutant, inputs)
        return wrong is not None and not same(wrong, right)

    def _run(self, graph: TosaGraph, inputs: Sequence[Array]) -> list[Array] | None:
        """The reference model's outputs; None where it refuses the graph or the inputs."""
        self._reference.load([as_delegate(graph, dict(zip(graph.inputs, inputs, strict=True)))])
        try:
            return list(self._reference.run(0, list(inputs)).arrays)
        except TargetFailure:
            return None


def same(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Equal in value: the sign of a zero and the bits of a NaN are free."""
    return len(one) == len(other) and all(
        a.shape == b.shape and np.array_equal(_plain(a), _plain(b), equal_nan=_floats(a))
        for a, b in zip(one, other, strict=True)
    )


def _plain(array: Array) -> Array:
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _floats(array: Array) -> bool:
    return array.dtype.kind not in "biu"


def redrawn(array: Array, generator: np.random.Generator) -> Array:
    """Random values of the range that ``array`` has."""
    if array.dtype.kind in "biu" and array.size:
        # Within the range seen: it may be that of an index.
        low, high = int(array.min()), int(array.max())
        whole: Array = np.asarray(generator.integers(low, high, array.shape, np.int64, endpoint=True))
        return whole.astype(array.dtype)
    wide = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
    spread = float(np.abs(wide).max(initial=0.0)) or 1.0
    drawn: Array = np.asarray(generator.uniform(-min(spread, 100.0), min(spread, 100.0), array.shape))
    return drawn.astype(array.dtype)
