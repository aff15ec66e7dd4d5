"""The Vulkan validation layer: where it is, and what it said."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

from vgf_conformance.vocabulary import UserError

LAYER = "VK_LAYER_KHRONOS_validation"
_MANIFEST = "VkLayer_khronos_validation.json"
_FOLDERS = ("/etc", "/usr/local/share", "/usr/share")

#: Each case's own errors, whatever the cases before it gave: by default a message is told ten times only.
_SETTINGS = """\
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error
khronos_validation.log_filename = stdout
khronos_validation.enable_message_limit = false
"""

#: As versions 1.3.239 and 1.4 write it: the text stands after the last bar, or in the next line.
_MESSAGE = re.compile(
    r"Validation Error: \[ (?P<name>[\w.-]+) \][^\n]{0,2000}?MessageID = 0x[0-9a-f]+\s*\|?\s*"
    r"(?P<text>.*?)(?:The Vulkan spec states|\n|\Z)",
    re.DOTALL,
)

#: How many different messages of one call are kept.
_MOST = 20


def find_layer() -> Path:
    """The folder of the layer's manifest: in VK_LAYER_PATH, or where systems keep it; raises UserError."""
    named = os.environ.get("VK_LAYER_PATH", "").split(os.pathsep)
    home = os.environ.get("XDG_DATA_HOME") or f"{os.environ.get('HOME', '')}/.local/share"
    usual = [f"{base}/vulkan/explicit_layer.d" for base in (home, *_FOLDERS)]
    for folder in (*filter(None, named), *usual):
        if (Path(folder) / _MANIFEST).is_file():
            return Path(folder).absolute()
    raise UserError(
        f"there is no Vulkan validation layer ({_MANIFEST}): apt-get install -y vulkan-validationlayers, or "
        "name its folder in VK_LAYER_PATH"
    )


def write_settings(folder: Path) -> Path:
    """Write the layer's settings into ``folder``; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vk_layer_settings.txt"
    path.write_text(_SETTINGS, "utf-8")
    return path


def messages(text: str) -> list[str]:
    """What the layer says in a worker's output: each message once, with how often it was said."""
    said = Counter(f"{found['name']}: {found['text'].strip()}" for found in _MESSAGE.finditer(text))
    return [f"validation: {message} ({count} times)" for message, count in said.most_common(_MOST)]
