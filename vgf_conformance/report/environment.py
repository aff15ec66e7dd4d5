"""The environment of a run, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def header(environment: Mapping[str, Any]) -> list[str]:
    """Lines for the top of a terminal run: versions, targets, driver."""
    versions = environment.get("versions", {})
    lines = [f"vgf-conformance {versions.get('vgf-conformance', '')}: " + _listed(versions)]
    lines.append(f"targets: {', '.join(environment.get('targets', []))}")
    driver = environment.get("driver")
    if driver:
        lines.append("driver: " + ", ".join(f"{value}" for value in driver.values() if value))
    lines += [f"{target}: {layers}" for target, layers in environment.get("layers", {}).items()]
    if runtime := environment.get("runtime"):
        lines.append(f"programs run in {runtime}")
    if environment.get("validation"):
        lines.append("the Vulkan validation layer watches the driver")
    if unused := environment.get("unused devices"):
        lines.append(f"not used, though the driver has them: {', '.join(unused)}")
    return lines


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items() if name != "vgf-conformance")
