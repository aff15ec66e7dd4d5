"""Thirty faults in a quantised network of 44 layers, and what is named for each.

``python -m tests.evaluation.deep SEED`` tries them all, in a few minutes; the tests a few.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import quantize_pt2e

from tests.attribution.graphs import InProcess, planted
from tests.evaluation.planted_graphs import BIAS, WEIGHT, constant, plant
from tests.subjects import INT, randn, subject
from vgf_conformance.evaluation.eager import leaves, repeated_eager, tensors
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.quantisation.faults import FAULTS, After
from vgf_conformance.evaluation.quantisation.stage import Quantised, judge_quantise
from vgf_conformance.evaluation.subject import Subject, request_of
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower, quantised_for
from vgf_conformance.lowering.program import operator_name, read_program
from vgf_conformance.results.record import Record
from vgf_conformance.targets.process import reference_target
from vgf_conformance.vocabulary import Stage

CHANNELS = 6


class Residual(nn.Module):
    """Adds what its layers give to what they are given."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def norm() -> nn.BatchNorm2d:
    """It takes over the statistics of the first batch that it is trained on."""
    made = nn.BatchNorm2d(CHANNELS, momentum=1.0)
    nn.init.uniform_(made.weight, 0.7, 1.4)
    nn.init.uniform_(made.bias, -0.3, 0.3)
    return made


