"""Programs that passes of the backend rewrite, where no operator's own sample reaches them.

Covered: a requantisation and its inverse that meet between two operators and are both dropped; a
scale by channel that is folded into the convolution before it; a resize to a sixteenth, which
becomes an average; numbers beside a mask; one buffer under two names.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, QUANTISED, Budget, model, sample
from vgf_conformance.cases.inputs import normal, ramp

BUDGET = Budget(20.0, "int8 in two or three operators: what keeps less has lost a scale")


class Applies(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)


# Both additions compute at the scale of the wider operand. So the requantisation of the first sum and the
# one that brings it back for the second undo each other, and the backend drops the pair.
inverse_rescales = model(
    lambda: Applies(lambda wide, narrow: (wide + narrow) + wide),
    [sample("halved", ramp(3, 7, low=-4.0, high=4.0), ramp(3, 7, low=1.9, high=-1.9))],
    configurations=QUANTISED,
    budget=BUDGET,
)


class ScaledByChannel(nn.Module):
    """A convolution whose output is scaled by a number for each channel, as a folded norm leaves it."""

    def __init__(self, *, bias: bool) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3, bias=bias)
        self.register_buffer("scale", torch.rand(1, 4, 1, 1) + 0.5)

    def forward(self, tensor: torch.Tensor) -> Any:
        return self.convolution(tensor) * self.scale


scaled_by_channel = model(
    lambda: ScaledByChannel(bias=True), [sample("biased", normal(1, 3, 6, 6))], budget=BUDGET
)
scaled_by_channel_without_bias = model(
    lambda: ScaledByChannel(bias=False),
    [sample("unbiased", normal(1, 3, 6, 6))],
    budget=BUDGET,
    tier="nightly",
)

# TOSA allows no RESIZE that shrinks so much: the four middle pixels of each sixteen by sixteen are averaged.
shrunk_to_a_sixteenth = model(
    lambda: Applies(lambda picture: F.interpolate(picture, size=(2, 3), mode="bilinear")),
    [sample("picture", normal(1, 2, 32, 48))],
    budget=BUDGET,
)

numbers_beside_a_mask = model(
    lambda: Applies(lambda tensor: torch.where(tensor > 0.3, tensor, tensor > -0.3)),
    [sample("around_zero", ramp(3, 7, low=-1.0, high=1.0))],
    configurations=FLOATING_ONLY,
)


class UnderTwoNames(nn.Module):
    """Reads one buffer under two names, for two operators of different ranges."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.randn(3, 4))
        self.register_buffer("factor", self.offset)

    def forward(self, tensor: torch.Tensor) -> Any:
        return (tensor + self.offset) * self.factor - self.offset


one_buffer_under_two_names = model(UnderTwoNames, [sample("normal", normal(3, 4))], budget=BUDGET)
