"""Confidence intervals of mean scores, at 95 %: how much a figure from a few examples says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Resamples of the bootstrap, and the seed that makes it repeat.
_RESAMPLES = 2000
_SEED = 0

#: Standard errors on each side that hold 95 % of a normal distribution.
_Z = 1.959963984540054


def wilson(scores: NDArray[Any]) -> tuple[float, float]:
    """Wilson's interval of a proportion, for scores of 0 and 1: it holds near 0 and 1 too."""
    share, count = float(scores.mean()), scores.size
    centre = share + _Z**2 / (2 * count)
    reach = _Z * math.sqrt(share * (1 - share) / count + (_Z / (2 * count)) ** 2)
    low, high = ((centre + end) / (1 + _Z**2 / count) for end in (-reach, reach))
    return max(0.0, low), min(1.0, high)


def bootstrap(scores: NDArray[Any]) -> tuple[float, float]:
    """The percentile bootstrap's interval of a mean, from the same resamples each time."""
    chosen = np.random.default_rng(_SEED).integers(scores.size, size=(_RESAMPLES, scores.size))
    low, high = np.percentile(scores[chosen].mean(1), (2.5, 97.5))
    return float(low), float(high)
