"""Headrooms are recorded by case, and a jump is named even where it stays inside the bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.results.records import record
from vgf_conformance.results.baselines import (
    Baseline,
    Regression,
    largest,
    load_baselines,
    regressions,
    tools,
    update_baselines,
)
from vgf_conformance.results.record import Comparison, Record
from vgf_conformance.vocabulary import Stage, UserError

KEY = "operators/test_x.py::exp[rank1-FP-none]"
TOOLS = {"emulation": {"driver": "lvp 22"}}


def used(share: float | None, passed: bool | None = True, sample: str = "rank1", **more: str) -> Record:
    item = Comparison("emulation/reference", Stage.RUN, 0, passed, "tosa", None, headroom=share)
    return record(
        case="exp",
        sample=sample,
        profile="FP",
        scheme="none",
        target=more.pop("target", "emulation"),
        file="operators/test_x.py",
        comparisons=[item],
    )


def test_each_sample_has_a_share_of_its_own() -> None:
    records = [used(0.1), used(0.4, sample="rank2"), used(0.9, target="reference")]
    assert largest(records, "emulation") == {KEY: 0.1, KEY.replace("rank1", "rank2"): 0.4}


@pytest.mark.parametrize("item", [used(None), used(1.7, passed=False), used(0.5, passed=None)])
def test_what_was_not_judged_or_failed_is_no_baseline(item: Record) -> None:
    assert largest([item], "emulation") == {}


@pytest.mark.parametrize(
    ("was", "now", "jumps"),
    [(0.1, 0.3, True), (0.1, 0.12, False), (0.001, 0.04, False), (0.6, 0.8, False), (0.0, 0.06, True)],
)
def test_a_jump_is_more_than_half_again_and_more_than_a_twentieth(
    was: float, now: float, jumps: bool
) -> None:
    baseline = Baseline("emulation", TOOLS["emulation"], {KEY: was})
    found = regressions([baseline], [used(now)], TOOLS)
    assert found == ([Regression(KEY, "emulation", was, now, same=True)] if jumps else [])


def test_another_driver_is_said_and_a_case_without_a_baseline_is_silent() -> None:
    baseline = Baseline("emulation", {"driver": "other"}, {KEY: 0.1})
    (found,) = regressions([baseline], [used(0.3)], TOOLS)
    assert not found.same
    assert str(found) == (
        f"{KEY} on emulation: 10.0% of the bound used before, 30.0% now "
        "(with another driver or other versions than the baseline's)"
    )
    assert regressions([Baseline("emulation", {}, {})], [used(0.3)], TOOLS) == []


def test_an_update_keeps_what_was_not_run(tmp_path: Path) -> None:
    update_baselines(tmp_path, [used(0.25)], TOOLS)
    other = record(
        case="log", file="operators/test_x.py", target="emulation", comparisons=used(0.5).comparisons
    )
    (path,) = update_baselines(tmp_path, [other], TOOLS)
    (baseline,) = load_baselines(tmp_path)
    assert (path.name, baseline.target, baseline.made_with) == (
        "emulation.json",
        "emulation",
        {"driver": "lvp 22"},
    )
    assert sorted(baseline.headroom.values()) == [0.25, 0.5]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"target": "x", "made_with": {}, "headroom": {"a": "b"}}'])
def test_a_bad_baseline_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "emulation.json").write_text(text)
    with pytest.raises(UserError, match=r"emulation\.json"):
        load_baselines(tmp_path)


def test_headrooms_depend_on_the_driver_only_where_there_is_one() -> None:
    environment = {
        "versions": {"torch": "2", "numpy": "1"},
        "driver": {"driver": "lvp 22"},
        "cpu": "fast",
        "seed": 3,
    }
    assert tools(environment, "reference") == {"torch": "2", "cpu": "fast", "seed": "3"}
    assert tools(environment, "emulation")["driver"] == "lvp 22"
