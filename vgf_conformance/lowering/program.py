"""A program as data: steps of named operators, so that it can be cached, read and walked anywhere.

torch's own exported programs do not save once they hold delegates; this form does, and a walk
over it sends each delegate call to whichever target is asked.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

DelegateCall = Callable[[int, Sequence[torch.Tensor]], Sequence[torch.Tensor]]
AfterStep = Callable[["Step", tuple[Any, ...], Any], Any]

#: Operators outside aten register when their module is imported.
_REGISTER = (
    "torch.ao.quantization.fx._decomposed",
    "executorch.exir.passes.dim_order_ops_registry",
)


@dataclass(frozen=True)
class Ref:
    """A value computed earlier, by name."""

    name: str


@dataclass(frozen=True)
class Step:
    """``name = operator(*args, **keywords)``; ``delegate`` numbers the delegate where it is a call of one."""

    name: str
    operator: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    delegate: int | None = None

    @property
    def reads(self) -> set[str]:
        """Names of the values that the step reads."""
        return _refs(self.args) | _refs(self.keywords)


@dataclass(frozen=True)
class Program:
    """A flat program. ``inputs`` are the user's, in flattened order; ``outputs`` likewise, without None."""

    inputs: tuple[str, ...]
    constants: dict[str, Any]
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]
    frees: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def walk(
        self, inputs: Sequence[Any], call: DelegateCall | None = None, after: AfterStep | None = None
    ) -> list[Any]:
        """Run the program and return the user's outputs, flattened.

        ``after`` sees each step outside the delegates with its arguments and its result, and may
        replace the result. ``frees`` names the values that nothing reads after a step. Whatever
        ``call`` and the operators raise passes through.
        """
        values: dict[str, Any] = {**self.constants, **dict(zip(self.inputs, inputs, strict=True))}
        with torch.no_grad():
            for index, step in enumerate(self.steps):
                args, keywords = resolve(step.args, values), resolve(step.keywords, values)
                if step.delegate is not None:
                    assert call is not None
                    result = call(step.delegate, args)
                else:
                    result = function(step.operator)(*args, **keywords)
                    result = after(step, args, result) if after else result
                values[step.name] = result
                for name in self.frees.get(index, ()):
                    values.pop(name, None)
        return list(resolve(self.outputs, values))


class NotRepresentable(Exception):
    """The exported program holds something that a flat program cannot: control flow, for instance."""


def read_program(exported: ExportedProgram) -> tuple[Program, list[LoweredBackendModule]]:
    """Turn an exported (edge or quantised) program into a Program and its delegates, in call order.

    Raises NotRepresentable for control flow.
    """
    lowered: dict[str, LoweredBackendModule] = {}
    steps: list[Step] = []
    delegates: list[LoweredBackendModule] = []
    constants = _constants(exported)
    outputs: tuple[Any, ...] = ()
    for node in exported.graph.nodes:
        if node.op == "get_attr":
            attribute = operator.attrgetter(node.target)(exported.graph_module)
            if isinstance(attribute, LoweredBackendModule):
                lowered[node.name] = attribute
            elif isinstance(attribute, torch.Tensor):
                constants[node.name] = attribute
            else:
                raise NotRepresentable(f"it has control flow ({node.name})")
        elif node.op == "call_function":
            args, keywords = _symbolic(node.args), _symbolic(node.kwargs)
            if node.target is executorch_call_delegate:
                delegates.append(lowered[node.args[0].name])
                steps.append(Step(node.name, "executorch_call_delegate", args[1:], {}, len(delegates) - 1))
            else:
                steps.append(Step(node.name, operator_name(node.target), args, keywords))
        elif node.op == "output":
            outputs = _symbolic(node.args[0])
    kinds = [spec.kind for spec in exported.graph_signature.output_specs]
    user_outputs = tuple(
        value
        for value, kind in zip(outputs, kinds, strict=True)
        if kind == OutputKind.USER_OUTPUT and value is not None
    )
    inputs = tuple(
        spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT
    )
    return Program(inputs, constants, tuple(steps), user_outputs, _frees(steps, user_outputs)), delegates


def operator_name(target: Any) -> str:
    """``aten.add.Tensor`` for an operator, ``module:function`` for a Python function."""
    if isinstance(target, EdgeOpOverload):
        target = target._op
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if callable(target) and hasattr(target, "__name__"):
        return f"{target.__module__}:{target.__name__}"
    raise NotRepresentable(f"{target} is no operator")


def _constants(exported: ExportedProgram) -> dict[str, Any]:
    constants: dict[str, Any] = {}
    for spec in exported.graph_signature.input_specs:
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and spec.target in exported.state_dict:
            constants[spec.arg.name] = exported.state_dict[spec.target].detach()
        elif spec.kind in (InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            constants[spec.arg.name] = exported.constants[spec.target]
    return constants


def _symbolic(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return Ref(value.name)
    if isinstance(value, (list, tuple)):
        return (
            tuple(_symbolic(item) for item in value)
            if isinstance(value, tuple)
            else [_symbolic(i) for i in value]
        )
    if isinstance(value, Mapping):
        return {key: _symbolic(item) for key, item in value.items()}
    return value


def resolve(value: Any, values: Mapping[str, Any]) -> Any:
    """``value`` with every Ref in it replaced by what ``values`` holds under its name."""
    if isinstance(value, Ref):
        return values[value.name]
    if isinstance(value, tuple):
        return tuple(resolve(item, values) for item in value)
    if isinstance(value, list):
        return [resolve(item, values) for item in value]
    if isinstance(value, dict):
        return {key: resolve(item, values) for key, item in value.items()}
    return value


def _refs(value: Any) -> set[str]:
    if isinstance(value, Ref):
        return {value.name}
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return set().union(*(_refs(item) for item in value)) if value else set()
    return set()


def _frees(steps: Sequence[Step], outputs: tuple[Any, ...]) -> dict[int, tuple[str, ...]]:
    last: dict[str, int] = {}
    for index, step in enumerate(steps):
        last.update(dict.fromkeys(step.reads, index))
    frees: dict[int, tuple[str, ...]] = {}
    for name in sorted(last.keys() - _refs(outputs)):
        frees[last[name]] = (*frees.get(last[name], ()), name)
    return frees


def function(name: str) -> Callable[..., Any]:
    """The operator or Python function that a step names."""
    if ":" in name:
        module, _, function = name.partition(":")
        found = getattr(importlib.import_module(module), function)
    else:
        for module in _REGISTER:
            importlib.import_module(module)
        namespace, packet, overload = name.split(".")
        found = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    assert callable(found)
    return found
