"""Models at the edge of what the stack takes: most are known failures.

An open batch, a branch that the data decides, a network that one of the backend's passes refuses, and
sampling at positions that the model computes: a custom shader between two graphs in one VGF, with images
and a sampler for four channels, with storage buffers for any other number. The reference model has no
shaders: what emulation makes of them is held against eager.
"""

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, About, model, sample
from vgf_conformance.cases.inputs import normal

SEEDED = About("suites/models", "Apache-2.0", "drawn from the seed")


class Routed(nn.Module):
    """One of two layers, by the sign of the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.cond(values.mean() > 0, self.one, self.other, (values,))


class SpatialTransformer(nn.Module):
    """The image at positions that a small network shifts."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.shift = nn.Conv2d(channels, 2, 3, padding=1)
        lines = torch.linspace(-1, 1, 6)
        self.register_buffer("grid", torch.stack(torch.meshgrid(lines, lines, indexing="xy"), -1)[None])

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        moved = self.grid + 0.1 * torch.tanh(self.shift(image)).permute(0, 2, 3, 1)
        return F.grid_sample(image, moved, align_corners=True)


def autoencoder() -> nn.Module:
    """MLPerf Tiny's deep autoencoder for machine sounds, as executorch has it."""
    from executorch.examples.models.mlperf_tiny import DeepAutoEncoder

    network: nn.Module = DeepAutoEncoder()
    return network


open_batch = model(
    lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)),
    [sample("batch_2", normal(2, 1, 6, 6))],
    configurations=SEPARATE,
    tier="nightly",
    about=SEEDED,
    dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=8)},),
)

routed = model(
    Routed, [sample("values", normal(2, 4))], configurations=SEPARATE, tier="nightly", about=SEEDED
)

spatial_transformer = model(
    lambda: SpatialTransformer(4),
    [sample("image", normal(1, 4, 6, 6))],
    configurations=SEPARATE,
    tier="nightly",
    about=SEEDED,
)

spatial_transformer_in_buffers = model(
    lambda: SpatialTransformer(2),
    [sample("image", normal(1, 2, 6, 6))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    about=SEEDED,
)

deep_autoencoder = model(
    autoencoder,
    [sample("spectrum", normal(1, 640))],
    tier="nightly",
    about=About("executorch.examples.models.mlperf_tiny", "Apache-2.0", "drawn from the seed"),
)
