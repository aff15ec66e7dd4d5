"""Puts faults into one delegate's result and graph, and counts those that the comparison catches.

A fault that changes nothing, on the sample's inputs and on further ones, is equivalent and does not count.
"""

from __future__ import annotations

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
_FURTHER = 2


def measure(
    graph: TosaGraph, inputs: Sequence[Array], outputs: Sequence[Array], reference: Target
) -> Sensitivity:
    """What the comparison catches in one run of ``graph`` that gave ``outputs``.

    ``reference`` runs the mutants. All arrays are in the graph's order, in memory layout.
    """
    found = Sensitivity()
    for injected in inject(outputs):
        _count(
            found, f"{injected.fault} in output {injected.output}", graph, inputs, injected.outputs, outputs
        )
    every = list(mutants(graph))
    step = max(1, -(-len(every) // MOST_MUTANTS))
    for mutant in islice(every, 0, None, step):
        _try(found, mutant, graph, inputs, outputs, reference)
    return found


def _try(
    found: Sensitivity,
    mutant: Mutant,
    graph: TosaGraph,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    reference: Target,
) -> None:
    name = f"{mutant.fault} ({mutant.operator}, number {mutant.position})"
    try:
        wrong = _run(mutant.graph, inputs, reference)
    except TargetFailure:
        # The reference model refuses it: no result at all is noticed.
        found.tried += 1
        found.caught += 1
        return
    if not _same(wrong, outputs):
        _count(found, name, graph, inputs, wrong, outputs)
        return
    found.tried += 1
    if any(_differs(mutant.graph, graph, further, reference) for further in _further(inputs)):
        found.survivors.append(f"{name}: the sample's values do not reach it")
    else:
        found.equivalent += 1


def _count(
    found: Sensitivity,
    name: str,
    graph: TosaGraph,
    inputs: Sequence[Array],
    wrong: Sequence[Array],
    right: Sequence[Array],
) -> None:
    found.tried += 1
    if _same(wrong, right):
        found.equivalent += 1
        return
    judged = judge_device(graph, inputs, wrong, right, target="mutant", delegate="")
    if all(comparison.passed for comparison in judged):
        share = max((comparison.headroom or 0.0 for comparison in judged), default=0.0)
        found.survivors.append(f"{name}: within the tolerance ({share:.0%} of it used)")
    else:
        found.caught += 1


def _same(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Equal in value: the sign of a zero and the bits of a NaN are free."""
    return len(one) == len(other) and all(
        a.shape == b.shape and np.array_equal(_plain(a), _plain(b), equal_nan=_floats(a))
        for a, b in zip(one, other, strict=True)
    )


def _plain(array: Array) -> Array:
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _floats(array: Array) -> bool:
    return array.dtype.kind not in "biu"


def _further(inputs: Sequence[Array]) -> list[list[Array]]:
    """Other numbers of the same range."""
    generator = np.random.default_rng(0)
    return [[_redrawn(array, generator) for array in inputs] for _ in range(_FURTHER)]


def _redrawn(array: Array, generator: np.random.Generator) -> Array:
    if array.dtype.kind in "biu" and array.size:
        # Within the range seen: it may be that of an index.
        low, high = int(array.min()), int(array.max())
        whole: Array = np.asarray(generator.integers(low, high, array.shape, np.int64, endpoint=True))
        return whole.astype(array.dtype)
    wide = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
    spread = float(np.abs(wide).max(initial=0.0)) or 1.0
    drawn: Array = np.asarray(generator.uniform(-min(spread, 100.0), min(spread, 100.0), array.shape))
    return drawn.astype(array.dtype)


def _differs(one: TosaGraph, other: TosaGraph, inputs: Sequence[Array], reference: Target) -> bool:
    try:
        return not _same(_run(one, inputs, reference), _run(other, inputs, reference))
    except TargetFailure:
        return False


def _run(graph: TosaGraph, inputs: Sequence[Array], reference: Target) -> list[Array]:
    values = dict(zip(graph.inputs, inputs, strict=True))
    reference.load([as_delegate(graph, values)])
    return list(reference.run(0, list(inputs)).arrays)
