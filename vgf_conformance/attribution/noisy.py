"""Does a device conform whose results of several operators are too far off? Its operators tell.

TOSA's requirements hold operator by operator, and a chain of conforming operators conforms, however its
errors add up: a limit to noise (``comparison.signal``) is this harness's own, and a subnormal result that
is flushed to zero may make the next logarithm infinite. So where floating-point results of several operators
fail, the graph runs once more with all intermediate results visible, and each operator is judged by its own
bound on what the device itself fed it. The outputs judged are those of the first run: the intermediate
results have to lead to them.

The right results are exact arithmetic's, rounded: the reference model need not be there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vgf_conformance.attribution.cut import Convert, Piece, alone, as_delegate, pieces, visible
from vgf_conformance.attribution.origin import origin
from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.comparison.device import LARGEST_PROPAGATED, judge_device
from vgf_conformance.comparison.digests import digests
from vgf_conformance.comparison.operators.base import RANGES, Bounded
from vgf_conformance.comparison.propagation import NotCovered, evaluate, exactly, propagate
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, TosaTensor, storage
from vgf_conformance.results.record import Comparison, FirstWrong, OutputDigest
from vgf_conformance.targets.base import Array, Target, TargetFailure
from vgf_conformance.vocabulary import Finding, Stage

#: Of how many operators, the noisiest by themselves, it is asked what they add to an output's noise.
_ASKED = 8


class Unseen(Exception):
    """Why the intermediate results of a call cannot be seen."""


@dataclass(frozen=True)
class JudgedCall:
    """A delegate call that ran, with its comparisons; arrays are in memory order."""

    delegate: Delegate
    graph: TosaGraph
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    comparisons: Sequence[Comparison]


@dataclass(frozen=True)
class Closer:
    """What a closer look at the calls of a case found.

    ``visible`` names the intermediate results, a list for each call, empty where it was not needed or not
    to be had. ``first_wrong`` is the first operator outside of its own bound.
    """

    visible: list[list[OutputDigest]]
    first_wrong: FirstWrong | None


@dataclass(frozen=True)
class Outside:
    """An operator, the last of those judged together, whose result is outside of its own bound."""

    operator: TosaOperator
    position: int
    comparison: Comparison


def only_noisy(comparisons: Sequence[Comparison]) -> bool:
    """Whether something fails, and of all that does the operators tell whether it conforms."""
    failed = [item for item in comparisons if item.passed is False]
    return bool(failed) and all(item.finding is Finding.NOISY for item in failed)


def with_all_visible(delegate: Delegate, graph: TosaGraph, convert: Convert) -> Delegate:
    """``delegate``, whose graph is ``graph``, with every intermediate result an output that can be one.

    Raises ValueError where that cannot be written, and whatever ``convert`` raises.
    """
    shown = _shown(graph)
    nothing = np.zeros(())
    shapes = {
        name: np.broadcast_to(nothing, port.shape)
        for name, port in zip(graph.inputs, delegate.inputs, strict=True)
    }
    return as_delegate(shown, shapes, convert)


def look_closer(
    target: Target,
    loaded: Sequence[Delegate],
    calls: Sequence[JudgedCall],
    shown: Callable[[JudgedCall], Delegate],
) -> Closer:
    """Judge those of ``calls`` that are only noisy operator by operator, and settle their comparisons.

    One passes, with the finding NOISY, where every operator of its graph is within its own bound, and stays
    failed otherwise, its message saying why. ``shown`` gives the delegate with all intermediate results
    visible (``with_all_visible``), or raises Unseen; that of call n is number ``len(loaded)`` + n on
    ``target``. The target's failures are part of the message.
    """
    found: list[list[OutputDigest]] = [[] for _ in calls]
    first_wrong: FirstWrong | None = None
    looked: dict[int, Delegate] = {}
    for number, call in enumerate(calls):
        if not only_noisy(call.comparisons):
            continue
        try:
            looked[number] = shown(call)
        except Unseen as error:
            _unsettled(call, str(error))
    # Each has the place of its call, whichever others are looked at.
    target.load([*loaded, *(looked.get(number, call.delegate) for number, call in enumerate(calls))])
    for number in looked:
        call = calls[number]
        try:
            outputs = target.run(len(loaded) + number, call.inputs)
            for _, fault in outputs.faults():
                raise Unseen(fault)
        except (TargetFailure, Unseen) as failure:
            _unsettled(call, f"with all intermediate results visible: {failure}")
            continue
        found[number] = digests(outputs.arrays)
        wrong = settle(call, outputs.arrays)
        first_wrong = first_wrong or wrong
    return Closer(found, first_wrong)


def _shown(graph: TosaGraph) -> TosaGraph:
    """``graph`` with its intermediate results as outputs, but for products with zero.

    The converter folds those to constants; as outputs nothing writes them, and what reads them reads that.
    """
    zeros = {
        name
        for name, tensor in graph.tensors.items()
        if tensor.data is not None and tensor.dtype in FORMATS and not tensor.data.any()
    }
    products = {
        name
        for operator in graph.operators
        if operator.name == "MUL" and not zeros.isdisjoint(operator.inputs)
        for name in operator.outputs
    }
    whole = visible(graph, pieces(graph))
    return replace(whole, outputs=tuple(name for name in whole.outputs if name not in products))


def settle(call: JudgedCall, intermediate: Sequence[Array], folded: Container[int] = ()) -> FirstWrong | None:
    """Settle the comparisons of a call that is only noisy by its visible graph's outputs.

    Gives the operator that is outside of its own bound, which makes them failures.
    """
    graph = call.graph
    try:
        seen = _filled(graph, _seen(call, intermediate))
        wrong = outside(graph, seen)
    except Unseen as error:
        _unsettled(call, str(error))
        return None
    except NotCovered as error:
        _unsettled(call, f"{error} is not known here")
        return None
    for comparison in call.comparisons:
        if comparison.finding is not Finding.NOISY:
            continue
        if wrong is None:
            comparison.passed = True
            output = _output_of(graph, comparison)
            place = None if output is None else loudest(graph, seen, output)
            comparison.message += "; every operator is within its own bound on what it was fed"
            if place is not None:
                comparison.message += f", {graph.operators[place].name} (number {place}) adds most"
        else:
            comparison.finding = None
            comparison.message += (
                f"; {wrong.operator.name} (number {wrong.position}) is outside of its own bound on what it "
                f"was fed: {wrong.comparison.message}"
            )
    return None if wrong is None else _recorded(call.delegate.name, wrong)


def _output_of(graph: TosaGraph, comparison: Comparison) -> str | None:
    """The graph's output that a comparison is of; None where it is of the user's output, and may be any."""
    if comparison.delegate is not None:
        return graph.outputs[comparison.output]
    return graph.outputs[0] if len(graph.outputs) == 1 else None


def outside(graph: TosaGraph, seen: Mapping[str, Array]) -> Outside | None:
    """The first operator whose result in ``seen`` is outside of its own bound on its inputs there.

    Raises NotCovered for an operator that is not known here.
    """
    for piece in pieces(graph):
        part = alone(graph, piece)
        inputs = [seen[name] for name in part.inputs]
        right = [_rounded(item) for item in propagate(part, inputs)]
        judged = judge_device(
            part, inputs, [seen[name] for name in part.outputs], right, target="", delegate=""
        )
        worst = next((comparison for comparison in judged if not comparison.passed), None)
        if worst is not None:
            position = piece.operators[-1]
            return Outside(graph.operators[position], position, worst)
    return None


def loudest(graph: TosaGraph, seen: Mapping[str, Array], output: str) -> int | None:
    """The position of the operator that adds most to the noise of a floating-point ``output``.

    What one adds is what its own errors, on what the device fed it, do to the output in exact arithmetic.
    That is asked of the _ASKED whose results are noisiest by themselves; of a large graph the noisiest is
    taken. None where no operator has any noise.
    """
    own = [(piece, errors) for piece in pieces(graph) if (errors := _own_errors(graph, piece, seen))]
    asked = sorted(own, key=lambda item: -_share(item[1], seen))[:_ASKED]
    if len(asked) > 1 and len(graph.operators) <= LARGEST_PROPAGATED:
        exact = evaluate(graph, [seen[name] for name in graph.inputs])

        def added(item: tuple[Piece, dict[str, Array]]) -> float:
            given = {
                name: Bounded(exact[name].value + error, np.zeros(error.shape), exact[name].dtype)
                for name, error in item[1].items()
            }
            inputs = [seen[name] for name in graph.inputs]
            changed = evaluate(graph, inputs, given=given)[output].value
            with np.errstate(invalid="ignore"):
                return _power(_finite(changed - exact[output].value))

        asked.sort(key=added, reverse=True)
    return asked[0][0].operators[-1] if asked else None


def _own_errors(graph: TosaGraph, piece: Piece, seen: Mapping[str, Array]) -> dict[str, Array]:
    """How far each floating result of a piece is from exact arithmetic on what it was fed, where it is."""
    part = alone(graph, piece)
    exact = propagate(part, [seen[name] for name in part.inputs])
    with np.errstate(invalid="ignore"):
        errors = {
            name: _finite(exactly(seen[name], item.dtype).value - item.value)
            for name, item in zip(part.outputs, exact, strict=True)
            if item.floating
        }
    return {name: error for name, error in errors.items() if error.any()}


def _share(errors: Mapping[str, Array], seen: Mapping[str, Array]) -> float:
    """The noise of the noisiest result as a share of its signal."""
    shares = []
    for name, error in errors.items():
        signal = _power(_finite(seen[name].astype(np.float64)))
        shares.append(_power(error) / signal if signal else math.inf)
    return max(shares)


def _power(array: Array) -> float:
    return float(np.square(array).sum())


def _finite(array: Array) -> Array:
    finite: Array = np.where(np.isfinite(array), array, 0.0)
    return finite


def correctly_rounded(graph: TosaGraph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs where every operator's result is exact arithmetic's on its inputs, rounded once.

    No device can be asked for more. Raises NotCovered for an operator that is not known here.
    """
    seen = _filled(graph, dict(zip(graph.inputs, inputs, strict=True)))
    return [seen[name] for name in graph.outputs]