def block(draw: random.Random) -> nn.Module:
    """Three layers: a convolution with its batch norm and an activation, in a residual now and then."""
    size, groups = draw.choice([(1, 1), (3, 1), (3, CHANNELS)])
    convolution = nn.Conv2d(CHANNELS, CHANNELS, size, padding=size // 2, groups=groups)
    activation = draw.choice([nn.ReLU, nn.ReLU, nn.Hardtanh, nn.Sigmoid])()
    layers = convolution, norm(), activation
    return Residual(*layers) if draw.random() < 0.5 else nn.Sequential(*layers)


def network(seed: int) -> Subject:
    """44 layers, whose values keep their size from the first to the last."""
    torch.manual_seed(seed)
    draw = random.Random(seed)  # noqa: S311 - no secret
    layers = [block(draw) for _ in range(14)]
    module = nn.Sequential(*layers, nn.Flatten(), nn.Linear(CHANNELS * 25, 10))
    inputs = randn(1, CHANNELS, 5, 5, seed=seed)
    module.train()(inputs)
    return subject(module, inputs)


@dataclass
class Named:
    """What has to be named: the step of the quantise stage, and the value; known once it is planted."""

    step: str
    value: str = ""


#: Plants one fault of the quantise stage.
StagePlant = Callable[[pytest.MonkeyPatch], Named]


def of_stage(step: str, name: str, place: int) -> StagePlant:
    """A fault of ``FAULTS``, at its place of that number."""
    fault = FAULTS[name]

    def plant(patch: pytest.MonkeyPatch) -> Named:
        named, original = Named(step), quantize_pt2e.convert_pt2e

        def put(module: GraphModule) -> GraphModule:
            places = fault.places(module)
            chosen = places[place % len(places)]
            named.value = _value(name, next(node for node in module.graph.nodes if node.name == chosen))
            return fault.planted(module, chosen)

        def convert(prepared: GraphModule) -> GraphModule:
            return put(original(prepared)) if fault.after is After.CONVERT else original(put(prepared))

        patch.setattr("vgf_conformance.lowering.quantise.convert_pt2e", convert)
        return named

    return plant


def of_folding(change: Callable[[torch.Tensor, torch.Tensor], Any], layer: int) -> StagePlant:
    """Folding a batch norm changes weight and bias of the convolution of that number otherwise."""

    def plant(patch: pytest.MonkeyPatch) -> Named:
        named, original = Named("prepare"), quantize_pt2e._fuse_conv_bn_

        def fold(module: GraphModule) -> None:
            original(module)
            convolutions = [node for node in module.graph.nodes if _is(node, "aten.conv2d")]
            chosen = convolutions[layer]
            weight, bias = (attrgetter(str(node.target))(module).detach() for node in chosen.args[1:3])
            change(weight, bias)
            named.value = chosen.name

        patch.setattr(quantize_pt2e, "_fuse_conv_bn_", fold)
        return named

    return plant


def _is(node: Node, name: str) -> bool:
    return node.op == "call_function" and operator_name(node.target).startswith(name)


def _between(node: Node) -> bool:
    return node.op == "call_module" or _is(node, "quantized_decomposed")


def _value(fault: str, node: Node) -> str:
    """The value that is wrong where ``fault`` is planted at ``node``."""
    if fault == "bias lost":
        return f"argument 2 of {node.name}"
    if fault == "ReLU lost":
        return node.name
    source = node.all_input_nodes[0]
    while _between(source):
        source = source.all_input_nodes[0]
    if source.op != "get_attr":
        return source.name
    reader, read = next(iter(node.users)), node
    while _between(reader):
        reader, read = next(iter(reader.users)), reader
    return f"argument {reader.args.index(read)} of {reader.name}"


PARAMETERS: dict[str, StagePlant] = {
    f"{name} {place}": of_stage("parameters", name, place)
    for name, place in (
        ("scale off by 2 %", 17),
        ("scale off by 2x", 40),
        ("zero point off by one", 9),
        ("observers swapped", 12),
        ("axis exchanged", 5),
        ("calibration data ignored", 20),
    )
}

FOLDING: dict[str, StagePlant] = {
    "folded twice": of_folding(lambda weight, bias: (weight.mul_(1.3), bias.mul_(1.3)), 7),
    "one channel left out": of_folding(lambda weight, bias: weight[2].mul_(0.8), 1),
    "shift lost": of_folding(lambda weight, bias: bias.zero_(), 4),
    "mean of the wrong sign": of_folding(lambda weight, bias: bias.neg_(), 12),
    "variance forgotten": of_folding(lambda weight, bias: weight.mul_(0.9), 10),
    "channels turned": of_folding(lambda weight, bias: weight.copy_(weight.flip(0)), 3),
}

CONVERSION: dict[str, StagePlant] = {
    f"{name} {place}": of_stage("convert", name, place)
    for name, place in (
        ("bias lost", 8),
        ("ReLU lost", 2),
        ("requantisation dropped", 13),
        ("requantisation doubled", 21),
        ("output one step lower", 0),
        ("layer left unquantised", 19),
    )
}


@dataclass(frozen=True)
class LoweringFault:
    """Changes a constant operand of a TOSA operator, that of its kind with this number."""

    operator: str
    number: int
    operand: int
    change: Callable[[Any], Any]


LOWERING: dict[str, LoweringFault] = {
    "bias lost": LoweringFault("CONV2D", 2, BIAS, np.zeros_like),
    "weights halved": LoweringFault("CONV2D", 5, WEIGHT, lambda held: held // 2),
    "weights turned": LoweringFault("CONV2D", 7, WEIGHT, lambda held: held[::-1]),
    "bias turned": LoweringFault("DEPTHWISE_CONV2D", 1, BIAS, lambda held: held[::-1]),
    "table turned": LoweringFault("TABLE", 2, 1, lambda held: held[::-1]),
    "last weights turned": LoweringFault("CONV2D", -1, WEIGHT, lambda held: held[::-1]),
}

#: The TOSA operator that a device gets wrong.
DEVICE: dict[str, tuple[str, int]] = {
    "convolution": ("CONV2D", 4),
    "depthwise convolution": ("DEPTHWISE_CONV2D", 1),
    "sum": ("ADD", 5),
    "table": ("TABLE", 1),
    "last convolution": ("CONV2D", -1),
    "clamp": ("CLAMP", 0),
}


@dataclass(frozen=True)
class Outcome:
    """What was named and what should have been."""

    found: tuple[str, ...]
    right: tuple[str, ...]


def try_stage(plant: StagePlant, seed: int = 0) -> Outcome:
    """The step and the value that judging the quantise stage names."""
    one = network(seed)
    request = request_of(one, INT, "a8w8-pc")
    with pytest.MonkeyPatch.context() as patch:
        named = plant(patch)
        made = quantised_for(request, torch.export.export(one.module, one.example))
        program, _ = read_program(made.program)
        quantised = Quantised(program, tensors(program.walk(leaves(one.inputs))))
        eager = repeated_eager(one.module, one.inputs)
        fault = judge_quantise(one, request, made.steps, eager, Undefined(), quantised).fault
    found = () if fault is None else (fault.step, fault.tensor)
    return Outcome(found, (named.step, named.value))


class Deep:
    """The network, lowered once, with faults behind the quantise stage."""

    def __init__(self, cache: Cache, folder: Path, seed: int = 0) -> None:
        self._cache, self._folder, self._seed = cache, folder, seed
        located = request_of(network(seed), INT, "a8w8-pc", located=True)
        self._graph = read_graph(lower(located, cache).delegates[0].tosa)

    def try_lowering(self, fault: LoweringFault) -> Outcome:
        """The stage and the TOSA operator that are named for a fault of its graph."""
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, constant(fault.operator, fault.number, fault.operand, fault.change))
            record = self._judged({"reference": reference_target()}, "reference")
        return self._outcome(record, Stage.LOWER, fault.operator, fault.number)

    def try_device(self, operator: str, number: int) -> Outcome:
        """The same for a device that swaps the columns of what an operator gives."""
        (tensor,) = self._graph.operators[self._position(operator, number)].outputs
        device = InProcess("device", lambda delegate: planted(delegate.tosa, tensor))
        record = self._judged({"reference": reference_target(), "device": device}, "device")
        return self._outcome(record, Stage.RUN, operator, number)

    def _judged(self, targets: dict[str, Any], target: str) -> Record:
        evaluator, one = Evaluator(targets, self._cache), network(self._seed)
        record = evaluator.evaluate(one, INT, "a8w8-pc", target)
        evaluator.attribute(record, one, INT, "a8w8-pc", self._folder)
        evaluator.close()
        return record

    def _position(self, operator: str, number: int) -> int:
        return [at for at, item in enumerate(self._graph.operators) if item.name == operator][number]

    def _outcome(self, record: Record, stage: Stage, operator: str, number: int) -> Outcome:
        wrong = record.first_wrong
        found = () if wrong is None else (str(record.stage), f"{wrong.operator} {wrong.position}")
        return Outcome(found, (str(stage), f"{operator} {self._position(operator, number)}"))


def outcomes(seed: int) -> Iterator[tuple[str, Outcome]]:
    """Of all thirty, one by one."""
    for kind, plants in {"parameters": PARAMETERS, "folding": FOLDING, "conversion": CONVERSION}.items():
        for name, plant_one in plants.items():
            yield f"{kind}: {name}", try_stage(plant_one, seed)
    with tempfile.TemporaryDirectory() as folder:
        deep = Deep(Cache(Path(folder)), Path(folder), seed)
        for name, fault in LOWERING.items():
            yield f"lowering: {name}", deep.try_lowering(fault)
        for name, place in DEVICE.items():
            yield f"device: {name}", deep.try_device(*place)


if __name__ == "__main__":
    total = right = 0
    for title, outcome in outcomes(int(sys.argv[1])):
        total, right = total + 1, right + (outcome.found == outcome.right)
        verdict = "right" if outcome.found == outcome.right else f"found {outcome.found}, should be"
        print(f"{title}: {verdict} {outcome.right}", flush=True)
    print(f"{right} of {total} named right")
