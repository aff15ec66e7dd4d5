"""Operators in a row under quantisation: what one hands to the next, and what they share.

Covered: concatenation of a tensor with its own rectified or clamped form, in both orders and for
every producer that a rectifier is fused into; slices and scatters of shared scales; biases that are
large beside the activations; values outside the calibrated range; convolutions that are not square;
residuals; one layer used twice; quantisation of one layer alone; memory that is live for long.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import QUANTISED, SEPARATE, Budget, Case, Inputs, model, sample
from vgf_conformance.cases.inputs import Draw, integers, normal
from vgf_conformance.cases.weights import with_drawn_norms

INT = (("INT", "a8w8-pc"),)

BUDGET = Budget(15.0, "int8 layers in a row: what keeps less has lost a scale")


class Beside(nn.Module):
    """Concatenates its input with what ``branch`` makes of it, in this order or the other.

    All operands of a concatenation share one scale. Where the branch ends in a rectifier, that must
    stay: values below zero may come from the other operand alone.
    """

    def __init__(self, branch: nn.Module, *, first: bool = False) -> None:
        super().__init__()
        self.branch = branch
        self.first = first

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        made = self.branch(tensor)
        return torch.cat([made, tensor] if self.first else [tensor, made], 1)


def beside(
    build: Callable[[], nn.Module], *shape: int, first: bool = False, configurations: Any = INT
) -> Case:
    """The concatenation of normal data of ``shape`` with a branch."""
    return model(
        lambda: Beside(build(), first=first),
        [sample("both_signs", normal(*shape))],
        configurations=configurations,
        tier="nightly",
        budget=BUDGET,
    )


class CodesBeside(nn.Module):
    """Numbers beside integers that become numbers: these have a step of 1, and what they join another one."""

    def forward(self, tensor: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor * 1.5, codes.to(torch.float32)], 1)


# What lies between two scales here is a requantisation alone, without an operator to fold it into.
codes_beside = model(
    CodesBeside,
    [sample("int8", normal(2, 5), integers(2, 103, low=-30, high=120, dtype=torch.int8))],
    configurations=QUANTISED,
    budget=BUDGET,
)


def convolution() -> nn.Module:
    """From two channels to two."""
    return nn.Conv2d(2, 2, 1, bias=False)


cat_conv_relu = beside(lambda: nn.Sequential(convolution(), nn.ReLU()), 1, 2, 3, 3, configurations=QUANTISED)
cat_conv_relu_first = beside(lambda: nn.Sequential(convolution(), nn.ReLU()), 1, 2, 3, 3, first=True)
cat_conv_relu6 = beside(lambda: nn.Sequential(convolution(), nn.ReLU6()), 1, 2, 3, 3)
cat_conv_hardtanh = beside(lambda: nn.Sequential(convolution(), nn.Hardtanh(0.0, 0.5)), 1, 2, 3, 3)
cat_conv_batch_norm_relu = beside(
    lambda: with_drawn_norms(nn.Sequential(convolution(), nn.BatchNorm2d(2), nn.ReLU())), 1, 2, 3, 3
)
cat_depthwise_relu = beside(
    lambda: nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, groups=2), nn.ReLU()), 1, 2, 3, 3
)
cat_conv1d_relu = beside(lambda: nn.Sequential(nn.Conv1d(2, 2, 1), nn.ReLU()), 1, 2, 5)
cat_linear_relu = beside(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()), 2, 4, configurations=QUANTISED)
cat_linear_relu6 = beside(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU6()), 2, 4)
cat_linear_hardtanh = beside(lambda: nn.Sequential(nn.Linear(4, 4), nn.Hardtanh(-0.1, 0.1)), 2, 4)
# No layer before it: the rectifier is an operator of its own.
cat_relu = beside(nn.ReLU, 1, 2, 3, 3)
cat_relu6 = beside(nn.ReLU6, 1, 2, 3, 3)
cat_hardtanh = beside(lambda: nn.Hardtanh(-0.5, 0.5), 1, 2, 3, 3)
cat_sigmoid = beside(nn.Sigmoid, 1, 2, 3, 3)


class AddedRelu(nn.Module):
    """A sum, rectified, beside one of its operands."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.cat([left, torch.relu(left + right)], 1)


cat_add_relu = model(
    AddedRelu,
    [sample("both_signs", normal(2, 4), normal(2, 4))],
    configurations=INT,
    tier="nightly",
    budget=BUDGET,
)


class StackedRelu(nn.Module):
    """As a concatenation, along a new dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.stack([tensor, torch.relu(self.linear(tensor))], 1)


stack_linear_relu = model(
    StackedRelu, [sample("both_signs", normal(2, 4))], configurations=INT, tier="nightly", budget=BUDGET
)


class ScatteredRelu(nn.Module):
    """All of the input is written over with a rectified convolution: nothing below zero is left."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(2, 2, 1, bias=False)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.slice_scatter(image, torch.relu(self.convolution(image)), 1, 0, 2)


scatter_conv_relu = model(
    ScatteredRelu,
    [sample("both_signs", normal(1, 2, 3, 3))],
    configurations=INT,
    tier="nightly",
    budget=BUDGET,
)


class ChosenRelu(nn.Module):
    """A choice between a tensor and a rectified layer of it: both sides share a scale."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.where(tensor > 0.5, tensor, torch.relu(self.linear(tensor)))


where_linear_relu = model(
    ChosenRelu, [sample("both_signs", normal(3, 4))], configurations=INT, tier="nightly", budget=BUDGET
)


class SumOfMaximum(nn.Module):
    """A maximum whose operands share a scale, one of them a rectified layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.maximum(tensor, torch.relu(self.linear(tensor)))