def _filled(graph: TosaGraph, seen: dict[str, Array]) -> dict[str, Array]:
    """``seen`` with the right results, for what was fed to them, where there are none; raises NotCovered."""
    for piece in pieces(graph):
        if not seen.keys() >= set(piece.writes):
            part = alone(graph, piece)
            right = propagate(part, [seen[name] for name in part.inputs])
            seen = {**dict(zip(part.outputs, map(_rounded, right), strict=True)), **seen}
    return seen


def _seen(call: JudgedCall, intermediate: Sequence[Array]) -> dict[str, Array]:
    """Every tensor that can be seen, by name, the outputs as the first run gave them."""
    graph = call.graph
    names = _shown(graph).outputs
    if len(names) != len(intermediate):
        raise Unseen(f"{len(intermediate)} intermediate results, should be {len(names)}")
    given = dict(zip((*names, *graph.outputs), (*intermediate, *call.outputs), strict=True))
    seen = {name: _as_declared(array, graph.tensors[name]) for name, array in given.items()}
    for name, array in seen.items():
        declared = storage(graph.tensors[name].dtype)
        if array.dtype != declared or array.shape != graph.tensors[name].shape:
            raise Unseen(f"the intermediate result {name} is {array.dtype} {list(array.shape)}")
    return {**dict(zip(graph.inputs, call.inputs, strict=True)), **seen}


