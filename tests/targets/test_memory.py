"""A leak grows evenly; warming up and large cases do not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vgf_conformance.targets.memory import BYTES, CASES, Growth, resident

MB = 1 << 20


def told(sizes: Sequence[float]) -> list[str]:
    growth = Growth()
    return [text for size in sizes if (text := growth.add(int(size)))]


def test_a_leak_is_told_once_with_its_size() -> None:
    sizes = [150 * MB + 2 * MB * case for case in range(200)]
    assert told(sizes) == [
        "memory leak: the worker grows by 2.0 MB with each case, over the last 80 cases from 150 to 270 MB"
    ]


def test_a_leak_below_noise_and_warming_up_is_told() -> None:
    sizes = [100 * MB + 80 * MB * min(case, 25) / 25 + MB * case + (case % 7) * MB for case in range(160)]
    (text,) = told(sizes)
    assert "grows by 1." in text


@pytest.mark.parametrize(
    "sizes",
    [
        [200 * MB] * 200,
        [100 * MB + 200 * MB * min(case, 50) / 50 for case in range(200)],
        [300 * MB - 150 * MB * 0.9**case for case in range(200)],
        [150 * MB + (400 * MB if case % 9 == 0 else 0) for case in range(200)],
        [150 * MB + 60 * MB * (case // 70) for case in range(200)],
        [150 * MB + case * BYTES / 2 for case in range(200)],
        [150 * MB + 5 * MB * case for case in range(CASES - 1)],
        [0.0] * 200,
    ],
    ids=["even", "warm-up", "slow warm-up", "large cases", "steps", "small", "few cases", "unknown"],
)
def test_what_is_no_leak(sizes: list[float]) -> None:
    assert told(sizes) == []


def test_lavapipe_as_measured() -> None:
    """Every fourth size over the 122 cases of the smoke pack, in MB: 16 MB of warming up."""
    seen = [146.5, 150.7, 152.5, 155.2, 156.6, 156.7, 156.6, 156.5, 156.5, 156.5, 156.5, 157.1, 158.3, 158.4]
    seen += [158.4, 157.2, 157.2, 159.0, 158.9, 159.0, 158.9, 159.9, 160.6, 160.2, 160.2, 162.0, 162.0, 162.1]
    assert told([size * MB for size in seen for _ in range(4)]) == []


def test_a_process_knows_its_own_size() -> None:
    before = resident()
    kept = bytearray(64 * MB)
    kept[:: 1 << 12] = b"x" * len(kept[:: 1 << 12])
    assert resident() - before > 32 * MB
