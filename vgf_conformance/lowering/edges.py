"""Is a converted program the prepared one, with its observers turned into quantisation and nothing else?

Each value that a node of the prepared program reads is followed back: through observers there, through
dequantisation and quantisation in the converted program.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Node

from vgf_conformance.lowering.observers import Prescription
from vgf_conformance.lowering.program import operator_name
from vgf_conformance.lowering.scheme import Parameters

_QUANTISE, _DEQUANTISE = "quantized_decomposed.quantize_per_", "quantized_decomposed.dequantize_per_"
#: Where the output channels of a weight lie, and at which place of its node's arguments it stands.
WEIGHT_AXES = {
    **dict.fromkeys(("aten.linear", "aten.conv1d", "aten.conv2d", "aten.conv3d"), 0),
    **dict.fromkeys(("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d"), 1),
}
_WEIGHT = 1

#: How near to a tie fp32 may err in quantising a constant, in steps and as a share of the number of steps.
_TIE_SHARE, _FP32_SHARE = 2.0**-14, 2.0**-22


@dataclass(frozen=True)
class Place:
    """Where a node comes from: its operator, its module with the module's class, its stack trace."""

    operator: str = ""
    module: str = ""
    kind: str = ""
    stack: str = ""

    @classmethod
    def of(cls, node: Node) -> Place:
        """The place of ``node`` as torch.export noted it."""
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        module, kind = stack[-1][:2] if stack else ("", "")
        called = operator_name(node.target) if node.op == "call_function" else str(node.target)
        kind = (kind if isinstance(kind, str) else getattr(kind, "__name__", "")).rpartition(".")[2]
        return cls(called, str(module), kind, str(node.meta.get("stack_trace") or ""))


@dataclass(frozen=True)
class Problem:
    """A fault of step ``parameters`` or ``convert`` in the value ``tensor``, and the node that reads it."""

    step: str
    tensor: str
    message: str
    place: Place


@dataclass(frozen=True)
class Edge:
    """A value that a node reads: where it begins, and by what it is quantised on the way, in order.

    ``source`` is the name of the node that gives it, empty for a constant, whose ``value`` is kept: in a
    converted program the integers, where it is quantised already. ``chain`` has observers' names, or
    Parameters.
    """

    source: str
    chain: tuple[Any, ...] = ()
    value: Any = None


@dataclass(frozen=True)
class Reader:
    """A node with what it reads: edges and plain values, flattened."""

    operator: str
    reads: tuple[Any, ...]
    place: Place

    @property
    def writes(self) -> bool:
        """Whether it writes to what it reads."""
        return self.operator.rpartition(".")[0].endswith("_")


def readers(module: GraphModule) -> dict[str, Reader]:
    """The nodes of a prepared or a converted program, outside branches and loops, that read something."""
    found = {}
    for node in module.graph.nodes:
        called = operator_name(node.target) if node.op == "call_function" else node.op
        if node.op not in ("call_function", "output") or called.startswith((_QUANTISE, _DEQUANTISE)):
            continue
        leaves = torch.utils._pytree.tree_leaves((node.args, dict(node.kwargs)))
        reads = tuple(_edge(leaf, module) if isinstance(leaf, Node) else leaf for leaf in leaves)
        found[node.name] = Reader(called, reads, Place.of(node))
    return found


def _edge(node: Node, module: GraphModule) -> Edge:
    chain: list[Any] = []
    while True:
        called = operator_name(node.target) if node.op == "call_function" else ""
        source: Any = node.args[0] if node.args else None
        if node.op == "call_module":
            chain.insert(0, str(node.target))
        elif called.startswith(_DEQUANTISE):
            chain.insert(0, _parameters(node, module))
            if source.op == "get_attr":
                return Edge("", tuple(chain), _attribute(source, module))
        elif called.startswith(_QUANTISE):
            if not chain or _parameters(node, module) != chain[0]:
                chain.insert(0, _parameters(node, module))
        else:
            constant = node.op == "get_attr"
            value = _attribute(node, module) if constant else None
            return Edge("" if constant else node.name, tuple(chain), value)
        node = source


def _parameters(node: Node, module: GraphModule) -> Parameters:
    per_channel = "_per_channel" in operator_name(node.target)
    scale, zero = (_attribute(value, module) for value in node.args[1:3])
    axis, low, high, dtype = node.args[3:7] if per_channel else (None, *node.args[3:6])
    return Parameters(
        np.atleast_1d(np.asarray(scale, np.float64)),
        np.atleast_1d(np.asarray(zero, np.float64)),
        low,
        high,
        str(dtype).removeprefix("torch."),
        axis,
    )


def _attribute(value: Any, module: GraphModule) -> Any:
    if isinstance(value, Node) and value.op == "get_attr":
        value = operator.attrgetter(str(value.target))(module)
    return value.detach().numpy() if isinstance(value, torch.Tensor) and value.ndim else value


def problems(
    prepared: Mapping[str, Reader],
    converted: Mapping[str, Reader],
    prescribed: Mapping[str, Prescription],
    unseen: Mapping[str, str],
) -> list[Problem]:
    """What is wrong in the converted program, wrong parameters first, each in the order of the program."""
    needed = _needed(prepared)
    found = [
        problem
        for name, reader in prepared.items()
        if name in needed
        for problem in _of_reader(name, reader, prepared, converted, prescribed, unseen)
    ]
    found += [
        Problem("convert", name, f"{converted[name].operator} is there, unprepared", converted[name].place)
        for name in sorted(_needed(converted) - prepared.keys())
    ]
    return sorted(found, key=lambda item: item.step != "parameters")


