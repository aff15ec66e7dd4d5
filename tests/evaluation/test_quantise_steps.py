"""Steps parameters and convert of the quantise stage: planted faults are caught at their step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import PerChannelMinMaxObserver
from torchao.quantization.pt2e.observer import UniformQuantizationObserverBase
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from tests.evaluation.shared import Thrice, Tied
from tests.subjects import INT, randn, subject
from vgf_conformance.evaluation.eager import leaves, repeated_eager, tensors
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.quantisation.stage import Judgement, Quantised, judge_quantise
from vgf_conformance.evaluation.subject import request_of
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.lowering.lower import quantised_for
from vgf_conformance.lowering.program import operator_name, read_program
from vgf_conformance.lowering.scheme import ranges
from vgf_conformance.vocabulary import Stage, Verdict

#: Where the stage calls torchao.
QUANTISING = "vgf_conformance.lowering.quantise"


class Net(nn.Module):
    """A convolution with a ReLU, one without, and a sum: square weights, so that axes can be exchanged."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(torch.relu(self.one(x))) + x


X = randn(1, 3, 6, 6)


def judged(module: nn.Module | Callable[..., Any], *inputs: torch.Tensor) -> Judgement:
    """The quantise stage of ``module``, quantised for INT on its inputs."""
    one = subject(module, *inputs)
    request = request_of(one, INT, "a8w8-pc")
    exported = torch.export.export(one.module, one.example)
    made = quantised_for(request, exported)
    program, _ = read_program(made.program)
    outputs = tensors(program.walk(leaves(one.inputs)))
    eager = repeated_eager(one.module, one.inputs)
    return judge_quantise(one, request, made.steps, eager, Undefined(), Quantised(program, outputs))


