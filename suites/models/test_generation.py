"""Models that make images: the blocks of a diffusion U-Net and of a variational autoencoder's decoder."""

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import About, Budget, model, sample
from vgf_conformance.cases.inputs import normal, uniform
from vgf_conformance.cases.weights import with_drawn_norms

SEEDED = About("suites/models", "Apache-2.0", "drawn from the seed")


class Residual(nn.Module):
    """Group norm, SiLU and convolution twice, with a shift in between, and a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(4, channels), nn.GroupNorm(4, channels)])
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))

    def forward(self, features: torch.Tensor, shift: torch.Tensor | None = None) -> torch.Tensor:
        made = self.convolutions[0](F.silu(self.norms[0](features)))
        if shift is not None:
            made = made + shift[:, :, None, None]
        return features + self.convolutions[1](F.silu(self.norms[1](made)))


class DecoderBlock(nn.Module):
    """A residual block, twice the size by repeated pixels, and a convolution to three channels."""

    def __init__(self) -> None:
        super().__init__()
        self.take = nn.Conv2d(4, 16, 3, padding=1)
        self.residual = Residual(16)
        self.give = nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        features = self.residual(self.take(latent))
        return torch.tanh(self.give(F.interpolate(features, scale_factor=2.0, mode="nearest")))


class DiffusionBlock(nn.Module):
    """Noise with its time in, noise to take away out: sines of the time, residuals, attention over pixels."""

    CHANNELS = 16

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rates", 1000.0 ** -(torch.arange(8) / 8))
        self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, self.CHANNELS))
        self.take = nn.Conv2d(3, self.CHANNELS, 3, padding=1)
        self.before, self.after = Residual(self.CHANNELS), Residual(self.CHANNELS)
        self.norm = nn.GroupNorm(4, self.CHANNELS)
        self.project = nn.Conv2d(self.CHANNELS, 3 * self.CHANNELS, 1)
        self.out = nn.Conv2d(self.CHANNELS, self.CHANNELS, 1)
        self.give = nn.Conv2d(self.CHANNELS, 3, 3, padding=1)

    def forward(self, noise: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        angles = time[:, None] * self.rates
        shift = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        features = self.before(self.take(noise), shift)
        query, key, value = self.project(self.norm(features)).flatten(2).chunk(3, 1)
        weight = torch.softmax(query.transpose(1, 2) @ key / self.CHANNELS**0.5, -1)
        attended = (value @ weight.transpose(1, 2)).unflatten(2, noise.shape[2:])
        return self.give(self.after(features + self.out(attended), shift))


decoder_block = model(
    lambda: with_drawn_norms(DecoderBlock()),
    [sample("latent", normal(1, 4, 8, 8))],
    tier="nightly",
    about=SEEDED,
    budget=Budget(10.0, "two group norms and four convolutions in int8: 33 dB were measured"),
)

diffusion_block = model(
    lambda: with_drawn_norms(DiffusionBlock()),
    [sample("noise", normal(1, 3, 8, 8), uniform(1, low=0.0, high=50.0))],
    tier="nightly",
    about=SEEDED,
    budget=Budget(10.0, "five group norms, a softmax and nine convolutions in int8"),
)