def _needed(nodes: Mapping[str, Reader]) -> set[str]:
    """What the outputs rest on, and what writes in place: converting removes all else."""
    waiting = [name for name, reader in nodes.items() if reader.operator == "output" or reader.writes]
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in needed:
            needed.add(name)
            waiting += [edge.source for edge in nodes[name].reads if isinstance(edge, Edge)]
    return needed


def found_parameters(
    prepared: Mapping[str, Reader],
    converted: Mapping[str, Reader],
    prescribed: Mapping[str, Prescription],
) -> dict[str, Parameters]:
    """By observer, with what the converted program quantises instead."""
    found: dict[str, Parameters] = {}
    for name in prepared.keys() & converted.keys():
        for right, other in zip(prepared[name].reads, converted[name].reads, strict=False):
            if isinstance(right, Edge) and isinstance(other, Edge):
                observers = [one for one in right.chain if one not in prescribed or prescribed[one].quantises]
                found.update(zip(reversed(observers), reversed(other.chain), strict=False))
    return found


def _of_reader(
    name: str,
    reader: Reader,
    prepared: Mapping[str, Reader],
    converted: Mapping[str, Reader],
    prescribed: Mapping[str, Prescription],
    unseen: Mapping[str, str],
) -> Iterator[Problem]:
    other = converted.get(name)
    if other is None:
        if not _is_constant(name, prepared):
            yield Problem("convert", name, f"{reader.operator} is missing", reader.place)
        return
    if other.operator != reader.operator or len(other.reads) != len(reader.reads):
        yield Problem("convert", name, f"{other.operator} stands for {reader.operator}", reader.place)
        return
    for number, (right, found) in enumerate(zip(reader.reads, other.reads, strict=True)):
        if not isinstance(right, Edge) or not isinstance(found, Edge):
            if isinstance(right, Edge) or isinstance(found, Edge) or not _same(right, found):
                yield Problem(
                    "convert", name, f"argument {number} is {found}, should be {right}", reader.place
                )
            continue
        where = _Where(name, reader, number)
        yield from _of_edge(where, right, found, prepared, prescribed, unseen)


@dataclass(frozen=True)
class _Where:
    name: str
    reader: Reader
    number: int

    def problem(self, step: str, tensor: str, message: str) -> Problem:
        """A problem of what the node reads at this place."""
        return Problem(step, tensor or f"argument {self.number} of {self.name}", message, self.reader.place)


def _of_edge(
    where: _Where,
    right: Edge,
    found: Edge,
    prepared: Mapping[str, Reader],
    prescribed: Mapping[str, Prescription],
    unseen: Mapping[str, str],
) -> Iterator[Problem]:
    if where.reader.operator == "output" and right.source in prepared:
        where = replace(where, reader=prepared[right.source])
    constant = not right.source or _is_constant(right.source, prepared)
    if right.source != found.source and not (constant and not found.source):
        what = (
            f"{where.name} reads {found.source or 'a constant'}, should read {right.source or 'a constant'}"
        )
        yield where.problem("convert", right.source, what)
        return
    expected = [name for name in right.chain if name not in prescribed or prescribed[name].quantises]
    for name in expected:
        if name in unseen:
            yield where.problem("parameters", right.source, unseen[name])
    if constant and len(found.chain) < len(expected):
        # What was folded with its quantisation counts from the last one on.
        expected = expected[-len(found.chain) :] if found.chain else expected
    if len(expected) != len(found.chain):
        times = (
            f"quantised {len(found.chain)} times on its way to {where.name}, should be {len(expected)} times"
        )
        yield where.problem("convert", right.source, f"it is {times}")
        return
    for name, parameters in zip(expected, found.chain, strict=True):
        refusal = prescribed.get(name, Prescription()).refusal(parameters)
        if refusal := refusal or _wrong_axis(where, parameters):
            yield where.problem("parameters", right.source, refusal)
            return
    if refusal := _wrong_codes(right.value, found):
        yield where.problem("convert", "", refusal)


def _wrong_codes(value: Any, found: Edge) -> str:
    """What is wrong with the integers that a constant became; empty where nothing is, or cannot be told."""
    if not isinstance(value, np.ndarray) or not isinstance(found.value, np.ndarray) or len(found.chain) != 1:
        return ""
    if found.value.dtype.kind not in "iu" or value.dtype.kind != "f":
        return ""  # a buffer that is written to is quantised each time
    (parameters,) = found.chain
    if value.shape != found.value.shape:
        return f"a constant of shape {list(value.shape)} has become one of shape {list(found.value.shape)}"
    exact = np.clip(parameters.codes(value), parameters.low, parameters.high)
    wrong = np.abs(found.value - exact) > 0.5 + _TIE_SHARE + _FP32_SHARE * np.abs(exact)
    if not wrong.any():
        return ""
    place = tuple(int(axis) for axis in np.argwhere(wrong)[0])
    text = f"{found.value[place]}, should be {np.round(exact[place]):g}"
    return f"{int(wrong.sum())} of {wrong.size} elements of a constant, the first at {list(place)}: {text}"


def _wrong_axis(where: _Where, parameters: Parameters) -> str:
    packet = ".".join(where.reader.operator.split(".")[:2])
    if parameters.axis is None or where.number != _WEIGHT or packet not in WEIGHT_AXES:
        return ""
    right = WEIGHT_AXES[packet]
    return "" if parameters.axis == right else f"scales along axis {parameters.axis}, should be {right}"


def _is_constant(name: str, prepared: Mapping[str, Reader]) -> bool:
    """Whether the node follows from constants alone, so that it may have been computed."""
    reader = prepared.get(name)
    if reader is None:
        return not name
    edges = [item for item in reader.reads if isinstance(item, Edge)]
    return all(_is_constant(edge.source, prepared) for edge in edges)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)
