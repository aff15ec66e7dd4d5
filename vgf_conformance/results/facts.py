"""What a record tells of a delegate, read from its graph."""

from __future__ import annotations

from vgf_conformance.formats.precision import computed_in_floating_point, requantisations
from vgf_conformance.formats.tosa import TosaGraph
from vgf_conformance.results.record import DelegateFacts


def delegate_facts(name: str, nodes: int, graph: TosaGraph, tosa: bytes, vgf: bytes) -> DelegateFacts:
    """The facts of the delegate ``name``, made of so many edge nodes; ``graph`` is what ``tosa`` says."""
    return DelegateFacts(
        name=name,
        nodes=nodes,
        tosa_operators=graph.operator_counts(),
        tosa_bytes=len(tosa),
        vgf_bytes=len(vgf),
        tosa_dtypes=graph.operator_dtypes(),
        floating=computed_in_floating_point(graph),
        requantised=requantisations(graph),
    )
