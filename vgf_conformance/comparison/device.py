"""Is the device right? Its outputs against the reference model's, delegate by delegate.

A device may differ from the reference as far as both may differ from exact arithmetic,
so the judgement is against the exact result and its bound (``propagation``); the
reference must lie inside too, else bound or reference is off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison import bounds, metrics
from vgf_conformance.comparison.operators import OPERATORS
from vgf_conformance.comparison.operators.base import Bounded
from vgf_conformance.comparison.propagation import (
    LAYOUT,
    dot_product_terms,
    evaluate,
    single_operator,
)
from vgf_conformance.comparison.signal import PEER_MARGIN_DB, noise_share, signal_budget
from vgf_conformance.formats.tosa import TosaGraph, TosaTensor, storage
from vgf_conformance.results.record import Comparison
from vgf_conformance.vocabulary import Finding, Stage

#: Beyond this many operators a propagated bound says little and costs much.
LARGEST_PROPAGATED = 256

Array = NDArray[Any]


def judge_device(
    graph: TosaGraph,
    inputs: Sequence[Array],
    actual: Sequence[Array],
    reference: Sequence[Array],
    *,
    target: str,
    delegate: str,
    precise: Callable[[], Sequence[Array] | None] = lambda: None,
) -> list[Comparison]:
    """Judge each output of one delegate, run on ``target``, against the reference model's.

    All arrays are in the graph's order and in memory layout, as the graph declares them.
    Returns one comparison for each output that the graph or the device has; a failure of
    one leaves the others judged. Floating-point results of several operators that fail have the finding
    NOISY: whether the device conforms, the operators tell (``attribution.noisy``). ``precise`` is
    asked for the outputs in fp64 where the graph is too large for a bound, or not known here; it gives
    None where it cannot say. Raises ValueError where ``inputs`` or ``reference`` do not fit the graph:
    the harness's own fault, not the device's.
    """
    if len(reference) != len(graph.outputs):
        raise ValueError(f"the reference has {len(reference)} outputs, the graph {len(graph.outputs)}")
    judge = _Judge(graph, inputs, precise)
    comparisons = []
    for index in range(max(len(actual), len(graph.outputs))):
        opinion = _misfit(graph, index, actual, reference) or judge.opinion(
            index, actual[index], reference[index]
        )
        comparison = Comparison(
            pair=f"{target}/reference",
            stage=Stage.RUN,
            output=index,
            passed=opinion.passed,
            rule=opinion.rule,
            metrics=None,
            headroom=opinion.headroom,
            delegate=delegate,
            message=opinion.message and f"output {index}{opinion.message}",
            finding=Finding.NOISY if judge.is_for_operators(opinion, index) else None,
        )
        if opinion.measured:
            tensor = graph.tensors[graph.outputs[index]]
            pair = _stored(actual[index], tensor.dtype), _stored(reference[index], tensor.dtype)
            comparison.metrics = metrics.measure(*pair, tensor.dtype)
            comparison.metrics.wrong = opinion.wrong
            comparison.histogram, comparison.histogram_unit = metrics.histogram(*pair, tensor.dtype)
        comparisons.append(comparison)
    return comparisons


@dataclass(frozen=True)
class _Opinion:
    passed: bool
    rule: str
    headroom: float | None = None
    message: str = ""
    measured: bool = True
    wrong: int | None = None
    doubtful: bool = False


def _misfit(
    graph: TosaGraph, index: int, actual: Sequence[Array], reference: Sequence[Array]
) -> _Opinion | None:
    """The failure of an output that cannot be compared at all, else None."""
    message = ""
    if len(actual) <= index or len(graph.outputs) <= index:
        message = f": {len(actual)} outputs, should be {len(graph.outputs)}"
    else:
        expected = storage(graph.tensors[graph.outputs[index]].dtype)
        got = _stored(actual[index], graph.tensors[graph.outputs[index]].dtype)
        if got.shape != reference[index].shape:
            message = f": shape {list(got.shape)}, should be {list(reference[index].shape)}"
        elif got.dtype != expected:
            message = f": {got.dtype}, should be {expected}"
    return _Opinion(False, "shape and dtype", message=message, measured=False) if message else None


def _stored(data: Array, dtype: str) -> Array:
    """``data`` as the graph's dtype, where it came as raw bits of its width (bfloat16)."""
    stored = storage(dtype)
    raw = data.dtype.kind in "uV" and data.dtype.itemsize == stored.itemsize and dtype in bounds.FORMATS
    return data.view(stored) if raw else data


