"""Where steps and TOSA operators come from in the user's model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch.export import ExportedProgram

from vgf_conformance.attribution.origin import Node, Origin, origin, source_line
from vgf_conformance.attribution.region import step_of
from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator
from vgf_conformance.lowering.program import Program


@dataclass(frozen=True)
class Places:
    """``operators`` are those of the program's steps by name, ``exported`` the origins of exported nodes.

    Both are empty where there is only a graph; what it notes itself is then all that is known.
    """

    operators: Mapping[str, str] = field(default_factory=dict)
    exported: Mapping[str, Origin] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program, exported: ExportedProgram) -> Places:
        """Those of a program that was made from ``exported``."""
        operators = {step.name: step.operator for step in program.steps}
        found = {node.name: _origin(node) for node in exported.graph.nodes if node.op == "call_function"}
        return cls(operators, found)

    def of_operator(self, operator: TosaOperator) -> Origin:
        """Where a TOSA operator comes from."""
        noted = origin(operator)
        if noted.source:
            return noted
        # The backend's own passes lose the user's line, which the exported program has.
        nodes = (node for node in reversed(noted.nodes) if node in self.exported)
        known = self.exported.get(next(nodes, ""), Origin())
        return dataclasses.replace(noted, source=known.source) if noted.operator else known

    def of_step(self, name: str, operator: TosaOperator) -> Origin:
        """Where a step comes from; ``operator`` is a TOSA operator that it may have become."""
        if step_of(operator, self.operators) == name:
            return self.of_operator(operator)
        known = self.exported.get(name, Origin())
        target = self.operators[name]
        return known if known.operator == target else Origin((Node(name, target),), target)

    def siblings(self, graph: TosaGraph, position: int) -> tuple[int, ...]:
        """The operators that the same step became, by position, the one at ``position`` first."""
        step = step_of(graph.operators[position], self.operators)
        others = [
            at
            for at, operator in enumerate(graph.operators)
            if step and operator.name not in CONSTANTS and step_of(operator, self.operators) == step
        ]
        return tuple(dict.fromkeys([position, *others]))


def _origin(node: Any) -> Origin:
    stack = node.meta.get("nn_module_stack") or {}
    module, kind = list(stack.values())[-1] if stack else ("", "")
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    return Origin(
        trace=(Node(node.name, str(node.target)),),
        operator=str(node.target),
        module=str(module),
        kind=name.rpartition(".")[2],
        source=source_line(node.meta.get("stack_trace") or ""),
    )
