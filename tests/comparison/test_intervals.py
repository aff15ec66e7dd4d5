from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from vgf_conformance.comparison.intervals import bootstrap, wilson


def test_wilson_at_the_ends_and_in_between() -> None:
    # Wilson's formula: (p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), z = 1.96.
    assert wilson(np.ones(100)) == pytest.approx((0.963, 1.0), abs=5e-4)
    assert wilson(np.zeros(100)) == pytest.approx((0.0, 0.037), abs=5e-4)
    assert wilson(np.array([1.0] * 81 + [0.0] * 19)) == pytest.approx((0.722, 0.875), abs=1e-3)


@pytest.mark.parametrize(("passed", "count"), [(0, 1), (1, 1), (3, 7), (353, 360), (9999, 10_000)])
def test_wilson_is_scipys(passed: int, count: int) -> None:
    theirs = stats.binomtest(passed, count).proportion_ci(0.95, "wilson")
    ours = wilson(np.arange(count) < passed)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_bootstrap_repeats_and_is_about_two_standard_errors_wide() -> None:
    scores = np.random.default_rng(1).normal(20.0, 2.0, 400)
    low, high = bootstrap(scores)
    assert (low, high) == bootstrap(scores)
    assert low < scores.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * 2.0 / 20, rel=0.15)
    assert bootstrap(np.full(5, 3.0)) == (3.0, 3.0)
