"""Synthesised sound: tones of known pitch, and a voice-like sound between silences."""

from __future__ import annotations

import math

import torch

RATE = 16000
#: Of a vowel, in Hz, with their loudness.
RESONANCES = ((650, 1.0), (1100, 0.6), (2500, 0.3))


def tone(frequency: float, samples: int) -> torch.Tensor:
    """Five harmonics, each half as loud as the one below, with zero mean and unit deviation."""
    time = torch.arange(samples) / RATE
    parts = [0.5**k * torch.sin(2 * math.pi * frequency * (k + 1) * time + k) for k in range(5)]
    sound = torch.stack(parts).sum(0)
    return (sound - sound.mean()) / sound.std()


def voice(pitch: float, seconds: float, seed: int) -> torch.Tensor:
    """Vowels between silences: pulses at a wavering ``pitch`` through three resonances, over faint noise."""
    count = int(seconds * RATE)
    time = torch.arange(count) / RATE
    generator = torch.Generator().manual_seed(seed)
    phase = torch.cumsum(pitch * (1 + 0.05 * torch.sin(2 * math.pi * 3 * time)) / RATE, 0)
    pulses = (phase % 1 < pitch / RATE * 4).float()
    spectrum = torch.fft.rfft(pulses)
    frequency = torch.fft.rfftfreq(count, 1 / RATE)
    vowel = sum(gain / (1 + ((frequency - peak) / 90) ** 2) for peak, gain in RESONANCES)
    sound = torch.fft.irfft(spectrum * vowel, count)
    sounding = (torch.sin(2 * math.pi * 1.25 * time) > 0).float()
    loudness = 0.6 + 0.4 * torch.sin(2 * math.pi * 4 * time)
    sound = 0.3 * sound / sound.abs().max() * sounding * loudness
    return sound + 0.001 * torch.randn(count, generator=generator)