class Window(nn.Module):
    """Adds up the rows that it was given, in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(2, 3))

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        self.rows.copy_(torch.cat([self.rows[1:], row]))
        return row + self.rows.sum(0, keepdim=True)


SOUND: dict[str, tuple[Callable[[], Any], tuple[torch.Tensor, ...]]] = {
    "convolutions": (Net, (X,)),
    "tied weights": (Tied, (randn(2, 4),)),
    "a layer called three times": (Thrice, (randn(2, 4),)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(3, 3, 3), (X,)),
    "state in a buffer": (Window, (randn(1, 3),)),
    "softmax": (lambda: lambda x: torch.softmax(x, -1), (X,)),
    "values that are shared": (lambda: lambda x: torch.cat([x, torch.relu(x) * 3.0]), (X,)),
    "a constant": (lambda: lambda x: x + torch.full((6,), 0.3), (X,)),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_quantisation_passes(name: str) -> None:
    module, inputs = SOUND[name]
    found = judged(module(), *inputs)
    assert found.fault is None
    assert [item.pair for item in found.comparisons] == ["prepared/eager", "quantised/prepared"]
    assert all(item.passed for item in found.comparisons)


def nodes(module: GraphModule, name: str) -> list[Node]:
    """The nodes that call ``name``."""
    return [
        node
        for node in module.graph.nodes
        if node.op == "call_function" and operator_name(node.target).startswith(name)
    ]


QUANTISE, DEQUANTISE = (
    "quantized_decomposed.quantize_per_tensor",
    "quantized_decomposed.dequantize_per_tensor",
)


def changed_argument(place: int, change: Callable[[Any], Any]) -> Callable[[GraphModule], None]:
    """The second value that is quantised has another scale (1) or zero point (2)."""

    def plant(converted: GraphModule) -> None:
        quantisation = nodes(converted, QUANTISE)[1]
        for node in (quantisation, *quantisation.users):
            node.update_arg(place, change(node.args[place]))

    return plant


def a_lost_bias(converted: GraphModule) -> None:
    frozen = nodes(converted, "aten.conv2d")[0].args[2].args[0]
    getattr(converted, frozen.target).zero_()


def a_lost_relu(converted: GraphModule) -> None:
    (relu,) = nodes(converted, "aten.relu")
    relu.replace_all_uses_with(relu.args[0])
    converted.graph.erase_node(relu)


def a_dropped_requantisation(converted: GraphModule) -> None:
    (total,) = nodes(converted, "aten.add")
    (quantisation,) = total.users
    (dequantisation,) = quantisation.users
    dequantisation.replace_all_uses_with(total)


def a_doubled_requantisation(converted: GraphModule) -> None:
    read = nodes(converted, "aten.conv2d")[1].args[0]
    graph = converted.graph
    with graph.inserting_after(read):
        once = graph.call_function(read.args[0].target, (read, 0.5, *read.args[2:]))
    with graph.inserting_after(once):
        twice = graph.call_function(read.target, (once, 0.5, *read.args[2:]))
    read.replace_all_uses_with(twice, delete_user_cb=lambda user: user is not once)


def a_layer_left_alone(converted: GraphModule) -> None:
    convolution = nodes(converted, "aten.conv2d")[1]
    convolution.update_arg(0, convolution.args[0].args[0].args[0])


CONVERTED = {
    "a scale off by 2 %": (changed_argument(1, lambda scale: scale * 1.02), "parameters"),
    "a scale off by 2x": (changed_argument(1, lambda scale: scale * 2), "parameters"),
    "a zero point off by one": (changed_argument(2, lambda zero: zero + 1), "parameters"),
    "a lost bias": (a_lost_bias, "convert"),
    "a lost ReLU": (a_lost_relu, "convert"),
    "a dropped requantisation": (a_dropped_requantisation, "convert"),
    "a doubled requantisation": (a_doubled_requantisation, "convert"),
    "a layer left alone": (a_layer_left_alone, "convert"),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_a_fault_of_conversion_is_caught_at_its_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, step = CONVERTED[name]

    def faulty(prepared: GraphModule) -> GraphModule:
        converted: GraphModule = convert_pt2e(prepared)
        plant(converted)
        converted.recompile()
        return converted

    monkeypatch.setattr(f"{QUANTISING}.convert_pt2e", faulty)
    found = judged(Net(), X)
    assert found.fault is not None
    assert found.fault.step == step
    assert "test_quantise_steps.py:" in found.fault.origin


def observers(prepared: GraphModule) -> list[Any]:
    names = [node.target for node in prepared.graph.nodes if node.op == "call_module"]
    return [prepared.get_submodule(str(name)) for name in names]


def swapped(prepared: GraphModule) -> None:
    one, two = [node for node in prepared.graph.nodes if node.op == "call_module"][-2:]
    first, second = prepared.get_submodule(one.target), prepared.get_submodule(two.target)
    setattr(prepared, one.target, second)
    setattr(prepared, two.target, first)


def test_swapped_observers_are_wrong_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(prepared: GraphModule) -> GraphModule:
        swapped(prepared)
        converted: GraphModule = convert_pt2e(prepared)
        return converted

    monkeypatch.setattr(f"{QUANTISING}.convert_pt2e", faulty)
    found = judged(Net(), X)
    assert found.fault is not None
    assert found.fault.step == "parameters"
    assert "should be" in found.fault.message


def rewired(prepared: GraphModule) -> None:
    """The observers stay, and the nodes call the other one."""
    one, two = [node for node in prepared.graph.nodes if node.op == "call_module"][-2:]
    one.target, two.target = two.target, one.target
    prepared.recompile()


@pytest.mark.parametrize("swap", [swapped, rewired])
def test_swapped_observers_of_one_range_have_other_histograms(
    swap: Callable[[GraphModule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A square lies between 0 and 1 as its root does, but nearer to 0."""

    def calibrate(prepared: Any, exported: Any, index: int, inputs: Any) -> None:
        prepared(*inputs)
        swap(prepared)

    monkeypatch.setattr(f"{QUANTISING}._calibrate", calibrate)
    found = judged(lambda x: x * torch.abs(x), torch.linspace(0.0, 1.0, 400).reshape(20, 20))
    assert found.fault is not None
    assert found.fault.message == "its observer's histogram is not that of the calibration data"


