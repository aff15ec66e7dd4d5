"""What a qualification runs on: the one place where this package asks about drivers and devices."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgf_conformance.targets.base import Target
from vgf_conformance.targets.environment import environment
from vgf_conformance.targets.process import emulation_target
from vgf_conformance.targets.vulkan import choose_driver


@dataclass(frozen=True)
class Machine:
    """A target that is open, and what is said of it.

    ``described`` is the environment for run lines, ``device`` the device's identity, ``layers`` the
    emulation layers over it in words, ``capabilities`` what the driver says of itself.
    """

    target: Target
    described: dict[str, Any]
    device: dict[str, str | int]
    layers: str
    capabilities: dict[str, Any]


@contextmanager
def open_machine(driver: str | None) -> Iterator[Machine]:
    """Open the emulation layers over ``driver``; raises UserError where it cannot be had."""
    described = environment(["emulation"], driver)
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as layers:
        target = emulation_target(choose_driver(driver), Path(layers))
        try:
            yield Machine(
                target,
                described,
                device_of(described),
                "emulation layers: graph and tensor",
                described["driver"],
            )
        finally:
            target.close()


def device_of(run: Mapping[str, Any]) -> dict[str, str | int]:
    """The identity of the device that a run line names; empty where it names none."""
    driver = run.get("driver")
    if not isinstance(driver, dict) or "device" not in driver:
        return {}
    return {"name": driver["device"], "driver": driver.get("driver", ""), "api": driver.get("api", "")}


def operating_system() -> str:
    """The system's name and kernel."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release()} {platform.machine()}"
