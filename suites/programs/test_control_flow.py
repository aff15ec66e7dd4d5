"""Programs with branches and loops: what is inside them is delegated or runs on the CPU, as outside.

Covered: both branches of torch.cond, with delegates before, inside and behind it and with an operator of the
CPU inside; branches in branches; a predicate that is an input, and one that a delegate computes; weights in a
branch; a loop until a count, scan and map; branches inside a delegate (the extension ``cf``).
"""

import torch
from torch import nn
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, Budget, model, sample
from vgf_conformance.cases.inputs import normal, uniform, values

BUDGET = Budget(15.0, "int8 layers in a row: what keeps less has lost a scale")
BRANCHING_INSIDE = (("FP+cf", "none"),)
UP, DOWN = values([True], dtype=torch.bool), values([False], dtype=torch.bool)


class Gated(nn.Module):
    """A layer before, both branches and what is behind are delegated; a sort stays on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, tensor: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        def true(made: torch.Tensor) -> torch.Tensor:
            return torch.sort(torch.tanh(made), 1)[0] + 1.0

        return torch.relu(torch.cond(up, true, lambda made: torch.sigmoid(made), (self.layer(tensor),)))


class GatedTwice(nn.Module):
    """A branch inside a branch."""

    def forward(self, tensor: torch.Tensor, up: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        def true(tensor: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
            return torch.cond(far, lambda x: torch.exp(x), lambda x: torch.tanh(x), (tensor,))

        def false(tensor: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(tensor)

        return torch.cond(up, true, false, (tensor, far)) * 2.0


class Simple(nn.Module):
    """A predicate from outside, and one operator in each branch."""

    def forward(self, tensor: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return torch.cond(up, lambda x: torch.tanh(x), lambda x: torch.sigmoid(x), (tensor,))


class Decided(nn.Module):
    """The predicate is computed, as a number of no axes."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.cond(tensor.sum() > 0.0, lambda x: torch.tanh(x), lambda x: torch.sigmoid(x), (tensor,))


class DecidedInAxes(nn.Module):
    """The predicate is computed, as a tensor of one element."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        positive = tensor.sum((0, 1), keepdim=True) > 0.0
        return torch.cond(positive, lambda x: torch.tanh(x), lambda x: torch.sigmoid(x), (tensor,))


class Expert(nn.Module):
    """Each branch has weights of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, tensor: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return torch.cond(up, lambda x: self.one(x), lambda x: self.other(x), (torch.relu(tensor),))


class Counted(nn.Module):
    """A loop until a count."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        start = torch.zeros((), dtype=torch.int32)
        return while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2.0), (start, tensor))[1]


class Accumulated(nn.Module):
    """A scan over the rows, on the CPU, between two delegates."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        rows = torch.tanh(tensor)
        last, seen = scan(lambda carry, row: (carry + row, (carry * row).clone()), rows[0], rows)
        return torch.sigmoid(seen) + last


class Mapped(nn.Module):
    """The same for every row."""

    def forward(self, tensor: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(torch_map(lambda row, factor: row * factor, torch.tanh(tensor), factor))


gated = model(
    Gated,
    [sample("up", normal(3, 4), UP), sample("down", normal(3, 4), DOWN)],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
gated_twice = model(
    GatedTwice,
    [
        sample("up_far", normal(3, 4), UP, UP),
        sample("up_near", normal(3, 4), UP, DOWN),
        sample("down", normal(3, 4), DOWN, UP),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
decided = model(
    Decided,
    [sample("up", uniform(3, 4, low=0.1)), sample("down", uniform(3, 4, low=-1.0, high=-0.1))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
decided_in_axes = model(
    DecidedInAxes,
    [sample("up", uniform(3, 4, low=0.1)), sample("down", uniform(3, 4, low=-1.0, high=-0.1))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
expert = model(
    Expert,
    [sample("one", normal(3, 4), UP), sample("other", normal(3, 4), DOWN)],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
branch_inside = model(
    Simple,
    [sample("up", normal(3, 4), UP), sample("down", normal(3, 4), DOWN)],
    configurations=BRANCHING_INSIDE,
    tier="nightly",
)
counted = model(Counted, [sample("three", normal(3, 4))], configurations=FLOATING_ONLY, tier="nightly")
accumulated = model(Accumulated, [sample("rows", normal(3, 4))], configurations=FLOATING_ONLY, tier="nightly")
mapped = model(
    Mapped, [sample("rows", normal(3, 4), normal(4))], configurations=FLOATING_ONLY, tier="nightly"
)
