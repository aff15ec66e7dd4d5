"""Dimensions that are known only when the program runs.

Covered: an open batch of an elementwise operator, of a linear layer, of a convolution and of a
reshape, run at another size than it was exported with; the profile that has shapes as values: an
open height of pictures that are convolved with padding and pooled to a fixed size, an open batch that
is filled, joined and seen in another shape.
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


class Filled(nn.Module):
    """A constant tensor of the open size."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor + torch.full((tensor.shape[0], 4), 1.5)


class JoinedRows(nn.Module):
    """The size of a view is left to be inferred from an open one."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor, -tensor], 0).view(-1, 2)


#: TOSA 1.1 with shapes as values.
SHAPES = (("TOSA-1.1+FP+shape", "none"),)


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


relu = open_batch(nn.ReLU, 4, configurations=(*SEPARATE, *SHAPES))
linear_relu = open_batch(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()), 4)
convolution = open_batch(lambda: nn.Conv2d(2, 3, 3), 2, 5, 5, configurations=(("FP", "none"),))
flattened = open_batch(Flattened, 2, 3, configurations=(("FP", "none"),))
softmax_of_rows = open_batch(SoftmaxOfRows, 4, configurations=(("FP", "none"),))
filled = open_batch(Filled, 4, configurations=SHAPES)
joined_rows = open_batch(JoinedRows, 4, configurations=SHAPES)


def open_height(build: Any, height: Any) -> Case:
    """A model of pictures 8 wide whose ``height`` is open, exported at 8 and run at 8 and at 12."""
    return model(
        build,
        [sample("height_8", normal(1, 2, 8, 8)), sample("height_12", normal(1, 2, 12, 8))],
        configurations=SHAPES,
        dynamic_shapes=({2: height},),
        tier="nightly",
    )


ANY_HEIGHT = torch.export.Dim("height", min=4, max=16)
padded_convolution = open_height(lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1), ANY_HEIGHT)
uneven_pool = open_height(lambda: nn.AdaptiveAvgPool2d((3, 3)), ANY_HEIGHT)
even_pool = open_height(
    lambda: nn.AdaptiveAvgPool2d((2, 2)), 2 * torch.export.Dim("half_height", min=2, max=8)
)
