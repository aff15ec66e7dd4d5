"""Finds the first step of a PyTorch program that its TOSA graphs compute otherwise.

The program (quantised, or as exported) is walked on the sample's inputs. Wherever the backend noted that a
TOSA tensor was made from a step, the two are compared, and the walk goes on with TOSA's value: so a step
is judged by what it adds itself, and the first one that adds too much is the one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vgf_conformance.attribution.cut import as_delegate, pieces, visible
from vgf_conformance.attribution.origin import origin
from vgf_conformance.comparison.lowering import describe_wrong
from vgf_conformance.comparison.metrics import same_class, sqnr
from vgf_conformance.comparison.signal import PEER_MARGIN_DB, signal_budget
from vgf_conformance.evaluation.walk import Call
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator, read_graph
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import Program, Ref, Step
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.targets.base import Array, Target

_QUANTISE = "quantized_decomposed.quantize_per_tensor"
#: Quantisation steps that one operator may add: its own requantisation, and one scale for its operands.
_LSB = 1


@dataclass(frozen=True)
class Made:
    """A TOSA tensor and the operator, by position in its delegate's graph, that made it."""

    operator: TosaOperator
    position: int
    delegate: str
    array: Array


@dataclass(frozen=True)
class Divergence:
    """The first step that TOSA computes otherwise, and the operator that shows it."""

    step: Step
    made: Made
    message: str


def first_divergence(
    program: Program,
    inputs: Sequence[Any],
    delegates: Sequence[Delegate],
    calls: Sequence[Call],
    reference: Target,
) -> Divergence | None:
    """Walk ``program`` beside the reference model's intermediates of ``calls``; None where nothing diverges.

    The delegates' graphs must have been lowered with ``located``. The first control flow ends the search:
    operators inside it go by names that say nothing outside, and what follows is fed by them.
    """
    made = _made(delegates, calls, reference)
    found: list[Divergence] = []

    steps = {step.name: step for step in program.steps}
    branching = next((number for number, step in enumerate(program.steps) if step.nested), len(steps))
    before = {step.name for step in program.steps[:branching]}

    def compare(step: Step, args: tuple[Any, ...], result: Any) -> Any:
        searched = step.name in before and not _moves_data(step, steps)
        candidates = _candidates(step, made) if searched else []
        if found or not candidates or not isinstance(result, torch.Tensor):
            return result
        expected, quantised = to_numpy(result), step.operator.startswith(_QUANTISE)
        closest = _closest(candidates, expected)
        if closest is None:
            return result
        tensor, array = closest
        right = _right(array, expected, quantised=quantised)
        if not right.all():
            if _right(np.sort(array, axis=None), np.sort(expected, axis=None), quantised=quantised).all():
                # The backend moves data elsewhere than the program does: the values are there.
                return result
            found.append(Divergence(step, tensor, describe_wrong("output 0", array, expected, right)))
        return from_numpy(array)

    program.walk(inputs, after=compare)
    return found[0] if found else None


def _made(
    delegates: Sequence[Delegate], calls: Sequence[Call], reference: Target
) -> Mapping[str, list[Made]]:
    """Every TOSA tensor by the names of the steps that it was made from."""
    made: dict[str, list[Made]] = defaultdict(list)
    for call in calls:
        delegate = delegates[call.delegate]
        graph = read_graph(delegate.tosa)
        values = _intermediates(graph, call.inputs, reference)
        for position, operator in enumerate(graph.operators):
            if operator.name in CONSTANTS:
                continue
            for name in (name for name in operator.outputs if name in values):
                for node in origin(operator).nodes:
                    made[node].append(Made(operator, position, delegate.name, values[name]))
    return made


def _intermediates(graph: TosaGraph, inputs: Sequence[Array], reference: Target) -> dict[str, Array]:
    shown = visible(graph, pieces(graph))
    values = dict(zip(graph.inputs, inputs, strict=True))
    reference.load([as_delegate(shown, values)])
    return dict(zip(shown.outputs, reference.run(0, list(inputs)).arrays, strict=True))


def _candidates(step: Step, made: Mapping[str, list[Made]]) -> list[Made]:
    if not step.operator.startswith(_QUANTISE):
        return made.get(step.name, [])
    source = step.args[0]
    return [*made.get(step.name, []), *(made.get(source.name, []) if isinstance(source, Ref) else [])]


def _moves_data(step: Step, steps: Mapping[str, Step]) -> bool:
    """Whether the step, or what it quantises, only moves data: the backend may do that elsewhere."""
    source = step.args[0] if step.operator.startswith(_QUANTISE) else Ref(step.name)
    made_by = steps.get(source.name) if isinstance(source, Ref) else None
    return made_by is not None and moves_data(made_by.operator)


def _closest(candidates: Sequence[Made], expected: Array) -> tuple[Made, Array] | None:
    """The last candidate of the result's dtype and size, its axes in the order that fits best."""
    for candidate in reversed(candidates):
        if candidate.array.dtype == expected.dtype and candidate.array.size == expected.size:
            layouts = _layouts(candidate.array, expected.shape)
            return candidate, min(layouts, key=lambda array: _distance(array, expected))
    return None


def _distance(actual: Array, expected: Array) -> float:
    with np.errstate(invalid="ignore"):
        gap = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    return float(np.nan_to_num(gap, nan=np.inf).max(initial=0.0))


def _layouts(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """The array in every order of its axes that gives ``shape``; in its own order where none does."""
    orders = (
        order
        for order in itertools.permutations(range(array.ndim))
        if tuple(array.shape[axis] for axis in order) == shape
    )
    if array.ndim > 6 or (first := next(orders, None)) is None:
        yield array.reshape(shape)
        return
    for order in itertools.chain([first], orders):
        yield array.transpose(order)


def _right(actual: Array, expected: Array, *, quantised: bool) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if quantised:
        return np.abs(actual.astype(np.int64) - expected.astype(np.int64)) <= _LSB
    if expected.dtype.kind in "biu":
        return np.asarray(actual == expected)
    same = same_class(actual, expected)
    finite = np.isfinite(expected.astype(np.float64)) & same
    kept = sqnr(actual[finite].astype(np.float64), expected[finite].astype(np.float64))
    if kept is None or kept >= signal_budget(str(expected.dtype)) - PEER_MARGIN_DB:
        return same
    return same & ((actual == expected) | ~finite)