@pytest.mark.parametrize("factor", [1.02, 2.0])
def test_an_observer_that_computes_another_scale(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    original = UniformQuantizationObserverBase._calculate_qparams

    def faulty(self: Any, low: torch.Tensor, high: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale, zero = original(self, low, high)
        return scale * factor, zero

    monkeypatch.setattr(UniformQuantizationObserverBase, "_calculate_qparams", faulty)
    found = judged(Net(), X)
    assert found.fault is not None
    assert (found.fault.step, found.fault.message[:5]) == ("parameters", "scale")


def test_an_observer_that_computes_another_zero_point(monkeypatch: pytest.MonkeyPatch) -> None:
    original = UniformQuantizationObserverBase._calculate_qparams

    def faulty(self: Any, low: torch.Tensor, high: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale, zero = original(self, low, high)
        return scale, zero + 1

    monkeypatch.setattr(UniformQuantizationObserverBase, "_calculate_qparams", faulty)
    found = judged(Net(), X)
    assert found.fault is not None
    assert found.fault.message.startswith("zero point")


def test_weights_along_another_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*arguments: Any) -> GraphModule:
        prepared: GraphModule = prepare_pt2e(*arguments)
        for observer in observers(prepared):
            if isinstance(observer, PerChannelMinMaxObserver):
                observer.ch_axis = 1
        return prepared

    monkeypatch.setattr(f"{QUANTISING}.prepare_pt2e", faulty)
    found = judged(Net(), X)
    assert found.fault is not None
    assert (found.fault.step, found.fault.message) == ("parameters", "scales along axis 1, should be 0")


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (lambda prepared, x: None, "its observer saw none of the calibration data"),
        (lambda prepared, x: prepared(x / 2), "the calibration data has"),
    ],
    ids=["none", "other data"],
)
def test_calibration_data_that_is_ignored(
    monkeypatch: pytest.MonkeyPatch, seen: Callable[..., Any], says: str
) -> None:
    def calibrate(prepared: Any, exported: Any, index: int, inputs: Any) -> None:
        seen(prepared, *inputs)

    monkeypatch.setattr(f"{QUANTISING}._calibrate", calibrate)
    found = judged(Net(), X)
    assert found.fault is not None
    assert found.fault.step == "parameters"
    assert says in found.fault.message


def test_a_record_names_the_step_and_the_value(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(prepared: GraphModule) -> GraphModule:
        converted: GraphModule = convert_pt2e(prepared)
        changed_argument(1, lambda scale: scale * 2)(converted)
        converted.recompile()
        return converted

    monkeypatch.setattr(f"{QUANTISING}.convert_pt2e", faulty)
    record = evaluator.evaluate(subject(lambda x: torch.relu(x * 7.0), X), INT, "a8w8-pc", "reference")
    assert (record.verdict, record.stage) == (Verdict.FAIL, Stage.QUANTISE)
    assert record.message.startswith("parameters: ")
    assert record.quantise_fault is not None
    assert record.quantise_fault.tensor in record.message


def test_a_bias_beyond_32_bits_turns_its_sign() -> None:
    """A fault of torchao: the largest int32 is no fp32 number, and what it is rounded to wraps around."""
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([2000.0, -2000.0]))
    found = judged(layer, 1e-3 * randn(2, 2))
    assert found.fault is not None
    assert found.fault.step == "convert"
    assert "-2147483648, should be 2.14748e+09" in found.fault.message


def test_a_histogram_gives_up_an_outlier_and_keeps_what_is_even() -> None:
    even = np.ones(2048)
    assert next(ranges(even, -1.0, 1.0, 256)) == (-1.0, 1.0 - 2.0 / 2048)
    outlier = np.zeros(2048)
    outlier[:256], outlier[-1] = 1000.0, 1.0
    *_, (low, high) = ranges(outlier, 0.0, 2048.0, 256)
    assert low == 0.0
    assert 250 < high < 300


def test_an_end_of_a_rescaled_histogram_may_lie_a_value_further() -> None:
    """Three steps let go of 9.953 of 331,776 values, in fp32 maybe of ten: the next value is 9 bins off."""
    tail = np.zeros(2048)
    tail[:1000] = (331776.018 - 12.0) / 1000
    tail[1500:1608:9] = 1.0
    ends = {round(high) for _, high in ranges(tail, 0.0, 2048.0, 256)}
    assert {1518, 1509} <= ends
