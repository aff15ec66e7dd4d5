"""Small models that see: classifiers of several kinds, a denoiser, super sampling.

Where a second sample has only another amplitude, it shares the first one's artifact.
"""

import torch
from torch import nn
from torch.nn import functional as F

from suites.models import digits
from vgf_conformance.cases.case import About, Budget, model, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.cases.weights import with_drawn_norms

SEEDED = About("suites/models", "Apache-2.0", "drawn from the seed")
BUDGET = Budget(15.0, "int8 layers in a row on seeded weights: 33 dB and more were measured")


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


class DigitsNetwork(nn.Module):
    """A convolution, a depthwise separable one with a residual, and ten logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Hardswish())
        self.separable = nn.Sequential(
            nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False),
            nn.BatchNorm2d(16),
            nn.Hardswish(),
            nn.Conv2d(16, 16, 1, bias=False),
            nn.BatchNorm2d(16),
        )
        self.down = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()
        )
        self.logits = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = self.stem(image)
        return self.logits(self.down(features + self.separable(features)).mean((2, 3)))


class DigitsVolume(nn.Module):
    """3-D convolutions over an image's rows, as if they were frames."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 16, 3, stride=2, padding=1), nn.ReLU()
        )
        self.logits = nn.Linear(16 * 4 * 2, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.logits(self.features(image.unflatten(-1, (4, 2))).flatten(1))


class DigitsUnet(nn.Module):
    """A U-Net: down, up by a transposed convolution, and the skip concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU())
        self.deep = nn.Sequential(
            nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU()
        )
        self.up = nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.join = nn.Sequential(nn.Conv2d(24, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        skip = self.wide(image)
        return self.join(torch.cat([self.up(self.deep(skip)), skip], 1))


class DigitsUpscaler(nn.Module):
    """Super sampling: what bilinear interpolation lacks, from channels shuffled into pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.detail = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 4, 3, padding=1),
            nn.PixelShuffle(2),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        rough = F.interpolate(image, scale_factor=2.0, mode="bilinear")
        return rough + self.detail(image)


convolutional_classifier = model(
    lambda: with_drawn_norms(ConvolutionalClassifier()),
    [sample("image", normal(1, 3, 8, 8)), sample("dark_image", normal(1, 3, 8, 8, scale=0.3))],
    about=SEEDED,
    budget=BUDGET,
)

separable_residual = model(
    lambda: with_drawn_norms(SeparableResidual()),
    [sample("image", normal(1, 4, 6, 6)), sample("dark_image", normal(1, 4, 6, 6, scale=0.3))],
    about=SEEDED,
    budget=BUDGET,
)

digits_cnn = model(
    digits.recogniser(DigitsNetwork),
    [sample("digits", digits.images())],
    about=digits.ABOUT,
    task=digits.RECOGNITION,
    calibration=digits.calibration(),
    budget=Budget(20.0, "six quantised layers: 30 dB were measured"),
)

digits_conv3d = model(
    digits.recogniser(DigitsVolume),
    [sample("digits", digits.images())],
    about=digits.ABOUT,
    task=digits.RECOGNITION,
    calibration=digits.calibration(),
    budget=Budget(25.0, "three quantised layers: 43 dB were measured"),
)

digits_unet = model(
    digits.restorer(DigitsUnet, digits.noisy),
    [sample("noisy_digits", digits.images(digits.noisy))],
    about=digits.ABOUT,
    task=digits.restoration(digits.noisy),
    calibration=digits.calibration(digits.noisy),
    budget=Budget(20.0, "seven quantised layers lose less than the noise that they take away"),
)

digits_upscaler = model(
    digits.restorer(DigitsUpscaler, digits.halved),
    [sample("small_digits", digits.images(digits.halved))],
    tier="nightly",
    about=digits.ABOUT,
    task=digits.restoration(digits.halved),
    calibration=digits.calibration(digits.halved),
    budget=Budget(20.0, "four quantised layers and a sum"),
)
