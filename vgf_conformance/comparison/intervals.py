"""Confidence intervals of mean scores, at 95 %: how much a figure from a few examples says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

#: Resamples of the bootstrap, and the seed that makes it repeat.
_RESAMPLES = 2000
_SEED = 0


def wilson(scores: NDArray[Any]) -> tuple[float, float]:
    """Wilson's interval of a proportion, for scores of 0 and 1: it holds near 0 and 1 too."""
    interval = stats.binomtest(int(scores.sum()), scores.size).proportion_ci(0.95, "wilson")
    return float(interval.low), float(interval.high)


def bootstrap(scores: NDArray[Any]) -> tuple[float, float]:
    """The percentile bootstrap's interval of a mean, from the same resamples each time."""
    chosen = np.random.default_rng(_SEED).integers(scores.size, size=(_RESAMPLES, scores.size))
    low, high = np.percentile(scores[chosen].mean(1), (2.5, 97.5))
    return float(low), float(high)
