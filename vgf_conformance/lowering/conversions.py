"""Listens to the backend while it converts, and keeps which TOSA graph each VGF was made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from executorch.backends.arm.operators.op_tosa_rescale import RescaleVisitor
from executorch.backends.arm.vgf import backend

from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.causes import innermost


@dataclass
class Conversions:
    """TOSA graphs by VGF, and by what stands in for a VGF the error of the converter that made none.

    ``scales`` are those that the backend wants of each RESCALE of a VGF's graph, by its output's name.
    """

    graphs: dict[bytes, bytes] = field(default_factory=dict)
    scales: dict[bytes, dict[str, tuple[float, ...]]] = field(default_factory=dict)
    refused: dict[bytes, Exception] = field(default_factory=dict)


@contextmanager
def conversions() -> Iterator[Conversions]:
    """Yield what fills with the conversions.

    Where the converter refuses a graph with control flow, lowering goes on: the reference model runs it.

    The backend's dump of intermediate artifacts would do, but names them by delegation tag, which two
    delegates can have in common: then only the last one's files are left.
    """
    made = Conversions()
    original, define_rescale = backend.vgf_compile, RescaleVisitor.define_node
    wanted: dict[str, tuple[float, ...]] = {}

    def define_node(visitor: Any, node: Any, graph: Any, inputs: list[Any], output: Any) -> None:
        wanted[output.name] = tuple(map(float, node.args[2]))
        define_rescale(visitor, node, graph, inputs, output)

    def vgf_compile(tosa_flatbuffer: bytes, *arguments: Any, **keywords: Any) -> bytes:
        try:
            vgf: bytes = original(tosa_flatbuffer, *arguments, **keywords)
        except RuntimeError as error:
            if not _is_about_control_flow(error) or not read_graph(tosa_flatbuffer).regions:
                raise
            vgf = b"no VGF: " + hashlib.sha256(tosa_flatbuffer).digest()
            made.refused[vgf] = error
        made.graphs[bytes(vgf)] = bytes(tosa_flatbuffer)
        made.scales[bytes(vgf)] = dict(wanted)
        wanted.clear()
        return vgf

    backend.vgf_compile, RescaleVisitor.define_node = vgf_compile, define_node
    try:
        yield made
    finally:
        backend.vgf_compile, RescaleVisitor.define_node = original, define_rescale


def _is_about_control_flow(error: Exception) -> bool:
    words = getattr(innermost(error), "stderr", None) or b""
    return any(name in words for name in (b"tosa.cond_if", b"tosa.while_loop"))
