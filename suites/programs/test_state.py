"""State in buffers, over several calls in sequence.

Covered: a window of the rows that came last, counters in floating point and in integers, a sum.
"""

import torch
from torch import nn

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, model, sample
from vgf_conformance.cases.inputs import normal

CALLS = ("first", "second", "third")


class Window(nn.Module):
    """Attends to the last four rows that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        self.rows.copy_(torch.cat([self.rows[1:], row]))
        return torch.softmax(row @ self.rows.transpose(0, 1), -1) @ self.rows


class Average(nn.Module):
    """The mean of all rows so far, for which it counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 3))
        self.register_buffer("calls", torch.zeros(1, 1))
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int32))

    def forward(self, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.total.add_(row)
        self.calls.add_(1.0)
        self.seen.add_(1)
        return self.total / self.calls, self.seen * 2


window = model(
    Window,
    [sample(name, normal(1, 3)) for name in CALLS],
    configurations=SEPARATE,
    tier="nightly",
    sequence=True,
)
average = model(
    Average,
    [sample(name, normal(1, 3)) for name in CALLS],
    configurations=FLOATING_ONLY,
    tier="nightly",
    sequence=True,
)
