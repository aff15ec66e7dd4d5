"""Listens to the backend's pass managers, and keeps the names of the passes that changed a graph.

Most passes say that they modified whatever they were given, so the graph itself is compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from executorch.backends.arm._passes import arm_pass_manager as backend
from executorch.backends.arm._passes.arm_pass import ArmPass
from torch.export import ExportedProgram

_Pass = Callable[[torch.fx.GraphModule], Any]


@dataclass
class Passes:
    """The names of the passes that ran, and of those that changed what they were given."""

    ran: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)


@contextmanager
def listening(passes: Passes) -> Iterator[None]:
    """Add to ``passes`` what runs meanwhile: in the quantizer before annotation, and before serialization."""
    adapter, manager = backend._ExportedProgramGraphPassAdapter, backend.GraphModulePassManager
    adapted = adapter.__init__

    def init(self: Any, graph_pass: _Pass) -> None:
        adapted(self, graph_pass)
        call, name = self.call, ArmPass.get_name(graph_pass)

        def observed(program: ExportedProgram) -> Any:
            def made(result: Any) -> torch.fx.GraphModule:
                after: torch.fx.GraphModule = result.exported_program.graph_module
                return after

            return _observed(passes, name, program.graph_module, functools.partial(call, program), made)

        self.call = observed

    def observing_manager(several: Sequence[_Pass]) -> Any:
        return manager([_observing(passes, item) for item in several])

    adapter.__init__, backend.GraphModulePassManager = init, observing_manager
    try:
        yield
    finally:
        adapter.__init__, backend.GraphModulePassManager = adapted, manager


def _observing(passes: Passes, graph_pass: _Pass) -> _Pass:
    """The same pass, which takes and gives a graph, under its name."""
    name = ArmPass.get_name(graph_pass)

    def call(module: torch.fx.GraphModule) -> Any:
        def made(result: Any) -> torch.fx.GraphModule:
            return module if result is None else result.graph_module

        return _observed(passes, name, module, functools.partial(graph_pass, module), made)

    call.__name__ = name
    return call


def _observed(
    passes: Passes,
    name: str,
    module: torch.fx.GraphModule,
    call: Callable[[], Any],
    made: Callable[[Any], torch.fx.GraphModule],
) -> Any:
    before = _form(module)
    result = call()
    passes.ran.add(name)
    if _form(made(result)) != before:
        passes.changed.add(name)
    return result


def _form(module: torch.fx.GraphModule) -> tuple[Any, ...]:
    """What a graph computes, without the names of its nodes: tracing it anew gives others."""
    numbers = {node: number for number, node in enumerate(module.graph.nodes)}

    def plain(value: Any) -> Any:
        return torch.fx.node.map_arg(value, lambda node: f"%{numbers[node]}")

    nodes = [
        (
            node.op,
            node.target if node.op == "call_function" else "",
            repr(plain(node.args)),
            repr(plain(node.kwargs)),
            _type_of(node.meta.get("val")),
        )
        for node in module.graph.nodes
    ]
    nested = [_form(child) for child in module.children() if isinstance(child, torch.fx.GraphModule)]
    return (tuple(nodes), tuple(nested))


def _type_of(value: Any) -> str:
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else ""
