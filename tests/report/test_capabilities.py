"""The capability report as text."""

from __future__ import annotations

import dataclasses

from vgf_conformance.report.capabilities import capability_text
from vgf_conformance.targets.capabilities import Device, Platform, platform
from vgf_conformance.targets.vulkan import Driver, DriverChoice


def rows(text: str) -> dict[str, str]:
    """What stands behind each name; names hold no two blanks in a row."""
    pairs = [line.strip().partition("  ") for line in text.splitlines()]
    return {name: value.strip() for name, _, value in pairs}


def test_all_that_a_device_says_is_told() -> None:
    text = capability_text(platform("emulation", DriverChoice("lavapipe")).to_json())
    found = rows(text)
    assert found["emulation layers"] == "graph, tensor"
    assert found["VK_ARM_data_graph"] == "1"
    assert found["shaderInt64"] == found["tensors"] == "yes"
    assert int(found["maxTensorDimensionCount"]) >= 4
    assert "bfloat16" in text
    assert found["TOSA.001000.1 (queue family 0)"] == "Emulation Layer: conformant, level 8K"


def test_a_device_that_says_little() -> None:
    """Older than Vulkan 1.2, and not alone."""
    device = Device("Old", "discrete", "1.1.0", 0x10, 0x20, "1.0.0", {}, {})
    known = platform("vulkan", DriverChoice("lavapipe", "none"))
    old = Platform(Driver("old", known.driver.manifest), (), device, ("Older",), "1.3.239")
    found = rows(capability_text(old.to_json()))
    assert found["device UUID"] == found["conformance"] == "unknown"
    assert found["not used"] == "Older"
    assert found["vendor, device"] == "0x0010, 0x0020"
    assert found["emulation layers"] == "none"


def test_claims_of_several_kinds() -> None:
    operation = {
        "name": "TOSA.001000.1",
        "profiles": {"Pro-INT": ["accelerated", "conformant"], "Pro-FP": []},
        "extensions": {"EXT-INT16": ["experimental"]},
        "level": "8K",
    }
    known = platform("vulkan", DriverChoice("lavapipe", "none"))
    queues = ({"count": 1, "does": ["data graph"], "operations": [operation]},)
    device = dataclasses.replace(known.device, queues=queues)
    found = rows(capability_text(dataclasses.replace(known, device=device).to_json()))
    assert found["TOSA.001000.1 (queue family 0)"] == (
        "Pro-INT: accelerated and conformant, Pro-FP: no quality, EXT-INT16: experimental, level 8K"
    )