def _as_declared(array: Array, tensor: TosaTensor) -> Array:
    """A result with the graph's own type and rank, where it came as raw bits or with rank 0 as [1]."""
    stored = storage(tensor.dtype)
    if tensor.dtype in FORMATS and array.dtype.kind in "uV" and array.dtype.itemsize == stored.itemsize:
        array = array.view(stored)
    scalar = array.size == 1 and set(array.shape) | set(tensor.shape) <= {1}
    return array.reshape(tensor.shape) if scalar else array


def _rounded(exact: Bounded) -> Array:
    """The right result in the graph's own type."""
    value = exact.value
    if exact.dtype in RANGES:
        value = np.clip(value, *RANGES[exact.dtype])
    with np.errstate(over="ignore"):
        rounded: Array = value.astype(storage(exact.dtype))
    return rounded


def _unsettled(call: JudgedCall, why: str) -> None:
    for comparison in call.comparisons:
        if comparison.finding is Finding.NOISY:
            comparison.message += f"; whether its operators conform cannot be told: {why}"


def _recorded(delegate: str, wrong: Outside) -> FirstWrong:
    return FirstWrong(
        stage=Stage.RUN,
        delegate=delegate,
        operator=wrong.operator.name,
        position=wrong.position,
        origin=str(origin(wrong.operator)),
        rule=wrong.comparison.rule,
        message=wrong.comparison.message,
    )


def noisy_notes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What a record says of comparisons that pass although they are noisy."""
    for item in comparisons:
        if item.passed and item.finding is Finding.NOISY:
            yield f"noisy: {item.delegate or item.pair}, {item.message}"
