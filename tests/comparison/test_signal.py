"""Bounds that say nothing must not let a wrong tensor pass."""

from __future__ import annotations

import numpy as np
import pytest

from vgf_conformance.comparison.lowering import Expected, judge_output
from vgf_conformance.comparison.signal import noise_share

RIGHT = np.linspace(-3, 3, 64)


def test_noise_is_measured_in_what_the_budget_allows() -> None:
    # An amplitude 1e-5 of the signal is 100 dB down: all that fp32 may have.
    share = noise_share(RIGHT * (1 + 1e-5), RIGHT, RIGHT, "float32")
    assert share == pytest.approx(1.0, rel=1e-6)


def test_a_peer_as_noisy_excuses_noise() -> None:
    noisy = RIGHT * (1 + 1e-4)
    assert noise_share(noisy, RIGHT, RIGHT, "float32") > 1
    assert noise_share(noisy, RIGHT, noisy, "float32") < 1


def test_tensors_without_signal_are_left_to_the_bound() -> None:
    zero = np.zeros(3)
    assert noise_share(zero + 1e-30, zero, zero, "float32") == 0.0


def test_flushed_results_are_no_noise_and_others_are() -> None:
    tiny = np.array([1e-40, -1e-39, 1e-45])
    assert noise_share(np.zeros(3), tiny, tiny, "float32") == 0.0
    assert noise_share(np.array([0.0, -1e-39, 5e-40]), tiny, tiny, "float32") > 1
    assert noise_share(np.zeros(3), tiny * 1e10, tiny * 1e10, "float32") > 1


@pytest.mark.parametrize("bound", [np.inf, 10.0])
def test_a_bound_that_says_nothing_passes_no_wrong_lowering(bound: float) -> None:
    native = RIGHT.astype(np.float32)
    expected = Expected("reference/eager", RIGHT, native, np.full(64, bound))
    assert judge_output(0, np.nextafter(native, np.float32(9)), expected).passed
    judged = judge_output(0, native + np.float32(1), expected)
    assert judged.passed is False
    assert judged.metrics is not None and judged.metrics.wrong == 64
    assert judged.headroom is not None and judged.headroom > 1
