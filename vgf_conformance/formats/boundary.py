"""The static check of a delegate, before anything runs.

Every output of the VGF is written by a segment, or shares the storage of an input of its size; shapes and
dtypes, and so byte counts, of the TOSA graph and of the VGF equal what the program says at the delegate's
boundary; so no dimension is -1 or 0 unless the program says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.tosa import TosaGraph
from vgf_conformance.formats.vgf import Vgf
from vgf_conformance.vocabulary import Finding, Stage

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """What a static check found: attributed to ``lower`` where the TOSA graph is already wrong.

    ``tensor`` is the graph's input or output that it is of, empty where it is of no one.
    """

    stage: Stage
    finding: Finding
    message: str
    tensor: str = ""


@dataclass(frozen=True)
class _Difference:
    """What differs, and the graph's tensor that it is of; empty where their number differs."""

    message: str
    tensor: str = ""


@dataclass(frozen=True)
class _Side:
    """One side's statement about one tensor."""

    shape: tuple[int, ...]
    dtype: str


def check_tosa(delegate: Delegate, graph: TosaGraph) -> list[Problem]:
    """Compare the TOSA graph with the program at the boundary; problems are the lowering's."""
    inputs = [_Side(graph.tensors[name].shape, graph.tensors[name].dtype) for name in graph.inputs]
    outputs = [_Side(graph.tensors[name].shape, graph.tensors[name].dtype) for name in graph.outputs]
    return [
        Problem(Stage.LOWER, Finding.BOUNDARY, f"{delegate.name}, TOSA graph: {item.message}", item.tensor)
        for item in _differences(delegate, graph, inputs, outputs)
    ]


def check_vgf(delegate: Delegate, graph: TosaGraph, vgf: Vgf) -> list[Problem]:
    """Compare the VGF with the program, and look for outputs that nothing writes.

    What the TOSA graph has wrong already is not the converter's and is left out.
    """
    inputs = [_Side(tensor.shape, tensor.dtype) for _, tensor in vgf.inputs]
    outputs = [_Side(tensor.shape, tensor.dtype) for _, tensor in vgf.outputs]
    known = {problem.message.partition("graph: ")[2] for problem in check_tosa(delegate, graph)}
    problems = [
        Problem(Stage.CONVERT, Finding.BOUNDARY, f"{delegate.name}, VGF: {item.message}", item.tensor)
        for item in _differences(delegate, graph, inputs, outputs)
        if item.message not in known
    ]
    for number in range(len(vgf.outputs)):
        tensor = graph.outputs[number] if number < len(graph.outputs) else ""
        problems += [replace(item, tensor=tensor) for item in _storage_problems(delegate, vgf, number)]
    return problems


def check_shared_outputs(delegate: Delegate, vgf: Vgf, outputs: Sequence[Array]) -> list[Problem]:
    """Find outputs that share their storage in the VGF, but differ in ``outputs``, the reference model's."""
    if len(outputs) != len(vgf.outputs):
        return []
    return [
        Problem(
            Stage.CONVERT,
            Finding.BOUNDARY,
            f"{delegate.name}, VGF: outputs {number} and {other} share their storage, but the TOSA graph "
            "gives different values for them",
        )
        for number in range(len(vgf.outputs))
        for other in vgf.shared_outputs(number)
        if number < other and outputs[number].tobytes() != outputs[other].tobytes()
    ]


def _storage_problems(delegate: Delegate, vgf: Vgf, number: int) -> Iterator[Problem]:
    """An output that nothing writes and that is no input's storage, or one of another size than that."""
    tensor, name = vgf.outputs[number][1], f"{delegate.name}, VGF: output {number}"
    sources = vgf.shared_inputs(number)
    if not sources and not vgf.is_written(number):
        yield Problem(Stage.CONVERT, Finding.UNWRITTEN, f"{name} is written by no segment")
    for source in sources:
        other = vgf.inputs[source][1]
        if other.nbytes != tensor.nbytes:
            sizes = f"has {tensor.nbytes} bytes, the input {other.nbytes}"
            message = f"{name} shares its storage with input {source}, but {sizes}"
            yield Problem(Stage.CONVERT, Finding.BOUNDARY, message)


def _differences(
    delegate: Delegate, graph: TosaGraph, inputs: Sequence[_Side], outputs: Sequence[_Side]
) -> list[_Difference]:
    found = []
    for what, ports, sides, names in (
        ("input", delegate.inputs, inputs, graph.inputs),
        ("output", delegate.outputs, outputs, graph.outputs),
    ):
        if len(ports) != len(sides):
            found.append(_Difference(f"{len(sides)} {what}s, the program has {len(ports)}"))
            continue
        for number, (port, side) in enumerate(zip(ports, sides, strict=True)):
            if difference := _difference(port, side):
                tensor = names[number] if number < len(names) else ""
                found.append(_Difference(f"{what} {number} {difference}", tensor))
    return found


def _difference(port: Port, side: _Side) -> str:
    shape = port.physical_shape
    if side.dtype != port.dtype:
        return f"is {side.dtype}, the program says {port.dtype}"
    if side.shape != shape:
        return f"has shape {list(side.shape)}, the program says {list(shape)}"
    return ""
