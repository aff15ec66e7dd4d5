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
from vgf_conformance.targets.vulkan import LAYERS, Driver, DriverChoice

_BOTH = tuple(LAYERS)
#: The emulation layers that a target may have, from the application down: a driver's own graphs without
#: its own tensors are of no use, so no run has the tensor layer alone.
_LAYERS: dict[str, tuple[tuple[str, ...], ...]] = {"emulation": (_BOTH,), "vulkan": ((), ("Graph",), _BOTH)}


@dataclass(frozen=True)
class Machine:
    """A target that is open on ``platform``; ``described`` is the environment for run lines."""

    target: Target
    described: dict[str, Any]
    platform: Platform


@contextmanager
def open_machine(target: str, choice: DriverChoice) -> Iterator[Machine]:
    """Open ``target`` over the driver of ``choice``; raises UserError where it cannot be had."""
    found = capabilities.platform(target, choice)
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as layers:
        opened = vulkan_target(target, found, Path(layers))
        try:
            yield Machine(opened, environment([target], choice), found)
        finally:
            opened.close()


def platform_of(report: Mapping[str, Any]) -> Platform:
    """The platform of a capability report that the schema accepts.

    Raises ValueError where the report does not agree with itself, or is not one of this version's.
    """
    try:
        found = Platform(
            Driver(report["driver"], Path(report["manifest"])),
            tuple(report["layers"]),
            Device(**report["device"]),
            tuple(report["others"]),
            report["loader"],
        )
    except TypeError as error:
        raise ValueError("$.device: not what this version says of a device") from error
    again = found.to_json()
    if again["identity"] != report["identity"]:
        raise ValueError(f"$.identity: {report['identity']} is not that of its device, {again['identity']}")
    if again != report:
        name = next(name for name in {**again, **report} if again.get(name) != report.get(name))
        raise ValueError(f"$.{name}: not what this version writes")
    return found


def useless(target: str, found: Platform) -> str | None:
    """Why no case can run on ``target``, or never did: layers and extensions; None where all is well."""
    missing = [extension for extension in LAYERS.values() if extension not in found.device.extensions]
    if found.layers not in _LAYERS[target]:
        return f"no run on the target {target} has these layers: {' and '.join(found.layers) or 'none'}"
    if missing:
        words = f"{' and '.join(missing)} (with {found.layers_text})"
        return f"{found.device.name} lacks {words}, so no case can run"
    return None


def operating_system() -> str:
    """The system's name and kernel."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release()} {platform.machine()}"
