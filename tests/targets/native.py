"""Makes lavapipe look to a process as if its tensors and data graphs were its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vgf_conformance.targets import vulkan

#: The loader looks for implicit layers in these folders' subfolders, in this order.
_FOLDERS = {"Graph": "XDG_CONFIG_HOME", "Tensor": "XDG_DATA_HOME"}


def make_native(layers: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install emulation layers as implicit ones, which the loader puts over every driver by itself."""
    variables = vulkan.layered_environment(vulkan.choose_driver("lavapipe"), layers, folder / "explicit")
    for layer, source in zip(layers, variables["VK_LAYER_PATH"].split(os.pathsep), strict=True):
        (manifest,) = Path(source).glob("*.json")
        content = json.loads(manifest.read_text())
        # Without this the loader takes no implicit layer.
        content["layer"]["disable_environment"] = {f"NO_{layer.upper()}": "1"}
        target = folder / layer / "vulkan" / "implicit_layer.d" / manifest.name
        target.parent.mkdir(parents=True)
        target.write_text(json.dumps(content))
        monkeypatch.setenv(_FOLDERS[layer], str(folder / layer))
