"""What a run was done with: versions, host, targets and the driver underneath."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgf_conformance.targets.vulkan import choose_driver, driver_environment, emulation_environment

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


def environment(targets: Sequence[str], driver: str | None) -> dict[str, Any]:
    """Describe this machine for the record; raises UserError where a target cannot be had here."""
    described: dict[str, Any] = {
        "versions": package_versions(),
        "python": platform.python_version(),
        "host": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "cpu": _processor(),
        "targets": list(targets),
    }
    if "emulation" in targets:
        chosen = choose_driver(driver)
        with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
            emulation_environment(chosen, Path(folder))
        described["driver"] = {"manifest": chosen.name, **_device(driver_environment(chosen))}
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
    """The processor's model, on which eager PyTorch's last bits depend; empty where Linux does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return ""


def _device(variables: dict[str, str]) -> dict[str, str]:
    """The first device that the driver has, asked in a process of its own: a driver may crash."""
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "vgf_conformance.targets.probe"],
            env={**os.environ, **variables},
            capture_output=True,
            check=True,
            timeout=60,
        )
        device = json.loads(answer.stdout)["devices"][0]
    except (subprocess.SubprocessError, ValueError, LookupError) as error:
        return {"device": f"unknown ({type(error).__name__})"}
    driver = " ".join(filter(None, [device.get("driver"), device.get("driver_info")]))
    return {"device": device["name"], "driver": driver, "api": f"Vulkan {device['api']}"}
