"""Small seeded models, one of each kind that the backend is used for.

Covered: a convolutional classifier, a depthwise separable block with a residual, an attention
block, and an LSTM. Weights are drawn from the seed; what is judged is the path from PyTorch to the
device, not the model's skill. Where the second sample
has only another amplitude, it shares the first one's artifact.
"""

import torch
from torch import nn

from vgf_conformance.cases.case import Budget, model, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.cases.weights import with_drawn_norms


class ConvolutionalClassifier(nn.Module):
    """Two convolutions with batch norm and pooling, then ten logits."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.logits = nn.Linear(12, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.logits(self.features(image).flatten(1))


class SeparableResidual(nn.Module):
    """The inverted residual of mobile networks: widen, filter each channel, narrow, add."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(4, 8, 1),
            nn.BatchNorm2d(8),
            nn.Hardswish(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.BatchNorm2d(8),
            nn.ReLU6(),
            nn.Conv2d(8, 4, 1),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return image + self.block(image)


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


class LastState(nn.Module):
    """An LSTM that answers with its output after the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 6, batch_first=True)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.lstm(sequence)[0][:, -1]


BUDGET = Budget(15.0, "int8 layers in a row on seeded weights: 33 dB and more were measured")

convolutional_classifier = model(
    lambda: with_drawn_norms(ConvolutionalClassifier()),
    [sample("image", normal(1, 3, 8, 8)), sample("dark_image", normal(1, 3, 8, 8, scale=0.3))],
    budget=BUDGET,
)

separable_residual = model(
    lambda: with_drawn_norms(SeparableResidual()),
    [sample("image", normal(1, 4, 6, 6)), sample("dark_image", normal(1, 4, 6, 6, scale=0.3))],
    budget=BUDGET,
)

attention_block = model(
    lambda: with_drawn_norms(AttentionBlock()),
    [sample("five_tokens", normal(1, 5, 8)), sample("loud_tokens", normal(1, 5, 8, scale=3.0))],
    budget=BUDGET,
)

lstm = model(
    LastState,
    [
        sample("four_steps", normal(1, 4, 3), configurations=(("FP", "none"), ("FP+INT", "none"))),
        # Steps are unrolled, and a quantised one takes seconds to lower.
        sample("two_steps", normal(1, 2, 3), configurations=(("INT", "a8w8-pc"),)),
    ],
    budget=BUDGET,
    # Of unlike shapes: each is calibrated on itself.
    calibration=None,
)
