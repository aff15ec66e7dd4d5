"""What a driver can do, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tabulate import tabulate

from vgf_conformance.terminal import one_line


def capability_text(report: Mapping[str, Any]) -> str:
    """A capability report (``Platform.to_json``) as sections of a terminal's width, more or less."""
    sections = {
        "Driver": _table(_driver(report)),
        "Extensions": _table(sorted(report["device"]["extensions"].items())),
        "Features": _table((name, _yes(has)) for name, has in _features(report["device"])),
        "Limits": _table(sorted(report["device"]["limits"].items())),
        "Tensors in data graphs": f"  {', '.join(report['device']['formats']) or 'none'}",
        "Queue families": _table(_queues(report["device"]["queues"])),
        "Data-graph operations": _table(_operations(report["device"]["queues"])) or "  none",
    }
    return "\n\n".join(f"{title}\n{content}" for title, content in sections.items())


def _driver(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    device = report["device"]
    yield "manifest", report["manifest"]
    yield "device", f"{device['name']} ({device['kind']})"
    if report["others"]:
        yield "not used", ", ".join(report["others"])
    yield (
        "driver",
        " ".join(filter(None, (device["driver"], device["driver_info"], device["driver_version"]))),
    )
    yield "vendor, device", f"{device['vendor_id']:#06x}, {device['device_id']:#06x}"
    yield "device UUID", device["device_uuid"] or "unknown"
    yield "driver UUID", device["driver_uuid"] or "unknown"
    yield "Vulkan", f"{device['api']} (loader {report['loader']})"
    yield "conformance", device["conformance"] or "unknown"
    yield "emulation layers", ", ".join(layer.lower() for layer in report["layers"]) or "none"


def _features(device: Mapping[str, Any]) -> Iterable[tuple[str, bool]]:
    return sorted({**device["features"], **device["tensor_features"]}.items())


def _queues(queues: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int, str]]:
    for number, queue in enumerate(queues):
        yield number, queue["count"], ", ".join(queue["does"])


def _operations(queues: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for number, queue in enumerate(queues):
        for operation in queue["operations"]:
            yield (
                f"{operation['name']} (queue family {number})",
                ", ".join(_claims(operation)) or "nothing claimed",
            )


def _claims(operation: Mapping[str, Any]) -> Iterator[str]:
    """The quality that the driver claims for each TOSA profile and extension, and the level."""
    claimed = {**operation.get("profiles", {}), **operation.get("extensions", {})}
    for name, qualities in claimed.items():
        yield f"{name}: {' and '.join(qualities) or 'no quality'}"
    if "level" in operation:
        yield f"level {operation['level']}"


def _yes(has: bool) -> str:
    return "yes" if has else "no"


def _table(rows: Iterable[tuple[object, ...]]) -> str:
    # What a driver says of itself must not pass for further lines.
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    table = tabulate(cells, tablefmt="plain", disable_numparse=True)
    return "\n".join(f"  {line.rstrip()}" for line in table.splitlines())
