"""Models with attention."""

import torch
from torch import nn
from torch.nn import functional as F

from suites.models import digits
from vgf_conformance.cases.case import FLOATING_ONLY, About, Budget, model, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.cases.weights import with_drawn_norms

SEEDED = About("suites/models", "Apache-2.0", "drawn from the seed")


class AttentionBlock(nn.Module):
    """Layer norm, self-attention with one head, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        normed = self.norm(tokens)
        scores = self.query(normed) @ self.key(normed).transpose(1, 2) / 8**0.5
        return tokens + self.out(torch.softmax(scores, -1) @ self.value(normed))


class EncoderLayer(nn.Module):
    """A transformer's encoder layer: self-attention and two linear layers, norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        parts = self.project(self.norms[0](tokens)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        tokens = tokens + self.out(attended)
        return tokens + self.feed(self.norms[1](tokens))


class DigitsTransformer(nn.Module):
    """A vision transformer: sixteen patches of 2x2 pixels, one layer, the mean token's logits."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 24, 2, stride=2)
        self.position = nn.Parameter(0.1 * torch.randn(1, 16, 24))
        self.layer = EncoderLayer(24, heads=2)
        self.norm = nn.LayerNorm(24)
        self.logits = nn.Linear(24, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(image).flatten(2).transpose(1, 2) + self.position
        return self.logits(self.norm(self.layer(tokens)).mean(1))


attention_block = model(
    lambda: with_drawn_norms(AttentionBlock()),
    [sample("five_tokens", normal(1, 5, 8)), sample("loud_tokens", normal(1, 5, 8, scale=3.0))],
    about=SEEDED,
    budget=Budget(15.0, "int8 layers in a row on seeded weights: 33 dB and more were measured"),
)

digits_vit = model(
    digits.recogniser(DigitsTransformer),
    [
        sample("digits", digits.images(), configurations=FLOATING_ONLY),
        # Softmax, GELU and layer norm become many integer operators, slow to lower.
        sample(
            "quantised_digits",
            digits.images(),
            configurations=(("INT", "a8w8-pc"), ("FP+INT", "a8w8-pc")),
            tier="nightly",
        ),
    ],
    about=digits.ABOUT,
    task=digits.RECOGNITION,
    calibration=digits.calibration(),
    budget=Budget(15.0, "softmax and two norms in int8: 30 dB were measured"),
)
