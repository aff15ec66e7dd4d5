"""A program as data: steps of named operators, so that it can be cached, read and walked anywhere.

torch's own exported programs do not save once they hold delegates; this form does, and a walk
over it sends each delegate call to whichever target is asked.
"""

from __future__ import annotations

import copy
import importlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

#: The operator of a step that is an observer, with what it sees and its name as arguments.
OBSERVED = f"{__name__}:observed"

DelegateCall = Callable[[int, Sequence[torch.Tensor]], Sequence[torch.Tensor]]
AfterStep = Callable[["Step", tuple[Any, ...], Any], Any]
#: Buffers by their names in the module.
State = dict[str, torch.Tensor]

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

    @property
    def nested(self) -> tuple[Program, ...]:
        """The branches or the bodies of a step that is control flow."""
        return tuple(value for value in self.args if isinstance(value, Program))


@dataclass(frozen=True)
class Program:
    """A program of steps. ``inputs`` are the user's, in flattened order; ``outputs`` likewise, without None.

    Branches and bodies of loops are programs among the arguments of their step. The names in them start with
    that of the step, so that a name stands for one value of the whole.

    ``buffers`` maps constants to the names of the module's buffers, where the program writes to some.
    ``writes`` are the new values by the buffer's name; other buffers are written to by steps, in place.
    ``written_inputs`` counts the inputs that the program writes to: an ExecuTorch program gives these back
    before its outputs.
    """

    inputs: tuple[str, ...]
    constants: dict[str, Any]
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]
    frees: dict[int, tuple[str, ...]] = field(default_factory=dict)
    buffers: dict[str, str] = field(default_factory=dict)
    writes: dict[str, Any] = field(default_factory=dict)
    written_inputs: int = 0

    def with_own_constants(self) -> Program:
        """The same with buffers of its own where a step may write to one, so that the module's stay."""
        writes = any(writes_in_place(step) for step in self.all_steps)
        return replace(self, constants=copy.deepcopy(self.constants)) if writes else self

    def walk(
        self,
        inputs: Sequence[Any],
        call: DelegateCall | None = None,
        after: AfterStep | None = None,
        state: State | None = None,
    ) -> list[Any]:
        """Run the program and return the user's outputs, flattened.

        ``after`` sees each step outside the delegates with its arguments and its result, and may
        replace the result; a step inside a loop it sees each time. ``frees`` names the values that nothing
        reads after a step. ``state`` holds the buffers that an earlier call left, none before the first, and
        takes those that this one leaves; without it the call is the first. Whatever ``call`` and the
        operators raise passes through.
        """
        known = state if state is not None else {}
        # Copies: steps may write to them in place.
        owned = {
            name: known.get(buffer, self.constants[name]).clone() for name, buffer in self.buffers.items()
        }
        values: dict[str, Any] = {**self.constants, **owned, **dict(zip(self.inputs, inputs, strict=True))}
        with torch.no_grad():
            for index, step in enumerate(self.steps):
                args, keywords = resolve(step.args, values), resolve(step.keywords, values)
                if step.delegate is not None:
                    assert call is not None
                    result = call(step.delegate, args)
                else:
                    if step.operator in _CONTROL_FLOW:
                        result = _CONTROL_FLOW[step.operator](_Walker(call, after), *args)
                    else:
                        result = function(step.operator)(*args, **keywords)
                    result = after(step, args, result) if after else result
                values[step.name] = result
                for name in self.frees.get(index, ()):
                    values.pop(name, None)
        if state is not None:
            state.update({buffer: owned[name] for name, buffer in self.buffers.items()})
            state.update(resolve(self.writes, values))
        return list(resolve(self.outputs, values))

    @property
    def all_steps(self) -> Iterator[Step]:
        """The steps, and after each one those of its branches or bodies."""
        for step in self.steps:
            yield step
            for program in step.nested:
                yield from program.all_steps


@dataclass(frozen=True)
class _Walker:
    """Runs nested programs as the program around them is run."""

    call: DelegateCall | None
    after: AfterStep | None

    def __call__(self, program: Program, *inputs: Any) -> list[Any]:
        return program.walk(inputs, self.call, self.after)


def _cond(walk: _Walker, chosen: Any, true: Program, false: Program, operands: Sequence[Any] = ()) -> Any:
    return walk(true if bool(chosen) else false, *operands)


