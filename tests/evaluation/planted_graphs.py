"""Faults of a lowering, planted in the TOSA graphs that it made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from torch.export import ExportedProgram

from vgf_conformance.evaluation import attribute, prepare
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, read_graph
from vgf_conformance.formats.tosa_write import write_graph
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import Request, lower

Plant = Callable[[TosaGraph], TosaGraph]

WEIGHT, BIAS = 1, 2


def plant(patch: pytest.MonkeyPatch, fault: Plant) -> None:
    """What lowers from now on makes graphs with ``fault``; VGFs stay as they are."""

    def wrong(request: Request, cache: Cache | None, exported: ExportedProgram | None) -> Artifact:
        artifact = lower(request, cache, exported)
        delegates = tuple(
            replace(item, tosa=write_graph(fault(read_graph(item.tosa)))) for item in artifact.delegates
        )
        return replace(artifact, delegates=delegates)

    for module in (attribute, prepare):
        patch.setattr(module, "lower", wrong)


def constant(operator: str, number: int, operand: int, change: Callable[[Any], Any]) -> Plant:
    """Changes an operand of operator ``number`` of that name, a constant."""

    def fault(graph: TosaGraph) -> TosaGraph:
        name = _all(graph, operator)[number].inputs[operand]
        tensor = graph.tensors[name]
        assert tensor.data is not None
        changed = replace(tensor, data=np.asarray(change(tensor.data)).astype(tensor.data.dtype))
        return replace(graph, tensors={**graph.tensors, name: changed})

    return fault


def attribute_of(operator: str, number: int, **changed: Any) -> Plant:
    """Changes attributes of operator ``number`` of that name."""

    def fault(graph: TosaGraph) -> TosaGraph:
        wrong = _all(graph, operator)[number]
        right = replace(wrong, attributes={**wrong.attributes, **changed})
        operators = tuple(right if item is wrong else item for item in graph.operators)
        return replace(graph, operators=operators)

    return fault


def _all(graph: TosaGraph, name: str) -> list[TosaOperator]:
    return [operator for operator in graph.operators if operator.name == name]
