"""Writes a scenario: a folder that the ML SDK's stand-alone scenario runner runs on any device.

The folder holds the VGF, its inputs as numpy files and ``scenario.json``, the runner's own format:
``scenario_runner --scenario scenario.json --output DIR`` leaves the outputs in DIR.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vgf_conformance import files
from vgf_conformance.formats.arrays import npy
from vgf_conformance.formats.vgf import Vgf, VgfTensor, read_vgf
from vgf_conformance.untrusted import Malformed

#: The Vulkan format of a tensor's elements, by dtype.
FORMATS = {
    "bool": "VK_FORMAT_R8_BOOL_ARM",
    "uint8": "VK_FORMAT_R8_UINT",
    "int8": "VK_FORMAT_R8_SINT",
    "uint16": "VK_FORMAT_R16_UINT",
    "int16": "VK_FORMAT_R16_SINT",
    "uint32": "VK_FORMAT_R32_UINT",
    "int32": "VK_FORMAT_R32_SINT",
    "int64": "VK_FORMAT_R64_SINT",
    "float16": "VK_FORMAT_R16_SFLOAT",
    "bfloat16": "VK_FORMAT_R16_SFLOAT_FPENCODING_BFLOAT16_ARM",
    "float8_e4m3fn": "VK_FORMAT_R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM",
    "float8_e5m2": "VK_FORMAT_R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM",
    "float32": "VK_FORMAT_R32_SFLOAT",
}


def write_scenario(folder: Path, vgf: bytes, inputs: Sequence[NDArray[Any]]) -> Path:
    """Write ``graph.vgf``, ``input0.npy`` ... and ``scenario.json``, whose path is returned.

    ``inputs`` are in the VGF's order and shapes; the outputs will be ``output0.npy`` ... Raises
    Malformed for a dtype that no Vulkan format holds.
    """
    files.write(folder / "graph.vgf", vgf)
    for number, array in enumerate(inputs):
        files.write(folder / f"input{number}.npy", npy(array))
    path = folder / "scenario.json"
    files.write(path, scenario(vgf))
    return path


def scenario(vgf: bytes) -> str:
    """The text of ``scenario.json`` for a VGF.

    Raises Malformed for what is no VGF, and for a dtype that no Vulkan format holds.
    """
    return scenario_of(read_vgf(vgf))


def scenario_of(read: Vgf) -> str:
    """The same for a VGF that was read already."""
    tensors = [
        *(_tensor(f"input{number}", tensor, "readonly") for number, (_, tensor) in enumerate(read.inputs)),
        *(_tensor(f"output{number}", tensor, "writeonly") for number, (_, tensor) in enumerate(read.outputs)),
    ]
    slots = [*read.inputs, *read.outputs]
    bindings = [
        {"set": 0, "id": slot, "resource_ref": tensor["tensor"]["uid"]}
        for (slot, _), tensor in zip(slots, tensors, strict=True)
    ]
    document = {
        "commands": [{"dispatch_graph": {"graph_ref": "graph", "bindings": bindings}}],
        "resources": [{"graph": {"uid": "graph", "src": "graph.vgf"}}, *tensors],
    }
    return json.dumps(document, indent=2) + "\n"


def _tensor(name: str, tensor: VgfTensor, access: str) -> dict[str, Any]:
    if tensor.dtype not in FORMATS:
        raise Malformed(f"no Vulkan format of the scenario runner holds {tensor.dtype}")
    file = {"src" if access == "readonly" else "dst": f"{name}.npy"}
    return {
        "tensor": {
            "uid": name,
            "dims": list(tensor.shape),
            "format": FORMATS[tensor.dtype],
            "shader_access": access,
            **file,
        }
    }
