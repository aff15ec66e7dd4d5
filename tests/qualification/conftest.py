"""Submissions of the small pack, made on the reference model in the guise of a driver."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

# Fixtures that are made once more here.
from tests.packs.conftest import pack, small, suite  # noqa: F401
from vgf_conformance.packs.pack import open_pack
from vgf_conformance.qualification.machine import Machine
from vgf_conformance.qualification.qualify import qualify
from vgf_conformance.results.shards import Shard
from vgf_conformance.targets.capabilities import Device, Platform
from vgf_conformance.targets.environment import described_driver, package_versions
from vgf_conformance.targets.process import ProcessTarget, recorded_driver
from vgf_conformance.targets.vulkan import LAYERS, Driver

DEVICE = "Fake 9000"


#: What the emulation layers' shaders need of a device.
FEATURES = (
    *("shaderInt8", "shaderInt16", "shaderInt64", "shaderFloat16"),
    *("storageBuffer8BitAccess", "storageBuffer16BitAccess"),
)


def platform(
    device: str = DEVICE, extensions: Sequence[str] = tuple(LAYERS.values()), **changes: Any
) -> Platform:
    """The emulation layers over the driver of a device that has all that they need."""
    described = Device(
        name=device,
        kind="other",
        api="1.3.0",
        vendor_id=1,
        device_id=2,
        driver_version="1.0",
        extensions=dict.fromkeys(extensions, 1),
        limits={},
        driver_info="fakes 1.0",
        features=dict.fromkeys(FEATURES, True),
        formats=["bfloat16", "float32", "int8"],
    )
    found = Platform(Driver("fake", Path("fake.json")), tuple(LAYERS), described, (), "1.3.0")
    return replace(found, **changes)


def machine(runner: str, device: str = DEVICE, target: str = "emulation", **changes: Any) -> Machine:
    """A machine whose driver is a fake."""
    found = platform(device, **changes)
    described: dict[str, Any] = {
        "versions": package_versions(),
        "python": "3.11",
        "host": "Linux",
        "cpu": "one",
        "targets": [target],
        "driver": described_driver(found),
        "device": found.identity,
        "layers": {target: found.layers_text},
        "validation": False,
    }
    opened = ProcessTarget(
        target, f"tests.fakes:{runner}", driver=recorded_driver(target, found), time_limit=30.0
    )
    return Machine(opened, described, found)


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