class _Judge:
    """The judgements of one run of one graph, which share one propagation."""

    def __init__(
        self, graph: TosaGraph, inputs: Sequence[Array], precise: Callable[[], Sequence[Array] | None]
    ) -> None:
        self.graph = graph
        self.inputs = inputs
        self._precise = precise
        self.version = bounds.version_of(graph.version)
        self.single = single_operator(graph)
        self.propagated: dict[str, Bounded] | None = None

    @functools.cached_property
    def exact(self) -> Sequence[Array] | None:
        """All outputs in fp64, asked for once: they may take a run of the reference model's program."""
        return self._precise()

    def is_for_operators(self, opinion: _Opinion, index: int) -> bool:
        """Whether an output fails as a chain of conforming operators can, and the reference is no worse."""
        return (
            not opinion.passed
            and opinion.measured
            and not opinion.doubtful
            and self.single is None
            and self.graph.tensors[self.graph.outputs[index]].dtype in bounds.FORMATS
        )

    def opinion(self, index: int, actual: Array, reference: Array) -> _Opinion:
        tensor = self.graph.tensors[self.graph.outputs[index]]
        actual, reference = _stored(actual, tensor.dtype), _stored(reference, tensor.dtype)
        rule = self._rule(tensor)
        if actual.tobytes() == reference.tobytes():
            return _Opinion(True, rule, 0.0)
        if rule == "exact":
            return _verdict(rule, actual != reference, actual, reference, np.inf)
        if not rule.startswith("tosa"):
            exact = self.exact[index] if tensor.dtype in bounds.FORMATS and self.exact is not None else None
            return _by_signal(rule, tensor.dtype, actual, reference, exact)
        if tensor.dtype in bounds.FORMATS:
            return self._by_bound(rule, tensor, actual, reference)
        return _by_distance(rule, self._bounded(tensor), actual, reference)

    def _rule(self, tensor: TosaTensor) -> str:
        names = [operator.name for operator in self.graph.operators if operator.name not in LAYOUT]
        if tensor.dtype not in bounds.FORMATS and _deterministic(self.graph):
            return "exact"
        if len(names) > LARGEST_PROPAGATED or not OPERATORS.keys() >= set(names):
            return _signal_rule(tensor.dtype)
        return f"tosa-{self.version} {self.single or 'propagated'}"

    def _bounded(self, tensor: TosaTensor) -> Bounded:
        if self.propagated is None:
            self.propagated = evaluate(self.graph, self.inputs)
        return self.propagated[tensor.name]

    def _by_bound(self, rule: str, tensor: TosaTensor, actual: Array, reference: Array) -> _Opinion:
        """Judge floats by the exact result and its bound."""
        exact, dtype = self._bounded(tensor), tensor.dtype
        if not bounds.within(reference, exact.value, exact.error, dtype).all():
            opinion = _by_signal(_signal_rule(dtype), dtype, actual, reference)
            doubt = (
                ": the reference lies outside the propagated bound, so one of the two is off; judged by SQNR"
            )
            return replace(opinion, message=opinion.message or doubt, doubtful=True)
        inside = bounds.within(actual, exact.value, exact.error, dtype)
        if self.single is None:
            inside &= metrics.same_class(actual, reference) | np.isfinite(exact.error)
        used = bounds.headroom(actual, exact.value, exact.error, dtype)
        if self.single is None and inside.all():
            # A bound may be infinite, or larger than the signal.
            noise = noise_share(actual, exact.value, reference, dtype)
            if noise > 1:
                text = f": within the bound, but {noise:.3g} times the noise that the reference's allows"
                text += _worst(actual != reference, actual, reference)
                return _Opinion(False, rule, noise, text)
            used = max(used, noise)
        terms = dot_product_terms(self.graph, self._bounded_all()) if inside.all() else None
        if terms is None:
            return _verdict(rule, ~inside, actual, reference, used)
        share = bounds.dot_product_variance(
            actual, exact.value, exact.error, terms.ksb, self.version, terms.operands
        )
        if share > 1:
            text = f": errors within the bound, but {share:.3g} times the allowed sum of squares"
            return _Opinion(False, rule, share, text)
        return _Opinion(True, rule, max(used, share))

    def _bounded_all(self) -> dict[str, Bounded]:
        assert self.propagated is not None
        return self.propagated


