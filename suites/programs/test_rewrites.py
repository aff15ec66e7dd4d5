"""Programs that passes of the backend rewrite, where no operator's own sample reaches them.

Covered: a requantisation and its inverse that meet between two operators and are both dropped; a
scale by channel that is folded into the convolution before it; a resize to a sixteenth, which
becomes an average; numbers beside a mask; one buffer under two names; small integers that are
compared; a tensor that is given back twice; what is decomposed before it is quantised (recurrent
layers, attention, einsum, norms, similarities, triangles, scatters); pictures without a batch.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import (
    FLOATING,
    FLOATING_ONLY,
    QUANTISED,
    Budget,
    Case,
    Declared,
    model,
    sample,
)
from vgf_conformance.cases.inputs import integers, normal, ramp, uniform, values

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

small_integers_compared = model(
    lambda: Applies(lambda one, other: (one > other, one <= other, one == other)),
    [
        sample(
            "signs",
            integers(3, 7, low=-5, high=5, dtype=torch.int8),
            integers(3, 7, low=-5, high=5, dtype=torch.int8),
        )
    ],
    configurations=FLOATING_ONLY,
)

given_back_twice = model(
    lambda: Applies(lambda tensor: (lambda made: (made, made.clone()))(torch.abs(tensor))),
    [sample("normal", normal(3, 4))],
    budget=BUDGET,
)


def quantised_whole(
    function: Callable[..., Any], *declared: Declared, configurations: Any = FLOATING
) -> Case:
    """What the backend decomposes before quantisation: each step has a scale of its own."""
    return model(lambda: Applies(function), declared, configurations=configurations, budget=BUDGET)


einsum = quantised_whole(
    lambda one, other: torch.einsum("bij,bjk->bik", one, other),
    sample("batches", normal(2, 3, 4), normal(2, 4, 5)),
)
vector_norm = quantised_whole(
    lambda tensor: torch.linalg.vector_norm(tensor, dim=-1), sample("rows", uniform(3, 7, low=0.5, high=2.0))
)
cosine_similarity = quantised_whole(
    lambda one, other: F.cosine_similarity(one, other, dim=1),
    sample("channels", uniform(2, 5, 3, low=0.5, high=2.0), normal(2, 5, 3)),
)
attention = quantised_whole(
    F.scaled_dot_product_attention,
    sample("two_heads", normal(1, 2, 5, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)),
)
lower_triangle = quantised_whole(torch.tril, sample("square", normal(5, 5)))
copied_rows = quantised_whole(
    lambda tensor, new: torch.index_copy(tensor, 0, torch.tensor([2, 0]), new),
    sample("out_of_order", normal(4, 5), normal(2, 5)),
    # In FP indices stay int64, and the operator falls back to the CPU.
    configurations=QUANTISED,
)
written_where_positive = quantised_whole(
    lambda tensor: torch.index_put(tensor, (tensor > 0,), torch.tensor(0.5)), sample("signs", normal(3, 4))
)
written_columns = quantised_whole(
    lambda tensor, new: torch.ops.aten.index_put(tensor, [None, torch.tensor([0, 2])], new),
    sample("two", normal(3, 4), normal(3, 2)),
    configurations=QUANTISED,
)
picture_without_a_batch = quantised_whole(
    lambda picture: F.max_pool2d(picture, 2), sample("odd", normal(3, 7, 8))
)
largest_of_each_third = quantised_whole(
    lambda picture: F.adaptive_max_pool2d(picture, (3, 3)),
    sample("thirds", normal(1, 2, 9, 9)),
    configurations=FLOATING_ONLY,
)
whole_quotients = quantised_whole(
    lambda tensor: torch.floor_divide(tensor, 2.0),
    # Whole and a half: no quotient lies where one step of int8 tips it.
    sample("between_jumps", values([*(2.0 * number + 1.0 for number in range(-8, 8))], 4, 4)),
)


class LastOutput(nn.Module):
    """The outputs of a recurrent layer, without its state."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, steps: torch.Tensor) -> Any:
        return self.layer(steps)[0]


quantised_gru = model(
    lambda: LastOutput(nn.GRU(4, 5, batch_first=True)),
    [sample("three_steps", normal(2, 3, 4))],
    budget=BUDGET,
)
quantised_rnn = model(
    lambda: LastOutput(nn.RNN(4, 5, batch_first=True)),
    [sample("three_steps", normal(2, 3, 4))],
    budget=BUDGET,
)
