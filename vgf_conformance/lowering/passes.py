"""Listens to the backend's pass managers, and keeps the names of the passes that changed a graph.

Most passes say that they modified whatever they were given, so the graph itself is compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from executorch.backends.arm._passes import arm_pass_manager
from executorch.backends.arm._passes.arm_pass import ArmPass

_Pass = Callable[[torch.fx.GraphModule], Any]


@dataclass
class Passes:
    """The names of the passes that ran, and of those that changed what they were given."""

    ran: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)


@contextmanager
def listening(passes: Passes) -> Iterator[None]:
    """Add to ``passes`` what runs meanwhile: in the quantizer before annotation, and before serialization."""
    adapter, manager = arm_pass_manager._ExportedProgramGraphPassAdapter, arm_pass_manager.ArmPassManager
    adapted, transform = adapter.__init__, manager._transform_graph_module

    def init(self: Any, graph_pass: _Pass) -> None:
        adapted(self, graph_pass)
        call = self.call
        self.call = lambda program: _observed(
            passes,
            ArmPass.get_name(graph_pass),
            program.graph_module,
            functools.partial(call, program),
            lambda result: result.exported_program.graph_module,
        )

    def transform_graph_module(self: Any, module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        kept, self.passes = self.passes, [_listened(passes, item) for item in self.passes]
        try:
            changed: torch.fx.GraphModule = transform(self, module)
        finally:
            self.passes = kept
        return changed

    adapter.__init__, manager._transform_graph_module = init, transform_graph_module
    try:
        yield
    finally:
        adapter.__init__, manager._transform_graph_module = adapted, transform


def _listened(passes: Passes, graph_pass: _Pass) -> _Pass:
    def call(module: torch.fx.GraphModule) -> Any:
        return _observed(
            passes,
            ArmPass.get_name(graph_pass),
            module,
            functools.partial(graph_pass, module),
            lambda result: module if result is None else result.graph_module,
        )

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
