"""Models that find faces and read text, with trained weights."""

from typing import Any

import torch
from torch import nn

from suites.models import photos
from suites.models.packages import part, weights
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
from vgf_conformance.cases.task import Example, Metric, Outputs, Task

MTCNN = About("facenet-pytorch, MTCNN", "MIT", "trained: facenet-pytorch 2.6.0")
LEGERE = About("legere", "MIT", "trained: legere 0.11.0")
FACENET = ("facenet-pytorch==2.6.0",)
#: Text is drawn with Pillow.
READING = ("legere==0.11.0", "pillow==12.3.0")


class ProposalNetwork(nn.Module):
    """MTCNN's P-Net: boxes and face probabilities, convolutions only, pooling that rounds up."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 10, 3), nn.PReLU(10)
        self.pool1 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv2, self.prelu2 = nn.Conv2d(10, 16, 3), nn.PReLU(16)
        self.conv3, self.prelu3 = nn.Conv2d(16, 32, 3), nn.PReLU(32)
        self.conv4_1, self.conv4_2 = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.pool1(self.prelu1(self.conv1(image)))
        features = self.prelu3(self.conv3(self.prelu2(self.conv2(features))))
        return self.conv4_2(features), torch.softmax(self.conv4_1(features), 1)


class RefinementNetwork(nn.Module):
    """MTCNN's R-Net: the box and face probability of a crop of 24 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 28, 3), nn.PReLU(28)
        self.conv2, self.prelu2 = nn.Conv2d(28, 48, 3), nn.PReLU(48)
        self.conv3, self.prelu3 = nn.Conv2d(48, 64, 2), nn.PReLU(64)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.dense4, self.prelu4 = nn.Linear(576, 128), nn.PReLU(128)
        self.dense5_1, self.dense5_2 = nn.Linear(128, 2), nn.Linear(128, 4)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.pool(self.prelu1(self.conv1(image)))
        features = self.prelu3(self.conv3(self.pool(self.prelu2(self.conv2(features)))))
        # The weights come from a framework that has the width before the height.
        dense = self.prelu4(self.dense4(features.permute(0, 3, 2, 1).flatten(1)))
        return self.dense5_2(dense), torch.softmax(self.dense5_1(dense), 1)


def trained(network: nn.Module, name: str) -> nn.Module:
    network.load_state_dict(weights("facenet-pytorch", f"facenet_pytorch/data/{name}.pt"))
    return network


face_proposals = model(
    lambda: trained(ProposalNetwork(), "pnet"),
    [
        sample("image", normal(1, 3, 24, 24, scale=0.5), configurations=SEPARATE),
        sample("image_mixed", normal(1, 3, 24, 24, scale=0.5), configurations=MIXED, tier="nightly"),
    ],
    about=MTCNN,
    needs=FACENET,
    budget=Budget(15.0, "PReLU becomes several integer operators: 25 dB and more were measured"),
)

face_refinement = model(
    lambda: trained(RefinementNetwork(), "rnet"),
    [
        sample("crop", normal(1, 3, 24, 24, scale=0.5), configurations=FLOATING_ONLY),
        sample("quantised_crop", normal(1, 3, 24, 24, scale=0.5), configurations=QUANTISED, tier="nightly"),
    ],
    about=MTCNN,
    needs=FACENET,
    budget=Budget(15.0, "PReLU becomes several integer operators: 25 dB and more were measured"),
)

# --- Text -----------------------------------------------------------------------------------------

WORDS = ("sol e mar", "Hello", "casa", "words", "printed", "reading", "number", "letter")


def line_classifier() -> nn.Module:
    found: nn.Module = part("legere", "model").LineClassifier()
    found.load_state_dict(weights("legere", "legere/data/lineclf.pt")["model"])
    return found


def reader() -> nn.Module:
    found: nn.Module = part("legere", "model").CompactCRNN()
    found.load_state_dict(weights("legere", "legere/data/model.pt")["model"])
    return found


def _clear_text(generator: torch.Generator) -> torch.Tensor:
    """A line whose one logit lies far from zero, or a loss in dB would say nothing of it."""
    return photos.line("letter", 96)


def _lines() -> list[Example]:
    """Lines of text, and bars as of a bar code."""
    generator = torch.Generator().manual_seed(0)
    bars = [(torch.rand(1, 1, 1, 96, generator=generator) > 0.5) * 1.8 - 0.9 for _ in WORDS]
    return [
        *(Example((photos.line(word, 96),), torch.tensor([True])) for word in WORDS),
        *(Example((bar.expand(1, 1, 32, 96).contiguous(),), torch.tensor([False])) for bar in bars),
    ]


def _is_text(outputs: Outputs, answer: torch.Tensor) -> torch.Tensor:
    return (outputs[0] > 0) == answer


text_line = model(
    line_classifier,
    [
        sample("words", _clear_text, configurations=SEPARATE),
        sample("words_mixed", _clear_text, configurations=MIXED, tier="nightly"),
    ],
    about=LEGERE,
    needs=READING,
    task=Task(
        Metric("text or not", _is_text, proportion=True),
        _lines,
        0.0,
        "the logits lie far apart",
    ),
    calibration=lambda: [example.inputs for example in _lines()],
    budget=Budget(20.0, "eight quantised layers: 29 dB were measured"),
)

SHORT = ("42", "At", "7a", "Ze", "me", "Da", "19", "BR", "Ou", "35", "Lá", "Sr", "x2", "Fe", "80", "Rn")


def _written() -> list[Example]:
    return [Example((photos.line(text, 32),), text) for text in SHORT]


def _read(outputs: Outputs, text: str) -> torch.Tensor:
    found: Any = part("legere", "model").ctc_greedy_decode(outputs[0])
    return torch.tensor([found == [text]])


def _short_text(generator: torch.Generator) -> torch.Tensor:
    return photos.line(SHORT[int(torch.randint(len(SHORT), (), generator=generator))], 32)


def _written_inputs() -> list[Inputs]:
    return [example.inputs for example in _written()]


# A bidirectional GRU over eight steps: 32 pixels of width.
text_reader = model(
    reader,
    [sample("two_characters", _short_text)],
    configurations=(*FLOATING_ONLY, ("INT", "a8w8-pc")),
    tier="nightly",
    about=LEGERE,
    needs=READING,
    task=Task(
        Metric("text read right", _read, proportion=True),
        _written,
        0.125,
        "two of sixteen: 7 of 8 lines were read alike when this was first measured",
    ),
    calibration=_written_inputs,
    budget=Budget(
        15.0, "fourteen convolutions and sixteen recurrent steps in int8: 29 dB were seen on this stack"
    ),
)
