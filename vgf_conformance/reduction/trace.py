"""The user's model as a flat row of computing nodes, any part of which is a model again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from vgf_conformance.attribution.origin import source_line
from vgf_conformance.lowering.program import NotRepresentable, Program, Ref, Step, read_program
from vgf_conformance.quiet import quiet
from vgf_conformance.vocabulary import UserError

GETITEM = "_operator:getitem"
#: Operators that torch registers by itself; others come from the user's own code or another package.
_NAMESPACES = ("aten", "prim", "prims")


@dataclass(frozen=True)
class Unit:
    """One computing node with the steps that take its results apart.

    ``results`` are the names of the tensors that other nodes and the user can have; ``source`` is the
    user's line, as ``file.py:12``, empty where it is not known.
    """

    steps: tuple[Step, ...]
    results: tuple[str, ...]
    source: str

    @property
    def name(self) -> str:
        """The node's own name."""
        return self.steps[0].name

    @property
    def operator(self) -> str:
        """The node's operator, as ``aten.add.Tensor``."""
        return self.steps[0].operator

    @property
    def reads(self) -> set[str]:
        """What the unit reads that it does not make itself."""
        read = set().union(*(step.reads for step in self.steps))
        return read - {step.name for step in self.steps}


@dataclass(frozen=True)
class Trace:
    """A model exported with fixed shapes, without in-place operators.

    ``units`` are in the order in which they run; ``parameters`` and ``buffers`` name those of
    ``program.constants`` that were a module's, ``outputs`` the user's outputs.
    """

    program: Program
    units: tuple[Unit, ...]
    parameters: frozenset[str]
    buffers: frozenset[str]
    outputs: frozenset[str]

    def values(self, names: Iterable[str], inputs: Sequence[Any]) -> dict[str, Any]:
        """What the eager program holds under ``names`` when it is run on (flattened) ``inputs``.

        Raises whatever an operator raises.
        """
        wanted = set(names)
        given = dict(zip(self.program.inputs, inputs, strict=True))
        found = {name: value for name, value in given.items() if name in wanted}

        def keep(step: Step, args: tuple[Any, ...], result: Any) -> Any:
            if step.name in wanted:
                found[step.name] = result
            return result

        self.program.walk(inputs, after=keep)
        return found

    def readers(self, number: int) -> set[int]:
        """The units that read a result of unit ``number``."""
        results = set(self.units[number].results)
        return {other for other, unit in enumerate(self.units) if results & unit.reads}

    def producers(self, number: int) -> set[int]:
        """The units whose results unit ``number`` reads."""
        reads = self.units[number].reads
        return {other for other, unit in enumerate(self.units) if reads.intersection(unit.results)}


def trace(file: str, module: torch.nn.Module, inputs: tuple[Any, ...]) -> Trace:
    """Export ``module`` and take the program apart. Raises UserError where that cannot be done."""
    try:
        with quiet():
            exported = torch.export.export(module, inputs)
            if _mutates(exported.graph):
                # Without decompositions this only turns in-place operators into others.
                exported = exported.run_decompositions({})
        program, _ = read_program(exported)
        if branching := next((step.name for step in program.steps if step.nested), ""):
            raise NotRepresentable(f"it has control flow ({branching})")
    except NotRepresentable as error:
        raise UserError(f"{file}: cannot be reduced: {error}") from error
    except Exception as error:
        words = str(error).strip().splitlines()
        message = f"{type(error).__name__}: {words[0] if words else ''}"
        raise UserError(f"{file}: torch.export refuses the model with fixed shapes: {message}") from error
    kinds = {spec.arg.name: spec.kind for spec in exported.graph_signature.input_specs}
    return Trace(
        program=program,
        units=_units(program, exported.graph),
        parameters=frozenset(name for name, kind in kinds.items() if kind is InputKind.PARAMETER),
        buffers=frozenset(name for name, kind in kinds.items() if kind is InputKind.BUFFER),
        outputs=frozenset(value.name for value in program.outputs if isinstance(value, Ref)),
    )


def _mutates(graph: torch.fx.Graph) -> bool:
    return any(
        isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
        for node in graph.nodes
        if node.op == "call_function"
    )


def _units(program: Program, graph: torch.fx.Graph) -> tuple[Unit, ...]:
    nodes = {node.name: node for node in graph.nodes}
    tensors = {name for name, node in nodes.items() if isinstance(node.meta.get("val"), torch.Tensor)}
    parts: dict[str, list[Step]] = {}
    owner: dict[str, str] = {}
    for step in program.steps:
        source = step.args[0] if step.operator == GETITEM else None
        belongs = owner.get(source.name, step.name) if isinstance(source, Ref) else step.name
        owner[step.name] = belongs
        parts.setdefault(belongs, []).append(step)
    units = []
    read = set().union(*(step.reads for step in program.steps)) if program.steps else set()
    for name, steps in parts.items():
        results = tuple(step.name for step in steps if step.name in tensors)
        # What gives nothing and is read by nothing is a check of the exporter's.
        if (results or name in read) and _self_contained(steps[0].operator):
            line = source_line(nodes[name].meta.get("stack_trace") or "")
            units.append(Unit(tuple(steps), results, line))
    return tuple(units)


def _self_contained(operator: str) -> bool:
    """Whether a case file can name the operator without the user's code, which registers others."""
    return ":" in operator or operator.partition(".")[0] in _NAMESPACES
