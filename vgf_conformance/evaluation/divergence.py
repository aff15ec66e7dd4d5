"""Finds the first step of a PyTorch program that its TOSA graphs compute otherwise.

The program (quantised, or as exported) is walked on the sample's inputs. Wherever a TOSA tensor was made from
a step, the two are compared as ``check`` compares outputs, and the walk goes on with TOSA's value: so a step
is judged by what it adds itself, and the first one that adds too much is the one.

A step without a tensor of its own (it was fused, moved or lost) stays open, and is part of the next
comparison: steps that only move data, since the backend may do that elsewhere; one that was fused into the
step before it, whose tensor then has the value of both. What is wrong lies between tensors that are right and
the first one that is not (``attribution.region``); ``evaluation.suspect`` says which of these steps and
operators it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vgf_conformance.attribution.region import MOVEMENT, Made, Seen
from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.comparison.lowering import MANY_OPERATORS, Expected, describe_wrong, judge_output
from vgf_conformance.comparison.propagation import NotCovered, propagate
from vgf_conformance.evaluation.layouts import Layout, closest
from vgf_conformance.evaluation.ties import TIE
from vgf_conformance.evaluation.undefined import Watch
from vgf_conformance.evaluation.windows import QUANTISE, Window, Windows
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import Program, Ref, Step, function, resolve
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.targets.base import Array

DEQUANTISE = "quantized_decomposed.dequantize"
#: What the same numbers may differ by in fp32, computed elsewhere in the program.
_NOISE = 1e-5


@dataclass(frozen=True)
class Judged:
    """One TOSA tensor against a step: ``message`` says what is wrong, ``share`` how noisy it is."""

    right: bool
    rule: str
    message: str
    share: float


@dataclass(frozen=True)
class Wrong:
    """The first tensor that differs from its step.

    ``cone`` are the steps between those that are right and this one, itself last; ``region`` the positions of
    the TOSA operators between right tensors and this one.
    """

    step: Step
    cone: tuple[str, ...]
    made: Made
    layout: Layout
    expected: Array
    region: tuple[int, ...]
    judged: Judged


@dataclass(frozen=True)
class Loudest:
    """The right step that adds most noise of its own."""

    step: Step
    made: Made
    share: float
    message: str


class Comparing:
    """A walk of ``program`` beside the tensors of ``seen``; ``wrong`` is what it found.

    ``values`` are those of the walk, TOSA's where it has any; ``cones`` the open steps that lead to each, and
    ``right`` the tensors of each call that are right.
    """

    def __init__(self, program: Program, inputs: Sequence[Any], seen: Sequence[Seen]) -> None:
        self.program = program
        self.seen = seen
        self.steps = {step.name: step for step in program.steps}
        self.order = {step.name: number for number, step in enumerate(program.steps)}
        self.values: dict[str, Any] = {**program.constants, **dict(zip(program.inputs, inputs, strict=True))}
        self.cones: dict[str, tuple[str, ...]] = {}
        self.right: list[set[str]] = [set(item.graph.inputs) for item in seen]
        self.wrong: Wrong | None = None
        self.loudest: Loudest | None = None
        self.named: dict[str, list[Made]] = defaultdict(list)
        self._unnamed: list[Made] = []
        self._undefined = Watch()
        self._windows = Windows(program)
        self._paired: dict[str, Made] = {}
        self._readers: dict[str, list[str]] = defaultdict(list)
        # Operators inside control flow go by names that say nothing outside, and what follows is fed by them.
        nested = (number for number, step in enumerate(program.steps) if step.nested)
        self._end = next(nested, len(self.steps))
        self._sort_tensors()
        for step in program.steps:
            for name in step.reads:
                self._readers[name].append(step.name)

    def walk(self) -> list[Any]:
        """Fill ``values`` and look for what is wrong; returns the program's outputs."""
        inputs = [self.values[name] for name in self.program.inputs]
        return self.program.walk(inputs, after=self._after)

    def again(self, cone: Sequence[str], given: Mapping[str, Any], *, widened: bool = False) -> Any:
        """The value of the last step of ``cone`` with some values ``given``, in fp64 where ``widened``.

        Whatever the steps raise passes through.
        """
        values = dict(given)
        with torch.no_grad():
            for name in cone:
                if name in values:
                    continue
                step = self.steps[name]
                for read in step.reads - values.keys():
                    values[read] = _widened(self.values[read]) if widened else self.values[read]
                args, keywords = resolve(step.args, values), resolve(step.keywords, values)
                values[name] = function(step.operator)(*args, **keywords)
        return values[cone[-1]]

    def judge(self, cone: Sequence[str], made: Made, layout: Layout, result: torch.Tensor) -> Judged:
        """A TOSA tensor against ``result``, the value of the last step of ``cone``."""
        actual, expected = _as_stored(layout.apply(made.array), to_numpy(result)), to_numpy(result)
        if cone[-1] in self._undefined.masks:
            # What PyTorch leaves undefined is right whatever it is.
            mask = self._undefined.masks[cone[-1]].broadcast_to(result.shape).numpy()
            actual = np.where(mask, expected, actual)
        if self.steps[cone[-1]].operator.startswith(QUANTISE):
            return _quantised(actual, expected, self._either_way(cone[-1]))
        error = self._error(made, layout)
        value = self._precise(cone, expected)
        if value is None and error is not None:
            # The program's own rounding, of the same size as the graph's, counts too.
            error = 2.0 * error.astype(np.float64)
        return _judged(actual, Expected("", expected if value is None else value, expected, error))

    def _either_way(self, name: str) -> NDArray[np.bool_]:
        """Which elements a quantisation may round to either side: all where its window is not known."""
        step, window = self.steps[name], self._windows.of(name)
        source = step.args[0]
        value = self.values[source.name] if isinstance(source, Ref) else source
        near = TIE + (window or Window(0.5))
        return np.asarray(near.near_tie(value.double() / float(step.args[1])).numpy())

    def is_moved(self, step: Step) -> bool:
        """Whether the step, or what it quantises, only moves data: the backend may do that elsewhere."""
        source = step.args[0] if step.operator.startswith(QUANTISE) else Ref(step.name)
        made_by = self.steps.get(source.name) if isinstance(source, Ref) else None
        return made_by is not None and moves_data(made_by.operator)

    def region(self, made: Made) -> tuple[int, ...]:
        """The operators between right tensors and ``made``."""
        return tuple(self.seen[made.call].region(made.tensor, self.right[made.call]))

    def _sort_tensors(self) -> None:
        for call, item in enumerate(self.seen):
            for made in item.made(call):
                if made.operator.name in MOVEMENT:
                    continue
                if step := item.steps.get(made.position):
                    self.named[step].append(made)
                else:
                    self._unnamed.append(made)

    def _after(self, step: Step, args: tuple[Any, ...], result: Any) -> Any:
        self._undefined(step, args, result)
        if self.wrong is None and self.order.get(step.name, self._end) < self._end:
            result = self._compared(step, result)
        self.values[step.name] = result
        return result

    def _compared(self, step: Step, result: Any) -> Any:
        cone = self._cone(step)
        self.cones[step.name] = cone
        skipped = self.is_moved(step) or step.operator.startswith(DEQUANTISE)
        if skipped or not isinstance(result, torch.Tensor):
            return result
        expected = to_numpy(result)
        made = self._candidate(cone, expected)
        if made is None:
            return result
        layout = closest(made.array, expected)
        judged = self.judge(cone, made, layout, result)
        if judged.right:
            return self._accept(step, made, layout, judged, result.dtype)
        if not self._is_fused(step) and not self._holds_the_same(step, made, expected):
            self.wrong = Wrong(step, cone, made, layout, expected, self.region(made), judged)
        return result

    def _accept(
        self, step: Step, made: Made, layout: Layout, judged: Judged, dtype: torch.dtype
    ) -> torch.Tensor:
        self.cones[step.name] = ()
        self.right[made.call].add(made.tensor)
        self._paired[step.name] = made
        if judged.share > 0 and (self.loudest is None or judged.share > self.loudest.share):
            self.loudest = Loudest(step, made, judged.share, judged.message)
        return from_numpy(layout.apply(made.array)).to(dtype)

    def _cone(self, step: Step) -> tuple[str, ...]:
        names = {name for read in step.reads for name in self.cones.get(read, ())}
        return (*sorted(names, key=self.order.__getitem__), step.name)

    def _candidate(self, cone: Sequence[str], expected: Array) -> Made | None:
        """The last tensor of the latest of the steps that fits; else one that nothing is noted of."""
        for name in reversed(cone):
            fitting = [made for made in self._own(name, expected) if _fits(made.array, expected)]
            if fitting:
                return fitting[-1]
        if all(self._only_quantises(name) for name in cone):
            return None
        fitting = [
            made for made in self._unnamed if _fits(made.array, expected) and self._is_fed_by(cone, made)
        ]
        gaps = [_gap(made.array, expected) for made in fitting]
        return fitting[int(np.argmin(gaps))] if fitting else None

    def _only_quantises(self, name: str) -> bool:
        step = self.steps[name]
        return step.operator.startswith((QUANTISE, DEQUANTISE)) or moves_data(step.operator)

    def _own(self, name: str, expected: Array) -> list[Made]:
        """The tensors of a step; where its result is quantised in floating point (FP+INT), those before that.

        ExecuTorch notes the operators of such a quantisation, and of the way back, with the step itself.
        """
        named = self.named.get(name, [])
        quantised = any(self.steps[reader].operator.startswith(QUANTISE) for reader in self._readers[name])
        integers = [made.position for made in named if made.array.dtype.kind in "iu"]
        if expected.dtype.kind in "biu" or not quantised or not integers:
            return named
        return [made for made in named if made.position < integers[0]]

    def _is_fed_by(self, cone: Sequence[str], made: Made) -> bool:
        """Whether an operator reads only what is right, and something that the steps of ``cone`` read."""
        seen, right = self.seen[made.call], self.right[made.call]
        sources = {seen.source(name) for name in seen.read_by([made.position])}
        read = {name for step in cone for name in self.steps[step].reads}
        pairs = [self._paired[name] for name in read if name in self._paired]
        fed = {pair.tensor for pair in pairs if pair.call == made.call}
        if not read.isdisjoint(self.program.inputs):
            fed.update(seen.graph.inputs)
        return made.tensor not in right and sources <= right and not sources.isdisjoint(fed)

    def _is_fused(self, step: Step) -> bool:
        """Whether the step's tensor may have the value of the next step, which has none of its own."""
        readers = self._readers[step.name]
        if len(readers) != 1:
            return False
        reader = self.steps[readers[0]]
        apart = (QUANTISE, DEQUANTISE, "_operator:")
        return not (self.named.get(reader.name) or self.is_moved(reader) or reader.operator.startswith(apart))

    def _holds_the_same(self, step: Step, made: Made, expected: Array) -> bool:
        """Whether the values are there, but elsewhere: the backend moves data at another place."""
        one, two = np.sort(made.array, axis=None), np.sort(expected, axis=None)
        if step.operator.startswith(QUANTISE):
            return _quantised(one, two, np.ones(two.shape, bool)).right
        return _same_numbers(one, two)

    def _precise(self, cone: Sequence[str], expected: Array) -> Array | None:
        if expected.dtype.kind in "biu":
            return None
        try:
            return to_numpy(self.again(cone, {}, widened=True).double())
        except Exception:  # not every operator has a form for fp64
            return None

    def _error(self, made: Made, layout: Layout) -> Array | None:
        """What TOSA allows the operators since the last right tensors; None where no bound means anything."""
        seen, region = self.seen[made.call], self.region(made)
        if len(seen.graph.operators) > MANY_OPERATORS or not region:
            return None
        graph = seen.cut(region, made.tensor)
        inputs = [seen.values[name] for name in graph.inputs]
        if not any(array.dtype.kind not in "biu" for array in inputs) and made.array.dtype.kind in "biu":
            return None
        try:
            (bounded,) = propagate(graph, inputs, rounded_constants=True)
        except NotCovered:
            return None
        return layout.apply(bounded.error)


