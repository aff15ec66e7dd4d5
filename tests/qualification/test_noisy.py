"""A noisy pass is told in a submission, and the verifier comes to it by the intermediate results."""

from __future__ import annotations

import datetime
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attribution.chains import Device
from tests.packs.noisy_suite import NOISY, noisy_pack
from tests.qualification.conftest import machine
from tests.qualification.tamper import Lines, cases, runs
from vgf_conformance.packs.pack import open_pack
from vgf_conformance.qualification.layout import is_output
from vgf_conformance.qualification.qualify import qualify
from vgf_conformance.qualification.verify import verify
from vgf_conformance.results.shards import Shard

SHARD = "shard-1-of-1"


@pytest.fixture(scope="session")
def noisy(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return noisy_pack(tmp_path_factory.mktemp("noisy"))


def qualified(packed: Path, folder: Path, share: float) -> bool:
    made = machine("Faithful")
    device = Device("SIN", share, name="emulation", driver=made.target.driver)
    with open_pack(packed) as pack:
        return qualify(pack, replace(made, target=device), "a fake driver", folder, Shard(number=1, of=1))


def reasons(packed: Path, folder: Path) -> list[str]:
    with open_pack(packed) as pack:
        return verify(folder, pack, (), datetime.date(2026, 11, 30)).reasons


@pytest.fixture(scope="session")
def accepted(noisy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qualified") / "submission"
    assert qualified(noisy, folder, 0.9)
    return folder


@pytest.fixture
def folder(accepted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(accepted, tmp_path / "submission"))


def test_a_noisy_pass_is_told_and_accepted(
    noisy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert qualified(noisy, tmp_path / "submission", 0.9)
    out = capfd.readouterr().out
    assert "noisy: 1 passes, beyond this harness's own limit to noise" in out
    assert f"  {NOISY}: noisy: " in out
    assert reasons(noisy, tmp_path / "submission") == []


def test_without_its_intermediate_results_it_is_refused(noisy: Path, folder: Path) -> None:
    def without(documents: Lines) -> None:
        for document in cases(documents):
            document["visible"] = []

    kept = [path for path in (folder / SHARD / "outputs").iterdir() if is_output(f"outputs/{path.name}")]
    runs(folder / SHARD, without)
    found = reasons(noisy, folder)
    assert any(f"{NOISY}: pass in the results, but by its outputs fail at run" in reason for reason in found)
    assert sum("no record names it" in reason for reason in found) > 1
    assert kept


def test_intermediate_results_of_fewer_operators_are_refused(noisy: Path, folder: Path) -> None:
    def fewer(documents: Lines) -> None:
        for document in cases(documents):
            document["visible"] = [call[1:] for call in document["visible"]]

    runs(folder / SHARD, fewer)
    assert any("intermediate results of call 0, should be" in reason for reason in reasons(noisy, folder))


def test_intermediate_results_that_do_not_lead_to_the_outputs_are_refused(noisy: Path, folder: Path) -> None:
    def swapped(documents: Lines) -> None:
        for document in cases(documents):
            for call in document["visible"]:
                call[:] = call[::-1]

    runs(folder / SHARD, swapped)
    assert any(f"{NOISY}: pass in the results, but" in reason for reason in reasons(noisy, folder))


def test_a_plain_pass_is_no_noisy_one(noisy: Path, folder: Path) -> None:
    def plain(documents: Lines) -> None:
        for document in cases(documents):
            document["finding"] = None

    runs(folder / SHARD, plain)
    assert any(
        f"{NOISY}: pass in the results, but by its outputs pass (noisy)" in reason
        for reason in reasons(noisy, folder)
    )


def test_an_operator_outside_its_bound_is_refused_for_its_failure_alone(noisy: Path, tmp_path: Path) -> None:
    assert not qualified(noisy, tmp_path / "submission", 1.25)
    found = reasons(noisy, tmp_path / "submission")
    assert all("no waiver" in reason for reason in found), found