def _while_loop(
    walk: _Walker, until: Program, body: Program, carried: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    values = list(carried)
    while bool(walk(until, *values, *others)[0]):
        values = walk(body, *values, *others)
    return values


def _scan(
    walk: _Walker, body: Program, carried: Sequence[Any], over: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    values, made = list(carried), []
    for slices in zip(*over, strict=True):
        results = walk(body, *values, *slices, *others)
        values = results[: len(values)]
        made.append(results[len(values) :])
    return [*values, *map(torch.stack, zip(*made, strict=True))]


def _map(walk: _Walker, body: Program, over: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    return _scan(walk, body, (), over, others)


#: torch's own implementations trace and compile the branches; these only run them.
_CONTROL_FLOW: dict[str, Callable[..., Any]] = {
    "higher_order.cond": _cond,
    "higher_order.while_loop": _while_loop,
    "higher_order.scan": _scan,
    "higher_order.map_impl": _map,
}


class NotRepresentable(Exception):
    """The exported program holds something that a program of steps cannot."""


def read_program(exported: ExportedProgram) -> tuple[Program, list[LoweredBackendModule]]:
    """Turn an exported (edge or quantised) program into a Program and its delegates, in call order.

    Delegates of a branch or a body come where it is used. Raises NotRepresentable for an operator that is
    neither a plain one nor control flow that is known here.
    """
    delegates: list[LoweredBackendModule] = []
    kinds = [spec.kind for spec in exported.graph_signature.output_specs]
    whole = _Reader(exported.graph_module, "", delegates).program(constants_of(exported))
    outputs = tuple(
        value
        for value, kind in zip(whole.outputs, kinds, strict=True)
        if kind == OutputKind.USER_OUTPUT and value is not None
    )
    inputs = tuple(
        spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT
    )
    writes = {
        spec.target: value
        for value, spec in zip(whole.outputs, exported.graph_signature.output_specs, strict=True)
        if spec.kind == OutputKind.BUFFER_MUTATION and spec.target is not None
    }
    program = replace(
        whole,
        inputs=inputs,
        outputs=outputs,
        frees=_frees(whole.steps, (*outputs, *writes.values())),
        buffers=_buffers(exported) if writes or _writes_in_place(exported) else {},
        writes=writes,
        written_inputs=kinds.count(OutputKind.USER_INPUT_MUTATION),
    )
    return program, delegates


def _buffers(exported: ExportedProgram) -> dict[str, str]:
    return {
        spec.arg.name: spec.target
        for spec in exported.graph_signature.input_specs
        if spec.kind == InputKind.BUFFER and spec.target is not None
    }


def _writes_in_place(exported: ExportedProgram) -> bool:
    return any(
        isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
        for node in all_nodes(exported.graph_module)
    )


def read_prepared(prepared: torch.fx.GraphModule) -> Program:
    """A program prepared for quantisation: each observer is a step OBSERVED, which gives what it is given.

    Parameters are shared with ``prepared``, buffers are not: running it may write to them. Raises
    NotRepresentable as read_program does.
    """
    whole = _Reader(prepared, "", []).program({})
    # A buffer that several nodes read stays one.
    own = {
        id(value): value.detach() if isinstance(value, torch.nn.Parameter) else value.detach().clone()
        for value in whole.constants.values()
    }
    constants = {name: own[id(value)] for name, value in whole.constants.items()}
    outputs = tuple(value for value in whole.outputs if value is not None)
    return replace(whole, constants=constants, outputs=outputs)


def observed(value: torch.Tensor, observer: str) -> torch.Tensor:
    """What an observer of that name gives: what it was given."""
    return value


def delegate_calls(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """The nodes that call the delegates of ``read_program``, in their order."""
    for node in all_nodes(module):
        if node.target is executorch_call_delegate:
            yield node


def all_nodes(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """The nodes of a graph, and after those of control flow the ones of its branches or bodies."""
    for node in module.graph.nodes:
        yield node
        if node.op == "call_function":
            for argument in node.args:
                if (nested := _graph_of(argument, module)) is not None:
                    yield from all_nodes(nested)


def _graph_of(argument: Any, module: torch.fx.GraphModule) -> torch.fx.GraphModule | None:
    if not isinstance(argument, torch.fx.Node) or argument.op != "get_attr":
        return None
    attribute = operator.attrgetter(argument.target)(module)
    return attribute if isinstance(attribute, torch.fx.GraphModule) else None


class _Reader:
    """Reads one graph; ``prefix`` goes before its names, and ``delegates`` takes what its calls need."""

    def __init__(
        self, module: torch.fx.GraphModule, prefix: str, delegates: list[LoweredBackendModule]
    ) -> None:
        self._module, self._prefix, self._delegates = module, prefix, delegates

    def program(self, constants: dict[str, Any]) -> Program:
        """The graph as a program with ``constants`` and those that it holds itself."""
        steps: list[Step] = []
        inputs: list[str] = []
        outputs: Any = ()
        constants = dict(constants)
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._prefix + node.name)
            elif node.op == "get_attr":
                attribute = operator.attrgetter(node.target)(self._module)
                if isinstance(attribute, torch.Tensor):
                    constants[self._prefix + node.name] = attribute
            elif node.op == "call_function":
                steps.append(self._step(node))
            elif node.op == "call_module":
                observer = self._prefix + str(node.target)
                steps.append(
                    Step(self._prefix + node.name, OBSERVED, (self._symbolic(node.args[0]), observer), {})
                )
            elif node.op == "output":
                outputs = self._symbolic(node.args[0])
        outputs = tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,)
        return Program(tuple(inputs), constants, tuple(steps), outputs, _frees(steps, outputs))

    def _step(self, node: torch.fx.Node) -> Step:
        name = self._prefix + node.name
        if node.target is executorch_call_delegate:
            source: Any = node.args[0]
            self._delegates.append(operator.attrgetter(source.target)(self._module))
            number = len(self._delegates) - 1
            return Step(name, "executorch_call_delegate", self._symbolic(node.args[1:]), {}, number)
        called = operator_name(node.target)
        if isinstance(node.target, torch._ops.HigherOrderOperator) and called not in _CONTROL_FLOW:
            raise NotRepresentable(f"it has control flow ({called})")
        args = tuple(self._argument(argument, name) for argument in node.args)
        return Step(name, called, args, self._symbolic(node.kwargs))

    def _argument(self, argument: Any, owner: str) -> Any:
        nested = _graph_of(argument, self._module)
        if nested is None:
            return self._symbolic(argument)
        # The two branches of one step have names in common: the argument's own tells them apart.
        return _Reader(nested, f"{owner}.{argument.name}.", self._delegates).program({})

    def _symbolic(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return Ref(self._prefix + value.name)
        if isinstance(value, (list, tuple)):
            items = [self._symbolic(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, Mapping):
            return {key: self._symbolic(item) for key, item in value.items()}
        return value


def operator_name(target: Any) -> str:
    """``aten.add.Tensor`` for an operator, ``module:function`` for a Python function."""
    if isinstance(target, EdgeOpOverload):
        target = target._op
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"{target.namespace}.{target.name()}"
    if callable(target) and hasattr(target, "__name__"):
        return f"{target.__module__}:{target.__name__}"
    raise NotRepresentable(f"{target} is no operator")


def constants_of(exported: ExportedProgram) -> dict[str, Any]:
    """Parameters, buffers and constant tensors by the names of their nodes."""
    constants: dict[str, Any] = {}
    for spec in exported.graph_signature.input_specs:
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and spec.target in exported.state_dict:
            constants[spec.arg.name] = exported.state_dict[spec.target].detach()
        elif spec.kind in (InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            constants[spec.arg.name] = exported.constants[spec.target]
    return constants


def reached_from(program: Program, chosen: Callable[[Step], bool]) -> set[str]:
    """Names of the steps that ``chosen`` picks, and of all whose values depend on one of these."""
    reached: set[str] = set()
    for step in program.steps:
        if chosen(step) or step.reads & reached:
            reached.add(step.name)
    return reached


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


def writes_in_place(step: Step) -> bool:
    """Whether a step outside the delegates writes to one of its arguments."""
    if step.delegate is not None or step.nested or ":" in step.operator:
        return False
    operator: Any = function(step.operator)
    return bool(operator._schema.is_mutable)


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
