"""Faults of the quantise stage, put into what it makes of a right program: one place at a time.

Each is planted after one of the steps into a copy of the module, which the steps behind it then take.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch.fx import GraphModule, Node

from vgf_conformance.lowering.edges import WEIGHT_AXES
from vgf_conformance.lowering.program import operator_name

_QUANTISE = "quantized_decomposed.quantize_per_"
_DEQUANTISE = "quantized_decomposed.dequantize_per_"
_LAYERS = tuple(WEIGHT_AXES)
_RELUS = ("aten.relu.", "aten.relu_.", "aten.relu6.", "aten.hardtanh", "aten.clamp")
_BATCH_NORM = "aten.batch_norm"


class After(Enum):
    """The step whose result a fault is planted in."""

    EXPORT = "export"
    PREPARE = "prepare"
    CALIBRATE = "calibrate"
    CONVERT = "convert"


@dataclass(frozen=True)
class Fault:
    """``places`` names the nodes of a module where ``plant`` can put it, in the order of the program."""

    after: After
    places: Callable[[GraphModule], list[str]]
    plant: Callable[[GraphModule, Node], None]

    def planted(self, module: GraphModule, place: str) -> GraphModule:
        """Plant it in ``module`` itself."""
        self.plant(module, next(node for node in module.graph.nodes if node.name == place))
        module.recompile()
        return module


def _calls(module: GraphModule, *names: str) -> Iterator[Node]:
    for node in module.graph.nodes:
        if node.op == "call_function" and operator_name(node.target).startswith(names):
            yield node


def _is_call(node: Any, name: str) -> bool:
    return (
        isinstance(node, Node) and node.op == "call_function" and operator_name(node.target).startswith(name)
    )


def _constant(node: Any) -> Node | None:
    """The constant that is read behind observers, quantisation and dequantisation; None where it is none."""
    while isinstance(node, Node) and node.op != "get_attr":
        through = node.op == "call_module" or _is_call(node, _QUANTISE) or _is_call(node, _DEQUANTISE)
        node = node.args[0] if through else None
    return node if isinstance(node, Node) else None


def _value(module: GraphModule, node: Node) -> torch.Tensor:
    found = operator.attrgetter(str(node.target))(module)
    assert isinstance(found, torch.Tensor)
    return found.detach()


def _bypass(node: Node, by: Node) -> None:
    """Whatever reads ``node`` reads ``by`` instead."""
    node.replace_all_uses_with(by, delete_user_cb=lambda user: user is not by)


# Batch norms and biases, in the exported, the prepared or the converted program.


def _folded_norms(module: GraphModule) -> list[str]:
    return [node.name for node in _calls(module, _BATCH_NORM) if _is_layer(node.args[0])]


def _is_layer(node: Any) -> bool:
    return any(_is_call(node, name) for name in _LAYERS)


def _fold(module: GraphModule, norm: Node) -> None:
    """Fold it once already, as preparing will do again."""
    layer: Any = norm.args[0]
    scale, shift, mean, variance = (_of(module, item) for item in norm.args[1:5])
    factor = (1.0 if scale is None else scale) / torch.sqrt(variance + norm.args[7])
    weight = _of(module, layer.args[1])
    weight.mul_(_along(factor, _axis(layer), weight))
    bias = _of(module, layer.args[2]) if len(layer.args) > 2 else None
    if bias is not None:
        bias.copy_((bias - mean) * factor + (0.0 if shift is None else shift))


def _of(module: GraphModule, node: Any) -> Any:
    return None if node is None else _value(module, node)


def _axis(layer: Node) -> int:
    return next(axis for name, axis in WEIGHT_AXES.items() if _is_call(layer, f"{name}."))


def _biases(module: GraphModule) -> list[str]:
    return [node.name for node in _calls(module, *_LAYERS) if len(node.args) > 2 and _constant(node.args[2])]


def _lose_bias(module: GraphModule, layer: Node) -> None:
    bias = _constant(layer.args[2])
    assert bias is not None
    _value(module, bias).zero_()


def _relus(module: GraphModule) -> list[str]:
    return [node.name for node in _calls(module, *_RELUS)]


def _lose_relu(module: GraphModule, relu: Node) -> None:
    _bypass(relu, relu.all_input_nodes[0])


# Observers of the calibrated program.


def _activations(module: GraphModule) -> list[str]:
    return [
        node.name
        for node in module.graph.nodes
        if node.op == "call_module"
        and type(_observer(module, node)).__name__ in ("HistogramObserver", "MinMaxObserver")
        and not _constant(node)
    ]


def _observer(module: GraphModule, node: Node) -> Any:
    return module.get_submodule(str(node.target))


def _followed(module: GraphModule) -> list[str]:
    return [name for name in _activations(module) if _next(module, name) is not None]


def _next(module: GraphModule, name: str) -> Node | None:
    """The next observer of activations that is another one."""
    names = _activations(module)
    nodes = {node.name: node for node in module.graph.nodes}
    own = _observer(module, nodes[name])
    later = (nodes[other] for other in names[names.index(name) + 1 :])
    return next((node for node in later if _observer(module, node) is not own), None)


def _swap(module: GraphModule, node: Node) -> None:
    other = _next(module, node.name)
    assert other is not None
    node.target, other.target = other.target, node.target


def _saw_none(module: GraphModule, node: Node) -> None:
    observer = _observer(module, node)
    observer.min_val.fill_(torch.inf)
    observer.max_val.fill_(-torch.inf)


def _saw_half(module: GraphModule, node: Node) -> None:
    observer = _observer(module, node)
    observer.min_val.mul_(0.5)
    observer.max_val.mul_(0.5)


# Quantisation in the converted program.


def _quantised(module: GraphModule) -> list[str]:
    """Where activations are quantised."""
    return [node.name for node in _calls(module, _QUANTISE) if any(_read(node))]


def _with_constants(module: GraphModule) -> list[str]:
    """Where activations are quantised, and constants dequantised."""
    constants = [
        node.name for node in _calls(module, _DEQUANTISE) if node.all_input_nodes[0].op == "get_attr"
    ]
    return [*_quantised(module), *constants]


def _read(quantisation: Node) -> Iterator[Node]:
    return (user for user in quantisation.users if _is_call(user, _DEQUANTISE))


def _changed(place: int, change: Callable[[Any, Node], Any]) -> Callable[[GraphModule, Node], None]:
    """Another scale (1) or zero point (2), wherever the integers are made and read."""

    def plant(module: GraphModule, node: Node) -> None:
        held = node.args[place]
        if isinstance(held, Node):
            value = _value(module, held)
            value.copy_(change(value, node))
            return
        for one in (node, *_read(node)):
            one.update_arg(place, change(held, node))

    return plant


def _weights(module: GraphModule) -> list[str]:
    """Where weights are dequantised channel by channel."""
    return [
        node.name
        for node in _calls(module, f"{_DEQUANTISE}channel")
        if node.all_input_nodes[0].op == "get_attr" and _value(module, node.all_input_nodes[0]).ndim > 1
    ]


def _exchange_axis(module: GraphModule, read: Node) -> None:
    """Quantise the weights along the other of their first two axes."""
    arguments: Any = read.args
    codes, scales, zeros, axis, low, high, dtype = arguments
    held = _value(module, codes)
    weights = (held - _along(_value(module, zeros), axis, held)) * _along(_value(module, scales), axis, held)
    other = 1 - axis
    steps = weights.movedim(other, 0).flatten(1).abs().amax(1).clamp(min=1e-9) / high
    rounded = (weights / _along(steps, other, held)).round().clamp(low, high).to(dtype)
    made = []
    with module.graph.inserting_before(read):
        for name, value in (("codes", rounded), ("scales", steps), ("zeros", torch.zeros_like(steps).long())):
            module.register_buffer(f"{read.name}_{name}", value)
            made.append(module.graph.get_attr(f"{read.name}_{name}"))
    read.args = (*made, other, low, high, dtype)


def _along(values: torch.Tensor, axis: int, like: torch.Tensor) -> torch.Tensor:
    return values.reshape([-1 if number == axis else 1 for number in range(like.ndim)])


def _neighbour(zero: Any, node: Node) -> Any:
    """The next zero point above, or below the largest integer."""
    highest = node.args[5] if "_per_channel" in operator_name(node.target) else node.args[4]
    if isinstance(zero, torch.Tensor):
        return torch.where(zero < highest, zero + 1, zero - 1)
    return zero + 1 if zero < highest else zero - 1


def _drop(module: GraphModule, quantisation: Node) -> None:
    source = quantisation.args[0]
    assert isinstance(source, Node)
    for read in list(_read(quantisation)):
        _bypass(read, source)


def _double(module: GraphModule, quantisation: Node) -> None:
    """Quantised at another scale first."""
    arguments: Any = quantisation.args
    source, scale, *others = arguments
    read = next(_read(quantisation))
    with module.graph.inserting_before(quantisation):
        once = module.graph.call_function(quantisation.target, (source, scale * 1.5, *others))
        twice = module.graph.call_function(read.target, (once, scale * 1.5, *others))
    quantisation.update_arg(0, twice)


def _outputs(module: GraphModule) -> list[str]:
    (output,) = module.graph.find_nodes(op="output")
    return [node.name for node in output.all_input_nodes if _is_call(node, f"{_DEQUANTISE}tensor")]


def _step_lower(module: GraphModule, read: Node) -> None:
    zero: Any = read.args[2]
    read.update_arg(2, zero + 1)


def _quantised_layers(module: GraphModule) -> list[str]:
    return [
        node.name
        for node in module.graph.nodes
        if node.op == "call_function"
        and not _is_call(node, _QUANTISE)
        and not _is_call(node, _DEQUANTISE)
        and any(_unquantised(read) for read in node.all_input_nodes)
    ]


def _unquantised(read: Node) -> Node | None:
    """What a dequantised activation is before it is quantised."""
    quantisation: Any = read.args[0] if _is_call(read, _DEQUANTISE) else None
    return quantisation.args[0] if _is_call(quantisation, _QUANTISE) else None


def _leave(module: GraphModule, layer: Node) -> None:
    for read in layer.all_input_nodes:
        if source := _unquantised(read):
            layer.replace_input_with(read, source)
    for quantisation in list(layer.users):
        if _is_call(quantisation, _QUANTISE):
            _drop(module, quantisation)


#: What is wrong -> how it is planted.
FAULTS: dict[str, Fault] = {
    "batch norm folded twice": Fault(After.EXPORT, _folded_norms, _fold),
    "bias lost in preparing": Fault(After.PREPARE, _biases, _lose_bias),
    "ReLU lost in preparing": Fault(After.PREPARE, _relus, _lose_relu),
    "observers swapped": Fault(After.CALIBRATE, _followed, _swap),
    "calibration data ignored": Fault(After.CALIBRATE, _activations, _saw_none),
    "other calibration data": Fault(After.CALIBRATE, _activations, _saw_half),
    "scale off by 2 %": Fault(After.CONVERT, _with_constants, _changed(1, lambda scale, _node: scale * 1.02)),
    "scale off by 2x": Fault(After.CONVERT, _with_constants, _changed(1, lambda scale, _node: scale * 2)),
    "zero point off by one": Fault(After.CONVERT, _with_constants, _changed(2, _neighbour)),
    "axis exchanged": Fault(After.CONVERT, _weights, _exchange_axis),
    "bias lost": Fault(After.CONVERT, _biases, _lose_bias),
    "ReLU lost": Fault(After.CONVERT, _relus, _lose_relu),
    "requantisation dropped": Fault(After.CONVERT, _quantised, _drop),
    "requantisation doubled": Fault(After.CONVERT, _quantised, _double),
    "output one step lower": Fault(After.CONVERT, _outputs, _step_lower),
    "layer left unquantised": Fault(After.CONVERT, _quantised_layers, _leave),
}