def _deterministic(graph: TosaGraph) -> bool:
    """Whether TOSA leaves a device no choice: no float tensors, no inexact rounding."""
    tensors = (tensor for part in graph.parts for tensor in part.tensors.values())
    floating = any(tensor.dtype in bounds.FORMATS for tensor in tensors)
    rounding = {
        operator.attributes.get("rounding_mode") for part in graph.parts for operator in part.operators
    }
    return not floating and "INEXACT_ROUND" not in rounding


def _signal_rule(dtype: str) -> str:
    return f"sqnr >= {signal_budget(dtype):.4g} dB" if dtype in bounds.FORMATS else "<= 1 LSB"


def _by_signal(
    rule: str, dtype: str, actual: Array, reference: Array, exact: Array | None = None
) -> _Opinion:
    """Judge without a bound: floats by SQNR and by NaN and infinity at the same places, integers by 1 LSB.

    Where ``exact`` is known, floats are held against it, and the reference model's own noise counts: what
    is hard to compute for one good implementation is so for another.
    """
    if dtype not in bounds.FORMATS:
        gap = np.abs(actual.astype(np.float64) - reference.astype(np.float64))
        return _verdict(rule, gap > 1, actual, reference, float(gap.max(initial=0.0)))
    same = metrics.same_class(actual, reference)
    if not same.all():
        return _verdict(rule, ~same, actual, reference, np.inf)
    finite = np.isfinite(reference.astype(np.float64))
    ours, right = (
        array[finite].astype(np.float64) for array in (actual, reference if exact is None else exact)
    )
    got, budget = metrics.sqnr(ours, right), signal_budget(dtype)
    if got is None:
        return _Opinion(True, rule, 0.0)
    theirs = None if exact is None else metrics.sqnr(reference[finite].astype(np.float64), right)
    if theirs is not None and np.isfinite(theirs):
        budget = min(budget, theirs - PEER_MARGIN_DB)
    # The noise's share of the allowed one, as an amplitude.
    used = float(10.0 ** ((budget - got) / 20))
    if used <= 1:
        return _Opinion(True, rule, used)
    text = f": SQNR {got:.4g} dB" + _worst(actual != reference, actual, reference)
    return _Opinion(False, rule, used, text)


def _by_distance(rule: str, exact: Bounded, actual: Array, reference: Array) -> _Opinion:
    """Judge integers and bools downstream of floats or of inexact rounding."""
    gap = np.abs(actual.astype(np.float64) - exact.value)
    with np.errstate(invalid="ignore", divide="ignore"):
        used = np.where(gap > 0, gap / exact.error, 0.0)
    return _verdict(rule, gap > exact.error, actual, reference, float(used.max(initial=0.0)))


def _verdict(rule: str, wrong: NDArray[np.bool_], actual: Array, reference: Array, used: float) -> _Opinion:
    count = int(np.count_nonzero(wrong))
    if not count:
        return _Opinion(True, rule, used, wrong=0)
    return _Opinion(False, rule, used, _worst(wrong, actual, reference), wrong=count)


def _worst(wrong: NDArray[np.bool_], actual: Array, reference: Array) -> str:
    """The end of a message: how many are wrong, and the farthest from the reference."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(actual.astype(np.float64) - reference.astype(np.float64))
    gap = np.where(wrong, np.where(np.isnan(gap), np.inf, gap), -1.0)
    index = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(gap)), gap.shape))
    count = np.count_nonzero(wrong)
    return (
        f", {count} of {actual.size} elements, worst at {list(index)}: "
        f"{_number(actual[index])}, should be {_number(reference[index])}"
    )


def _number(value: Any) -> str:
    return f"{float(value):.6g}" if np.asarray(value).dtype.kind not in "iub" else str(value)
