"""Whether the operators of a TOSA graph fit their tensors: operands, types, attributes and shapes.

A reader of flatbuffers takes any graph whose form is right. Who judges results by a stranger's graph goes
by what it declares, so this is held against the specification first (TOSA 1.0.2: "Supported data types"
and the ERROR_IF statements of each operator). Operators that are not judged here are not looked at.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vgf_conformance.formats.tosa import (
    TosaGraph,
    TosaOperator,
    TosaTensor,
    attribute_kind,
    attribute_names,
)
from vgf_conformance.untrusted import Malformed

Shape = tuple[int, ...]

#: numpy's limit, in the oldest version that is supported; TOSA's level 8K has 6.
RANK_LIMIT = 32
#: Elements that a tensor, or the padded operand of a window, may have: a gibibyte of float32.
ELEMENT_LIMIT = 1 << 28
#: MAX_KERNEL and MAX_STRIDE of TOSA's level 8K.
WINDOW_LIMIT = 8192

_FLOATS = frozenset({"float16", "bfloat16", "float32"})
_NARROW = frozenset({"float8_e4m3fn", "float8_e5m2"})
_INTEGERS = frozenset({"int4", "int8", "int16", "int32", "int48", "int64"})
_NUMBERS = _FLOATS | _NARROW | _INTEGERS
_ANY = _NUMBERS | {"bool"}

#: What a letter of a signature stands for. One letter is one type throughout a signature.
_LETTERS = {
    "T": _ANY,
    "U": _ANY,
    "N": _NUMBERS,
    "M": _NUMBERS,
    "A": _NUMBERS,
    "F": _FLOATS,
    "I": _INTEGERS,
    "O": _INTEGERS,
    "P": _INTEGERS,
    "J": frozenset({"int32", "int64"}),
    "H": frozenset({"int16", "int32"}),
    "Q": frozenset({"int8"}),
    "B": frozenset({"bool"}),
    "S": frozenset({"shape"}),
}


class _View:
    """An operator with its tensors at hand."""

    def __init__(self, operator: TosaOperator, graph: TosaGraph) -> None:
        self.name = operator.name
        self.attributes = operator.attributes
        self.inputs = [graph.tensors[name] for name in operator.inputs]
        self.outputs = [graph.tensors[name] for name in operator.outputs]

    def shape(self, index: int, rank: int | None = None) -> Shape:
        """That of an operand, of ``rank`` axes; raises Malformed."""
        shape = self.inputs[index].shape
        if rank is not None and len(shape) != rank:
            raise Malformed(f"operand {index} has {len(shape)} axes, should have {rank}")
        return shape

    def numbers(self, index: int, length: int) -> list[int]:
        """The ``length`` numbers of an operand that steers the operator; raises Malformed."""
        data = self.inputs[index].data
        if data is None:
            raise Malformed(f"operand {index} is no constant")
        if data.size != length:
            raise Malformed(f"operand {index} has {data.size} numbers, should have {length}")
        return [int(number) for number in data.reshape(-1)]

    def vector(self, name: str, length: int, low: int = 0, high: int = WINDOW_LIMIT) -> list[int]:
        """An attribute of ``length`` numbers from ``low`` to ``high``; raises Malformed."""
        numbers = list(self.attributes[name])
        if len(numbers) != length or not all(low <= number <= high for number in numbers):
            raise Malformed(f"{name} is {numbers[:8]}, should be {length} numbers from {low} to {high}")
        return numbers

    def steered(self, attributes: dict[str, Any]) -> _View:
        """The same with attributes that came as operands."""
        view = copy.copy(self)
        view.attributes = self.attributes | attributes
        return view

    def axis(self) -> int:
        """The axis, within the first operand; raises Malformed."""
        axis, rank = int(self.attributes["axis"]), len(self.inputs[0].shape)
        if not 0 <= axis < rank:
            raise Malformed(f"axis {axis} of a tensor with {rank} axes")
        return axis

    def require_single(self, *operands: int) -> None:
        """Raise Malformed where one of these operands has not exactly one element."""
        for index in operands:
            if math.prod(self.inputs[index].shape) != 1:
                raise Malformed(f"operand {index} has shape {list(self.inputs[index].shape)}, should be [1]")


@dataclass(frozen=True)
class _Rule:
    """``operands`` and ``results`` are letters; a ``+`` at the end repeats the last operand.

    ``shape`` gives the shape of each output.
    """

    operands: str
    results: str
    shape: Callable[[_View], Shape]


_RULES: dict[str, _Rule] = {}


def _rule(signature: str, *names: str) -> Callable[[Callable[[_View], Shape]], Callable[[_View], Shape]]:
    operands, _, results = signature.partition(">")

    def enter(shape: Callable[[_View], Shape]) -> Callable[[_View], Shape]:
        _RULES.update({name: _Rule(operands, results, shape) for name in names})
        return shape

    return enter


def unsound(graph: TosaGraph) -> str:
    """Why nobody could judge results by ``graph``; empty where nothing is wrong."""
    if graph.regions:
        # The converter makes no VGF of it, and a stranger's loop may never end.
        return f"it has control flow ({len(graph.regions)} regions), which no VGF has"
    try:
        _require_ordered(graph)
        for tensor in graph.tensors.values():
            _require_possible(tensor)
    except Malformed as error:
        return str(error)
    for number, operator in enumerate(graph.operators):
        try:
            _require_sound(_View(operator, graph))
        except Malformed as error:
            return f"operator {number}, {operator.name}: {error}"
    return ""


def _require_ordered(graph: TosaGraph) -> None:
    """Raise Malformed where operators cannot run in their order, or a tensor has two sources."""
    known: set[str] = set()
    for name in graph.inputs:
        if name in known:
            raise Malformed(f"the input {name!r} is there twice")
        known.add(name)
    for operator in graph.operators:
        for name in operator.inputs:
            if name not in known:
                raise Malformed(f"{operator.name} reads {name!r} before anything writes it")
        for name in operator.outputs:
            if name in known:
                raise Malformed(f"{name!r} is written twice")
            known.add(name)
    for name in graph.outputs:
        if name not in known:
            raise Malformed(f"nothing writes the output {name!r}")


def _require_possible(tensor: TosaTensor) -> None:
    if tensor.dtype not in _ANY and tensor.dtype != "shape":
        raise Malformed(f"the tensor {tensor.name!r} has the type {tensor.dtype}, which is not known here")
    if min(tensor.shape, default=0) < 0:
        raise Malformed(f"the tensor {tensor.name!r} has the shape {list(tensor.shape)}")
    if len(tensor.shape) > RANK_LIMIT or math.prod(tensor.shape) > ELEMENT_LIMIT:
        raise Malformed(f"the tensor {tensor.name!r} is too large: {list(tensor.shape)[:8]}")


def _require_sound(view: _View) -> None:
    rule = _RULES.get(view.name)
    if rule is None:
        return
    wanted = attribute_names(attribute_kind(view.name))
    if missing := sorted(wanted - view.attributes.keys()):
        raise Malformed(f"it lacks {', '.join(missing)}")
    _require_types(view, rule)
    shape = rule.shape(view)
    for output in view.outputs:
        if output.shape != shape:
            raise Malformed(f"its output has shape {list(output.shape)}, should be {list(shape)}")


def _require_types(view: _View, rule: _Rule) -> None:
    operands, least = rule.operands, len(rule.operands)
    if operands.endswith("+"):
        least -= 1
        operands = operands[:-1] + operands[-2] * max(len(view.inputs) - least, 0)
    for what, letters, tensors in (
        ("operand", operands, view.inputs),
        ("output", rule.results, view.outputs),
    ):
        if len(letters) != len(tensors):
            raise Malformed(f"{len(tensors)} {what}s, should be {len(letters)}")
    types: dict[str, str] = {}
    for letter, tensor in zip(operands + rule.results, [*view.inputs, *view.outputs], strict=True):
        if tensor.dtype not in _LETTERS[letter]:
            raise Malformed(f"{tensor.name!r} is {tensor.dtype}, which it does not take there")
        if types.setdefault(letter, tensor.dtype) != tensor.dtype:
            raise Malformed(f"{tensor.name!r} is {tensor.dtype}, should be {types[letter]}")
    # What is computed of floats is a float.
    if "A" in types and (types["A"] in _INTEGERS) != (types["N"] in _INTEGERS):
        raise Malformed(f"{types['A']} cannot be computed of {types['N']}")


@_rule("T>T", "IDENTITY", "REVERSE")
@_rule("T>U", "CAST")
@_rule("N>N", "ABS", "CLAMP")
@_rule("F>F", "ERF", "SIGMOID", "TANH", "CEIL", "FLOOR", "COS", "EXP", "LOG", "RECIPROCAL", "RSQRT", "SIN")
@_rule("I>I", "BITWISE_NOT", "CLZ")
@_rule("B>B", "LOGICAL_NOT")
def _same(view: _View) -> Shape:
    if view.name == "REVERSE":
        view.axis()
    return view.inputs[0].shape


@_rule("NN>N", "ADD", "SUB", "MAXIMUM", "MINIMUM")
@_rule("FF>F", "POW")
@_rule("II>I", "ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT", "INTDIV")
@_rule("II>I", "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR")
@_rule("BB>B", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR")
@_rule("NN>B", "EQUAL", "GREATER", "GREATER_EQUAL")
@_rule("BTT>T", "SELECT")
def _broadcast(view: _View) -> Shape:
    return _joined([tensor.shape for tensor in view.inputs])


def _joined(shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise Malformed(f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not fit") from error


@_rule("NNQ>A", "MUL")
def _multiplied(view: _View) -> Shape:
    view.require_single(2)
    return _joined([view.shape(0), view.shape(1)])


@_rule("NNN>N", "NEGATE")
def _negated(view: _View) -> Shape:
    view.require_single(1, 2)
    return view.shape(0)


@_rule("IHQIO>O", "RESCALE")
def _rescaled(view: _View) -> Shape:
    view.require_single(3, 4)
    shape = view.shape(0)
    if view.attributes["per_channel"]:
        for index in (1, 2):
            if view.shape(index, 1) != shape[-1:]:
                raise Malformed(f"operand {index} has not one number for each channel")
    else:
        view.require_single(1, 2)
        for index in (1, 2):
            view.shape(index, 1)
    return shape


@_rule("IO>P", "TABLE")
def _looked_up(view: _View) -> Shape:
    entries = {"int8": 256, "int16": 513}.get(view.inputs[0].dtype)
    if view.shape(1, 1) != (entries,):
        raise Malformed(f"a table of {view.shape(1)} entries for {view.inputs[0].dtype}")
    return view.shape(0)


@_rule("N>N", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_SUM")
@_rule("F>F", "REDUCE_PRODUCT")
@_rule("B>B", "REDUCE_ALL", "REDUCE_ANY")
def _reduced(view: _View) -> Shape:
    axis, shape = view.axis(), view.shape(0)
    _require_elements(shape[axis : axis + 1])
    return (*shape[:axis], 1, *shape[axis + 1 :])


@_rule("N>J", "ARGMAX")
def _chosen(view: _View) -> Shape:
    axis, shape = view.axis(), view.shape(0)
    _require_elements(shape[axis : axis + 1])
    return (*shape[:axis], *shape[axis + 1 :])


def _require_elements(shape: Sequence[int]) -> None:
    if not math.prod(shape):
        raise Malformed("nothing is left to choose from or to slide over")


@_rule("T+>T", "CONCAT")
def _concatenated(view: _View) -> Shape:
    axis, first = view.axis(), view.shape(0)
    for index in range(len(view.inputs)):
        shape = view.shape(index, len(first))
        if shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise Malformed(f"operand {index} of shape {list(shape)} does not fit beside {list(first)}")
    total = sum(tensor.shape[axis] for tensor in view.inputs)
    return (*first[:axis], total, *first[axis + 1 :])


@_rule("TST>T", "PAD")
def _padded(view: _View) -> Shape:
    view.require_single(2)
    shape = view.shape(0)
    widths = view.numbers(1, 2 * len(shape))
    if min(widths, default=0) < 0:
        raise Malformed(f"padding of {min(widths)}")
    return tuple(
        size + before + after for size, before, after in zip(shape, widths[::2], widths[1::2], strict=True)
    )


@_rule("TS>T", "RESHAPE")
def _reshaped(view: _View) -> Shape:
    shape = view.outputs[0].shape
    if math.prod(shape) != math.prod(view.shape(0)):
        raise Malformed(f"{list(view.shape(0))} has another number of elements than {list(shape)}")
    return tuple(view.numbers(1, len(shape)))


@_rule("TSS>T", "SLICE")
def _sliced(view: _View) -> Shape:
    shape = view.shape(0)
    starts, sizes = (view.numbers(index, len(shape)) for index in (1, 2))
    for start, size, length in zip(starts, sizes, shape, strict=True):
        if start < 0 or size < 0 or start + size > length:
            raise Malformed(f"a slice from {starts} of {sizes}, in a tensor of {list(shape)}")
    return tuple(sizes)


@_rule("TS>T", "TILE")
def _tiled(view: _View) -> Shape:
    shape = view.shape(0)
    return tuple(size * count for size, count in zip(shape, view.numbers(1, len(shape)), strict=True))


@_rule("T>T", "TRANSPOSE")
def _transposed(view: _View) -> Shape:
    shape, order = view.shape(0), list(view.attributes["perms"])
    if sorted(order) != list(range(len(shape))):
        raise Malformed(f"perms {order[:8]} of a tensor with {len(shape)} axes")
    return tuple(shape[axis] for axis in order)


@_rule("TJ>T", "GATHER")
def _gathered(view: _View) -> Shape:
    (batch, rows, channels), (count, width) = view.shape(0, 3), view.shape(1, 2)
    _require_indices(view, batch, rows, count)
    return batch, width, channels


@_rule("TJT>T", "SCATTER")
def _scattered(view: _View) -> Shape:
    (batch, rows, channels), (count, width) = view.shape(0, 3), view.shape(1, 2)
    _require_indices(view, batch, rows, count)
    if view.shape(2) != (batch, width, channels):
        raise Malformed(f"operand 2 has shape {list(view.shape(2))}, should be {[batch, width, channels]}")
    return view.shape(0)


def _require_indices(view: _View, batch: int, rows: int, count: int) -> None:
    data = view.inputs[1].data
    if count != batch:
        raise Malformed(f"indices for {count} batches, where there are {batch}")
    if data is not None and data.size and not (data.min() >= 0 and data.max() < rows):
        raise Malformed(f"an index outside the {rows} rows")


@_rule("NMANM>A", "CONV2D", "CONV3D")
def _convolved(view: _View) -> Shape:
    axes = 2 if view.name == "CONV2D" else 3
    data, weight = view.shape(0, axes + 2), view.shape(1, axes + 2)
    _require_convolution(view, weight[0], data[-1], weight[-1])
    return (data[0], *_slid(view, data, weight[1:-1], view.vector("dilation", axes, 1)), weight[0])


@_rule("NMANM>A", "DEPTHWISE_CONV2D")
def _convolved_by_channel(view: _View) -> Shape:
    data, weight = view.shape(0, 4), view.shape(1, 4)
    channels = weight[2] * weight[3]
    _require_convolution(view, channels, data[-1], weight[2])
    return (data[0], *_slid(view, data, weight[:2], view.vector("dilation", 2, 1)), channels)


@_rule("NMANM>A", "TRANSPOSE_CONV2D")
def _convolved_back(view: _View) -> Shape:
    data, weight = view.shape(0, 4), view.shape(1, 4)
    _require_convolution(view, weight[0], data[-1], weight[-1])
    pad = view.vector("out_pad", 4, -WINDOW_LIMIT)
    spread = [
        (size - 1) * stride + kernel
        for size, stride, kernel in zip(data[1:3], view.vector("stride", 2, 1), weight[1:3], strict=True)
    ]
    _require_bounded((data[0], *spread, weight[0]))
    height, width = spread[0] + pad[0] + pad[1], spread[1] + pad[2] + pad[3]
    return data[0], height, width, weight[0]


def _require_convolution(view: _View, out: int, channels: int, wanted: int) -> None:
    """Raise Malformed where bias, zero points, channels or the accumulator do not fit."""
    if channels != wanted:
        raise Malformed(f"weights for {wanted} channels, where there are {channels}")
    if view.shape(2, 1) not in ((out,), (1,)):
        raise Malformed(f"a bias of shape {list(view.shape(2))} for {out} channels")
    view.require_single(3, 4)
    _require_accumulator(view, view.inputs[2].dtype)


def _require_accumulator(view: _View, dtype: str) -> None:
    accumulator = view.attributes["acc_type"]
    allowed = _INTEGERS if dtype in _INTEGERS else _FLOATS
    if accumulator not in allowed:
        raise Malformed(f"{dtype} cannot be added up in {accumulator}")


def _slid(view: _View, data: Shape, kernel: Sequence[int], dilation: Sequence[int]) -> Shape:
    """The spatial axes of what a sliding window leaves of ``data``, channels last."""
    axes = len(kernel)
    stride, pad = view.vector("stride", axes, 1), view.vector("pad", 2 * axes)
    padded = [size + pad[2 * axis] + pad[2 * axis + 1] for axis, size in enumerate(data[1:-1])]
    _require_bounded((data[0], *padded, data[-1]))
    _require_elements(kernel)
    out = tuple(
        (size - (taps - 1) * apart - 1) // step + 1
        for size, taps, apart, step in zip(padded, kernel, dilation, stride, strict=True)
    )
    if min(out) < 1:
        raise Malformed(f"a window of {list(kernel)} does not fit into {padded}")
    return out


def _require_bounded(shape: Shape) -> None:
    if math.prod(shape) > ELEMENT_LIMIT:
        raise Malformed(f"with its padding its operand has the shape {list(shape)}, which is too large")


@_rule("NNN>N", "AVG_POOL2D")
@_rule("N>N", "MAX_POOL2D")
def _pooled(view: _View) -> Shape:
    data, kernel, pad = view.shape(0, 4), view.vector("kernel", 2, 1), view.vector("pad", 4)
    if any(width >= kernel[number // 2] for number, width in enumerate(pad)):
        raise Malformed(f"padding of {pad} for a window of {kernel}")
    if view.name == "AVG_POOL2D":
        view.require_single(1, 2)
        _require_accumulator(view, view.inputs[0].dtype)
    return (data[0], *_slid(view, data, kernel, (1, 1)), data[-1])


@_rule("NSSS>N", "MAX_POOL2D_ADAPTIVE")
def _pooled_by_operands(view: _View) -> Shape:
    data, kernel = view.shape(0, 4), view.numbers(1, 2)
    steered = {"stride": view.numbers(2, 2), "pad": view.numbers(3, 4)}
    if not all(1 <= size <= WINDOW_LIMIT for size in kernel):
        raise Malformed(f"a window of {kernel}")
    return (data[0], *_slid(view.steered(steered), data, kernel, (1, 1)), data[-1])


@_rule("NMNM>A", "MATMUL")
def _multiplied_out(view: _View) -> Shape:
    view.require_single(2, 3)
    (batch, height, terms), second = view.shape(0, 3), view.shape(1, 3)
    if second[:2] != (batch, terms):
        raise Malformed(f"{list(view.shape(0))} cannot be multiplied by {list(second)}")
    return batch, height, second[2]


@_rule("FF>FF", "FFT2D")
@_rule("F>FF", "RFFT2D")
def _transformed(view: _View) -> Shape:
    batch, height, width = view.shape(0, 3)
    _require_elements((height, width))
    if view.name == "RFFT2D":
        return batch, height, width // 2 + 1
    if view.shape(1) != view.shape(0):
        raise Malformed("its operands have different shapes")
    return view.shape(0)


@_rule("NSSS>A", "RESIZE")
def _resized(view: _View) -> Shape:
    batch, height, width, channels = view.shape(0, 4)
    scale, offset, border = view.numbers(1, 4), view.numbers(2, 2), view.numbers(3, 2)
    sizes = []
    for axis, size in enumerate((height, width)):
        above, below = scale[2 * axis : 2 * axis + 2]
        move, edge = offset[axis], border[axis]
        if not (above > 0 and below > 0 and -above <= move < 16 * above and -16 * above <= edge < above):
            raise Malformed(f"scale {scale}, offset {offset} and border {border} are out of range")
        _require_elements((size,))
        sizes.append(((size - 1) * above - move + edge) // below + 1)
    return batch, sizes[0], sizes[1], channels


@_rule(">T", "CONST")
@_rule(">S", "CONST_SHAPE")
def _stated(view: _View) -> Shape:
    if view.outputs[0].data is None:
        raise Malformed(f"the constant {view.outputs[0].name!r} has no data")
    return view.outputs[0].shape


@_rule("T>S", "DIM")
def _measured(view: _View) -> Shape:
    view.axis()
    return (1,)
