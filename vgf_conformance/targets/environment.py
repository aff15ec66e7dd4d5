"""What a run was done with: versions, host, targets and the driver underneath."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgf_conformance.targets.capabilities import Platform, platforms
from vgf_conformance.targets.runtime import require_backend
from vgf_conformance.targets.runtime_choice import INSTALLED, RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import PROGRAM_TARGET

_PACKAGES = (
    "vgf-conformance",
    "torch",
    "executorch",
    "torchao",
    "ai-ml-sdk-model-converter",
    "ai-ml-emulation-layer-for-vulkan",
    "ai-ml-sdk-scenario-runner",
    "ai-ml-sdk-vgf-library",
    "tosa-tools",
    "numpy",
)

_CPUINFO = Path("/proc/cpuinfo")


def environment(
    targets: Sequence[str], choice: DriverChoice, runtime: RuntimeChoice = INSTALLED
) -> dict[str, Any]:
    """Describe this machine for the record; raises UserError where a target cannot be had here.

    The ``driver`` is that of the last of ``targets`` that has one, and so is the ``device``, its identity;
    ``layers`` says by target which emulation layers are over it, ``validation`` whether the validation layer
    is below them, ``unused devices`` which further devices the driver has, ``runtime`` what executes
    programs.
    """
    described: dict[str, Any] = {
        "versions": package_versions(),
        "python": platform.python_version(),
        "host": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "cpu": _processor(),
        "targets": list(targets),
    }
    found = platforms(targets, choice)
    for chosen in found.values():
        described["driver"] = described_driver(chosen)
        described["device"] = chosen.identity
        if chosen.others:
            described["unused devices"] = list(chosen.others)
    if found:
        described["layers"] = {target: chosen.layers_text for target, chosen in found.items()}
        described["validation"] = choice.validation
    if below := found.get(PROGRAM_TARGET):
        require_backend(runtime, below)
        described["runtime"] = str(runtime)
    return described


def package_versions() -> dict[str, str]:
    """Installed versions of everything between a module and a verdict."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    """The processor, on which eager PyTorch's last bits depend; empty where Linux does not say.

    Virtual ones of different makes may share a name: family, model and abilities tell them apart.
    """
    try:
        first = _CPUINFO.read_text("utf-8").partition("\n\n")[0]
    except OSError:
        return ""
    said = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in first.splitlines())}
    if "model name" not in said:
        return ""
    abilities = zlib.crc32(" ".join(sorted(said.get("flags", "").split())).encode())
    return f"{said['model name']} ({said.get('cpu family')}, {said.get('model')}, flags {abilities:08x})"


def described_driver(chosen: Platform) -> dict[str, str]:
    """What a run line says of the driver."""
    device = chosen.device
    driver = " ".join(filter(None, [device.driver, device.driver_info]))
    return {
        "manifest": chosen.driver.name,
        "device": device.name,
        "driver": driver,
        "api": f"Vulkan {device.api}",
    }
