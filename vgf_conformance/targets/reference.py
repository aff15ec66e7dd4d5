"""Runs a delegate's TOSA graph on the TOSA reference model, in process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tosa_reference_model

from vgf_conformance.formats.arrays import raw
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph, read_graph, storage
from vgf_conformance.targets.base import Array
from vgf_conformance.targets.runner import Refused
from vgf_conformance.vocabulary import Finding, Stage, Verdict


class ReferenceGraph:
    """One TOSA graph; the reference model allocates its own outputs, so no sentinel applies."""

    def __init__(self, tosa: bytes, graph: TosaGraph) -> None:
        self._tosa = tosa
        self._graph = graph

    def run(self, inputs: Sequence[Array], sentinel: int) -> list[Array]:
        """Run once; raises Refused where the run is unpredictable or the graph is invalid."""
        try:
            outputs, status = tosa_reference_model.run(self._tosa, [raw(array) for array in inputs])
        except ValueError as error:
            raise Refused(
                Verdict.FAIL,
                Stage.LOWER,
                Finding.INVALID,
                f"the reference model refuses the TOSA graph: {error}",
            ) from error
        if status.name != "TOSA_VALID":
            unpredictable = status.name == "TOSA_UNPREDICTABLE"
            raise Refused(
                Verdict.FAIL,
                Stage.LOWER,
                Finding.UNPREDICTABLE if unpredictable else Finding.INVALID,
                f"the reference run ends {status.name}: the lowering left TOSA's domain",
            )
        dtypes = [storage(self._graph.tensors[name].dtype) for name in self._graph.outputs]
        return [
            np.asarray(array.view(dtype) if array.dtype.kind == "V" else array)
            for array, dtype in zip(outputs, dtypes, strict=True)
        ]


class ReferenceRunner:
    """The runner of the target ``reference``."""

    def build(self, delegate: Delegate) -> ReferenceGraph:
        """Look before the run: the reference model has no custom operators."""
        graph = read_graph(delegate.tosa)
        if "CUSTOM" in graph.operator_counts():
            raise Refused(
                Verdict.UNSUPPORTED,
                Stage.RUN,
                Finding.INVALID,
                "the TOSA graph holds a CUSTOM operator, which the reference model cannot run",
            )
        return ReferenceGraph(delegate.tosa, graph)
