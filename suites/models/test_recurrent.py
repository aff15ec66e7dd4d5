"""Recurrent models: an LSTM and a GRU, with trained and with drawn weights.

The backend unrolls the steps, and a quantised step takes seconds to lower: the trained ones, of eight
steps, run in the nightly tier.
"""

import torch
from torch import nn

from suites.models import digits
from vgf_conformance.cases.case import SEPARATE, About, Budget, model, sample
from vgf_conformance.cases.inputs import normal


class LastState(nn.Module):
    """An LSTM that answers with its output after the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 6, batch_first=True)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.lstm(sequence)[0][:, -1]


class RowByRow(nn.Module):
    """A recurrent layer that reads an image row by row, and ten logits of its last state."""

    def __init__(self, layer: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.recurrent = layer(8, 32, batch_first=True)
        self.logits = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.logits(self.recurrent(image.squeeze(1))[0][:, -1])


lstm = model(
    LastState,
    [
        sample("four_steps", normal(1, 4, 3), configurations=(("FP", "none"), ("FP+INT", "none"))),
        # Steps are unrolled, and a quantised one takes seconds to lower.
        sample("two_steps", normal(1, 2, 3), configurations=(("INT", "a8w8-pc"),)),
    ],
    about=About("suites/models", "Apache-2.0", "drawn from the seed"),
    budget=Budget(15.0, "int8 layers in a row on seeded weights: 33 dB and more were measured"),
    # Of unlike shapes: each is calibrated on itself.
    calibration=None,
)

BUDGET = Budget(20.0, "eight quantised steps in a row: 34 dB and more were seen on this stack")

digits_gru = model(
    digits.recogniser(lambda: RowByRow(nn.GRU)),
    [sample("digits", digits.images())],
    configurations=SEPARATE,
    tier="nightly",
    about=digits.ABOUT,
    task=digits.RECOGNITION,
    calibration=digits.calibration(),
    budget=BUDGET,
)

digits_lstm = model(
    digits.recogniser(lambda: RowByRow(nn.LSTM)),
    [sample("digits", digits.images())],
    configurations=SEPARATE,
    tier="nightly",
    about=digits.ABOUT,
    task=digits.RECOGNITION,
    calibration=digits.calibration(),
    budget=BUDGET,
)