def _judged(actual: Array, expected: Expected) -> Judged:
    comparison = judge_output(0, actual, expected)
    right = expected.native
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.square(actual.astype(np.float64) - right.astype(np.float64))
    signal = float(np.nan_to_num(np.square(right.astype(np.float64)), posinf=0.0).sum())
    noise = float(np.nan_to_num(gap, posinf=0.0).sum())
    share = noise / signal if signal else 0.0
    return Judged(bool(comparison.passed), comparison.rule, comparison.message, share)


def _quantised(actual: Array, expected: Array, either_way: NDArray[np.bool_]) -> Judged:
    gap = np.abs(actual.astype(np.int64) - expected.astype(np.int64))
    right = (gap == 0) | ((gap == 1) & either_way)
    message = describe_wrong("output 0", actual, expected, right if not right.all() else gap == 0)
    return Judged(bool(right.all()), "1 LSB at ties", message, float(np.mean(gap)))


def _same_numbers(one: Array, two: Array) -> bool:
    """Whether sorted numbers are equal but for noise, small ones among large ones as well."""
    if one.dtype.kind in "biu":
        return bool((one == two).all())
    left, right = one.astype(np.float64), two.astype(np.float64)
    usual = float(np.median(np.abs(right[np.isfinite(right)]))) if np.isfinite(right).any() else 0.0
    relative = _NOISE * 2.0 ** (23 - FORMATS[str(two.dtype)].fraction)
    return bool(np.allclose(left, right, rtol=relative, atol=relative * usual, equal_nan=True))


def _fits(array: Array, expected: Array) -> bool:
    # ExecuTorch computes indices in int32 where PyTorch has int64.
    same = array.dtype == expected.dtype or (expected.dtype == np.int64 and array.dtype == np.int32)
    return same and array.size == expected.size


def _as_stored(array: Array, expected: Array) -> Array:
    return array.astype(expected.dtype) if _fits(array, expected) else array


def _gap(array: Array, expected: Array) -> float:
    found = closest(array, expected).apply(array).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(np.abs(found - expected.astype(np.float64)), nan=np.inf).sum())


def _widened(value: Any) -> Any:
    return torch.utils._pytree.tree_map(
        lambda leaf: leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf,
        value,
    )
