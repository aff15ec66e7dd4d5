"""What a qualification runs on: the one place where this package asks about drivers and devices."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgf_conformance.targets import capabilities
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.capabilities import Device, Platform
from vgf_conformance.targets.environment import environment
from vgf_conformance.targets.process import vulkan_target
from vgf_conformance.targets.vulkan import Driver, DriverChoice


@dataclass(frozen=True)
class Machine:
    """A target that is open, and what is said of it.

    ``described`` is the environment for run lines, ``device`` the device's identity, ``layers`` the
    emulation layers over it in words, ``capabilities`` what the driver says of itself.
    """

    target: Target
    described: dict[str, Any]
    device: dict[str, Any]
    layers: str
    capabilities: dict[str, Any]


@contextmanager
def open_machine(target: str, choice: DriverChoice) -> Iterator[Machine]:
    """Open ``target`` over the driver of ``choice``; raises UserError where it cannot be had."""
    found = capabilities.platform(target, choice)
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as layers:
        opened = vulkan_target(target, found, Path(layers))
        try:
            described = environment([target], choice)
            yield Machine(opened, described, found.identity, found.layers_text, found.to_json())
        finally:
            opened.close()


def device_of(run: Mapping[str, Any]) -> Any:
    """The identity of the device that a run line names; None where it names none."""
    return run.get("device")


def layers_of(run: Mapping[str, Any], target: str) -> Any:
    """The emulation layers, in words, that a run line names for a target; None where it names none."""
    layers = run.get("layers")
    return layers.get(target) if isinstance(layers, dict) else None


def platform_of(report: Mapping[str, Any]) -> Platform:
    """The platform that a capability report describes, for a report that the schema accepts."""
    known = {name: report["device"].get(name, default) for name, default in _UNSAID.items()}
    device = Device(**known)
    return Platform(Driver("", Path()), tuple(report["layers"]), device, (), "")


#: A device of which nothing is said.
_UNSAID: dict[str, Any] = {
    **dict.fromkeys(("name", "kind", "api", "driver_version"), ""),
    **dict.fromkeys(("vendor_id", "device_id"), 0),
    **{name: {} for name in ("extensions", "limits", "features")},
    "formats": (),
}


def operating_system() -> str:
    """The system's name and kernel."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release()} {platform.machine()}"