maximum_linear_relu = model(
    SumOfMaximum, [sample("both_signs", normal(3, 4))], configurations=INT, tier="nightly", budget=BUDGET
)


class SliceOfConcatenation(nn.Module):
    """A slice across the seams of three operands, of which the widest range rules."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor, tensor * 2.0, tensor * 3.0], 1)[:, 2:7]


slice_of_concatenation = model(
    SliceOfConcatenation, [sample("rank2", normal(2, 3))], configurations=SEPARATE, tier="nightly"
)


class Biased(nn.Module):
    """A convolution with a bias that is large beside its activations."""

    def __init__(self, bias: list[float], factor: float = 1.0) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(2, 2, 1)
        self.convolution.bias = nn.Parameter(torch.tensor(bias))
        self.factor = factor

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.convolution(image) * self.factor


def tiny_image() -> Draw:
    """Values of about a thousandth."""
    return normal(1, 2, 3, 3, scale=1e-3)


# In units of activation times weight: 50 is about 1e6, 2000 about 2^32, more than an int32 holds.
bias_50 = model(
    lambda: Biased([50.0, -80.0]), [sample("thousandths", tiny_image())], configurations=INT, tier="nightly"
)
bias_2000 = model(
    lambda: Biased([1000.0, -2000.0]),
    [sample("thousandths", tiny_image())],
    configurations=INT,
    tier="nightly",
    budget=BUDGET,
)


class BiasedLinear(nn.Module):
    """A linear layer with a bias that is large beside its activations."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.linear.bias = nn.Parameter(torch.tensor([1000.0, -2000.0]))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return self.linear(tensor)


linear_bias_2000 = model(
    BiasedLinear,
    [sample("thousandths", normal(2, 3, scale=1e-3))],
    configurations=INT,
    tier="nightly",
    budget=BUDGET,
)


def unit_range() -> list[Inputs]:
    """Calibration data with a standard deviation of one."""
    return [(torch.randn(1, 2, 4, 4, generator=torch.Generator().manual_seed(3)),)]


# Values beyond the calibrated range clip, at both ends, before and after the layer.
out_of_range = model(
    lambda: nn.Sequential(nn.Conv2d(2, 2, 1), nn.ReLU()),
    [sample("hundredfold", normal(1, 2, 4, 4, scale=100.0)), sample("inside", normal(1, 2, 4, 4, scale=0.3))],
    configurations=QUANTISED,
    calibration=unit_range,
    tier="nightly",
)

# Padding that is unlike on both sides leaves a padding of its own in front of the convolution.
same_even_kernel = model(
    lambda: nn.Conv2d(3, 5, (2, 3), padding="same"),
    [sample("odd_image", normal(1, 3, 7, 8))],
    configurations=(("FP", "none"), *QUANTISED),
    tier="nightly",
    budget=BUDGET,
)
same_even_kernel_1d = model(
    lambda: nn.Conv1d(3, 5, 4, padding="same"),
    [sample("odd_row", normal(1, 3, 9))],
    # The quantizer marks a convolution with padding by name in two and three dimensions, not in one.
    floating=("CONV2D", "PAD"),
    configurations=QUANTISED,
    tier="nightly",
    budget=BUDGET,
)


class Residuals(nn.Module):
    """A layer used twice, results that stay live across it, and two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = torch.relu(self.first(image))
        second = self.second(first)
        third = self.second(first + second)
        return third + first, second * 2.0


residuals = model(
    Residuals,
    [sample("odd_image", normal(1, 3, 9, 9))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)


class PermutedToRank5(nn.Module):
    """A rectified convolution whose channels become a dimension of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(2, 6, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.convolution(image)).permute(0, 2, 3, 1).reshape(1, 4, 5, 2, 3)


permuted_to_rank5 = model(
    PermutedToRank5,
    [sample("image", normal(1, 2, 4, 5)), sample("channels_last", normal(1, 2, 4, 5, channels_last=True))],
    configurations=SEPARATE,
    calibration=None,
    tier="nightly",
    budget=BUDGET,
)

norm_after_relu = model(
    lambda: with_drawn_norms(nn.Sequential(nn.ReLU(), nn.BatchNorm2d(3))),
    [sample("image", normal(1, 3, 4, 5))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
norms_in_a_row = model(
    lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 4), nn.LayerNorm(4)),
    [sample("rank3", normal(2, 3, 6))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)


class ConvolutionThenLinear(nn.Module):
    """A convolution that is quantised and a linear layer that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(2, 4, 3)
        self.linear = nn.Linear(4, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.relu(self.convolution(image)).mean((2, 3)))


def convolutions_alone(quantizer: Any) -> None:
    """Quantise convolutions per channel, and nothing else."""
    from executorch.backends.arm.quantizer import get_symmetric_quantization_config

    quantizer.set_module_type(nn.Conv2d, get_symmetric_quantization_config(is_per_channel=True))


convolution_quantised_alone = model(
    ConvolutionThenLinear,
    [sample("image", normal(1, 2, 4, 4))],
    configurations=QUANTISED,
    configure_quantizer=convolutions_alone,
    # The mean and the linear layer, which has a kernel of one pixel.
    floating=("REDUCE_SUM", "MUL", "CONV2D"),
    tier="nightly",
    budget=BUDGET,
)


class Pooled(nn.Module):
    """Pooling, padding and permutation keep a scale; the rectifier after them must still clamp."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        padded = F.pad(F.max_pool2d(image, 2), (1, 1, 0, 0))
        return torch.relu(padded.permute(0, 2, 3, 1) - 0.25)


pool_pad_permute_relu = model(
    Pooled, [sample("image", normal(1, 2, 6, 6))], configurations=SEPARATE, tier="nightly", budget=BUDGET
)
