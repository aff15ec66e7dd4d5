"""Dimensions that are known only when the program runs.

Covered: an open batch of an elementwise operator, of a linear layer, of a convolution and of a
reshape, run at another size than it was exported with; the profile that has shapes as values.
"""

from typing import Any

import torch
from torch import nn

from vgf_conformance.cases.case import SEPARATE, Case, model, sample
from vgf_conformance.cases.inputs import normal


class Flattened(nn.Module):
    """The shape is computed from the open dimension."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.tanh(tensor.reshape(tensor.shape[0], -1))


class SoftmaxOfRows(nn.Module):
    """A reduction beside the open dimension."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.softmax(tensor, -1)


def open_batch(build: Any, *shape: int, configurations: Any = SEPARATE) -> Case:
    """A model whose first dimension is open from 1 to 8."""
    return model(
        build,
        [sample("batch_2", normal(2, *shape)), sample("batch_5", normal(5, *shape))],
        configurations=configurations,
        dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=8)},),
        # Each sample is calibrated on itself: the quantised program is exported for it.
        calibration=None,
        tier="nightly",
    )


relu = open_batch(nn.ReLU, 4, configurations=(*SEPARATE, ("TOSA-1.1+FP+shape", "none")))
linear_relu = open_batch(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()), 4)
convolution = open_batch(lambda: nn.Conv2d(2, 3, 3), 2, 5, 5, configurations=(("FP", "none"),))
flattened = open_batch(Flattened, 2, 3, configurations=(("FP", "none"),))
softmax_of_rows = open_batch(SoftmaxOfRows, 4, configurations=(("FP", "none"),))
