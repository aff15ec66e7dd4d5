"""A TOSA graph in exact arithmetic, with a bound on what a conforming implementation may give.

Values are fp64, int64 or bool; they never saturate to a narrow float's infinity. The
error beside each element is the sum of what its operands' errors can do and what the
operator itself may add (``bounds``). A graph of one operator gets the specification's
own bound; for longer ones this is a worst case, which grows with depth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.operators import OPERATORS
from vgf_conformance.comparison.operators.base import SEVERAL_OUTPUTS, Bounded, Call, Operator
from vgf_conformance.comparison.operators.dot import DOT_PRODUCTS
from vgf_conformance.comparison.operators.transform import transform_terms
from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator, TosaTensor, storage

#: Operators that only move or hold data: a graph's rule is named without them.
LAYOUT = CONSTANTS.union({"CONCAT", "IDENTITY", "RESHAPE", "REVERSE", "SLICE", "TILE", "TRANSPOSE"})


class NotCovered(Exception):
    """An operator whose meaning is not known here; the message is its name."""


def propagate(
    graph: TosaGraph,
    inputs: Sequence[NDArray[Any]],
    *,
    rounded_constants: bool = False,
) -> list[Bounded]:
    """Run ``graph`` on ``inputs`` (in the graph's order, as stored) and bound its outputs.

    ``rounded_constants`` gives floating CONSTs an error of half an ULP where they need
    more than half of their fraction: for a comparison with a program whose constants the
    compiler folded and rounded (0.5 or 3 was never rounded, sqrt(2) was).
    Raises NotCovered for an unknown operator, ValueError where the inputs do not fit.
    """
    known = evaluate(graph, inputs, rounded_constants=rounded_constants)
    return [known[name] for name in graph.outputs]


def evaluate(
    graph: TosaGraph,
    inputs: Sequence[NDArray[Any]],
    *,
    rounded_constants: bool = False,
    given: Mapping[str, Bounded] | None = None,
) -> dict[str, Bounded]:
    """As propagate, but every tensor of the graph by name; those that are ``given`` are not computed."""
    known = {**dict(zip(graph.inputs, _inputs(graph, inputs), strict=True)), **(given or {})}
    for operator in graph.operators:
        for number, name in enumerate(operator.outputs):
            if given and name in given:
                continue
            if operator.name in CONSTANTS:
                known[name] = _constant(graph.tensors[name], rounded_constants)
            else:
                known[name] = _apply(_meaning(operator), _call(operator, graph, known, number))
    return known


def single_operator(graph: TosaGraph) -> str | None:
    """The name of the graph's only operator that computes, or None where there are none or several."""
    names = [operator.name for operator in graph.operators if operator.name not in LAYOUT]
    return names[0] if len(names) == 1 else None


def _inputs(graph: TosaGraph, inputs: Sequence[NDArray[Any]]) -> list[Bounded]:
    if len(inputs) != len(graph.inputs):
        raise ValueError(f"{len(inputs)} inputs for a graph of {len(graph.inputs)}")
    return [exactly(data, graph.tensors[name].dtype) for name, data in zip(graph.inputs, inputs, strict=True)]


def exactly(data: NDArray[Any], dtype: str) -> Bounded:
    """``data``, stored as ``dtype``, with no error."""
    if dtype in bounds.FORMATS:
        stored = data.view(storage(dtype)) if data.dtype.kind in "uV" else data
        value: NDArray[Any] = stored.astype(np.float64)
    else:
        value = data.astype(np.bool_ if dtype == "bool" else np.int64)
    return Bounded(value, np.zeros(value.shape), dtype)


def _constant(tensor: TosaTensor, rounded: bool) -> Bounded:
    if tensor.data is None:
        raise ValueError(f"constant {tensor.name} has no data")
    constant = exactly(tensor.data, tensor.dtype)
    if rounded and constant.floating:
        error = np.where(
            _is_short(constant.value, tensor.dtype), 0.0, bounds.ulp(constant.value, 0.5, tensor.dtype)
        )
        return Bounded(constant.value, error, tensor.dtype)
    return constant


def _is_short(value: NDArray[Any], dtype: str) -> NDArray[np.bool_]:
    """Whether a number needs only the upper half of its fraction: written so, not rounded to it."""
    mantissa, _ = np.frexp(value)
    scaled = np.ldexp(mantissa, bounds.FORMATS[dtype].fraction // 2 + 1)
    return np.asarray((scaled == np.floor(scaled)) | ~np.isfinite(value))


@dataclass(frozen=True)
class DotProductTerms:
    """What the statistics of a dot product go by: its length as the bound counts it, its operands' dtype."""

    ksb: int
    operands: str


def dot_product_terms(graph: TosaGraph, known: dict[str, Bounded]) -> DotProductTerms | None:
    """Those of a graph whose only operator is a floating dot product and whose layout keeps each result.

    None for any other graph; ``known`` comes from evaluate.
    """
    computing = [operator for operator in graph.operators if operator.name not in LAYOUT]
    if single_operator(graph) not in (*DOT_PRODUCTS, "FFT2D", "RFFT2D"):
        return None
    call = _call(computing[0], graph, known)
    sizes = {known[name].value.size for name in (*graph.outputs, *computing[0].outputs)}
    if not call.floating or len(sizes) > 1:
        return None
    parts = DOT_PRODUCTS.get(call.name)
    ksb = transform_terms(call) if parts is None else parts(call).ksb(call.dtype)
    return DotProductTerms(ksb, call.inputs[0].dtype)


def _meaning(operator: TosaOperator) -> Operator:
    meaning = OPERATORS.get(operator.name)
    if meaning is None or len(operator.outputs) != SEVERAL_OUTPUTS.get(operator.name, 1):
        raise NotCovered(operator.name)
    return meaning


def _call(operator: TosaOperator, graph: TosaGraph, known: dict[str, Bounded], number: int = 0) -> Call:
    operands = tuple(known[name] for name in operator.inputs)
    if operator.name not in LAYOUT:
        operands = tuple(map(_as_read, operands))
    output = graph.tensors[operator.outputs[number]]
    version = bounds.version_of(graph.version)
    return Call(operator.name, operator.attributes, operands, output.shape, output.dtype, version, number)


def _apply(meaning: Operator, call: Call) -> Bounded:
    with np.errstate(all="ignore"):
        result = meaning(call)
    # What is NaN in exact arithmetic must be NaN everywhere: no error beside it.
    return Bounded(result.value, np.where(_nan(result.value), 0.0, result.error), result.dtype)


def _as_read(tensor: Bounded) -> Bounded:
    """A float tensor as the next operator may find it: flushed to zero, or overflown."""
    form = bounds.FORMATS.get(tensor.dtype)
    if form is None:
        return tensor
    size = np.abs(tensor.value)
    with np.errstate(invalid="ignore"):
        flushed = (size > 0) & (size - tensor.error < form.normal_min)
        overflown = np.isfinite(size) & (size + tensor.error > form.normal_max)
    error = np.where(flushed, np.maximum(tensor.error, size), tensor.error)
    return Bounded(tensor.value, np.where(overflown, np.inf, error), tensor.dtype)


def _nan(value: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(value) if value.dtype == np.float64 else np.zeros(value.shape, np.bool_)
