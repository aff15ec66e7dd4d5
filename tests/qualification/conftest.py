"""Submissions of the small pack, made on the reference model in the guise of a driver."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

# Fixtures that are made once more here.
from tests.packs.conftest import pack, small, suite  # noqa: F401
from vgf_conformance.packs.pack import open_pack
from vgf_conformance.qualification.machine import Machine
from vgf_conformance.qualification.qualify import qualify
from vgf_conformance.results.shards import Shard
from vgf_conformance.targets.environment import package_versions
from vgf_conformance.targets.process import ProcessTarget

DEVICE = "Fake 9000"


def machine(runner: str, device: str = DEVICE) -> Machine:
    """A machine whose driver is a fake."""
    driver = {"manifest": "fake", "device": device, "driver": "fakes 1.0", "api": "Vulkan 1.3.0"}
    identity = {"name": device, "driver_info": "fakes 1.0", "vendor_id": 1}
    described: dict[str, Any] = {
        "versions": package_versions(),
        "python": "3.11",
        "cpu": "one",
        "targets": ["emulation"],
        "driver": driver,
        "device": identity,
        "layers": {"emulation": "no layers"},
    }
    report = {
        "identity": identity,
        "layers": [],
        "device": {
            "name": device,
            "extensions": {"VK_ARM_tensors": 1, "VK_ARM_data_graph": 1},
            "features": {},
            "formats": ["int8", "float32", "bfloat16"],
        },
    }
    target = ProcessTarget("emulation", f"tests.fakes:{runner}", time_limit=30.0)
    return Machine(target, described, identity, "no layers", report)


def submission(packed: Path, folder: Path, runner: str, shards: int, device: str = DEVICE) -> Path:
    """Qualify ``runner`` in so many shards."""
    made = machine(runner, device)
    try:
        with open_pack(packed) as pack:
            for number in range(1, shards + 1):
                qualify(pack, made, "a fake driver", folder, Shard(number=number, of=shards))
    finally:
        made.target.close()
    return folder


@pytest.fixture(scope="session")
def sound_once(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    return submission(small, tmp_path_factory.mktemp("sound") / "submission", "Faithful", 2)


@pytest.fixture(scope="session")
def failing_once(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    return submission(small, tmp_path_factory.mktemp("failing") / "submission", "ReturnsNan", 1)


@pytest.fixture
def sound(sound_once: Path, tmp_path: Path) -> Path:
    """A submission of two shards whose cases all pass, to tamper with."""
    return Path(shutil.copytree(sound_once, tmp_path / "sound"))


@pytest.fixture
def failing(failing_once: Path, tmp_path: Path) -> Path:
    """A submission of one shard in which ``pair`` fails."""
    return Path(shutil.copytree(failing_once, tmp_path / "failing"))
