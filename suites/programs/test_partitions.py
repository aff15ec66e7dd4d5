"""Programs that the backend takes in part: what crosses between the delegates and the CPU.

Covered: an operator of the CPU after and between delegated ones; views at the boundary;
int64 arithmetic and an int64 index on the CPU before what is delegated; a count that scales.
"""

import torch
from torch import nn

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, Budget, model, sample
from vgf_conformance.cases.inputs import normal, values

BUDGET = Budget(15.0, "int8 layers in a row: what keeps less has lost a scale")


class SortedChannels(nn.Module):
    """A sort, which stays on the CPU, of a permuted and reshaped convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 5, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        made = torch.relu(self.convolution(image)).permute(0, 2, 3, 1).reshape(1, 16, 5)
        return torch.sort(made)[0]


class SortedBetween(nn.Module):
    """A sort between two delegates."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.sort(tensor * 2.0, 1)[0] + 1.0


class SortedBeside(nn.Module):
    """The sort and the delegate that follows both read what the first delegate made."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        doubled = tensor * 2.0
        ordered = torch.sort(doubled, 1)[0]
        return ordered - doubled, doubled


class LongThenInt(nn.Module):
    """An addition in int64, which TOSA has not, then one in int32."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return (tensor + 1).to(torch.int32) + 1


class LongIndex(nn.Module):
    """The index is int64 and stays on the CPU with its gather; what follows does not."""

    def forward(self, tensor: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.gather(tensor * 2.0, 1, index) + 1.0


class CountedAndScaled(nn.Module):
    """The number of positive elements, counted on either side, scales the delegate's result."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        count = (tensor > 0).to(torch.float32).sum(1, keepdim=True)
        return torch.relu(tensor) / count


sorted_channels = model(
    SortedChannels,
    [sample("image", normal(1, 3, 4, 4))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
sorted_between = model(
    SortedBetween,
    [sample("rank2", normal(3, 5))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
sorted_beside = model(
    SortedBeside,
    [sample("rank2", normal(3, 5))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
long_then_int = model(
    LongThenInt,
    [sample("both_signs", values([5, -5, 7], dtype=torch.int64))],
    configurations=(("FP", "none"), ("INT", "none")),
    tier="nightly",
)
long_index = model(
    LongIndex,
    [sample("repeated", normal(3, 4), values([0, 3, 1, 1, 2, 0], 3, 2, dtype=torch.int64))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
counted_and_scaled = model(
    CountedAndScaled, [sample("rows", normal(3, 7))], configurations=FLOATING_ONLY, tier="nightly"
)
