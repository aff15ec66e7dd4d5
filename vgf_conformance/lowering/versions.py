"""What lowering was done with: versions of every tool between a module and its VGF, and their contents."""

from __future__ import annotations

import functools
import importlib.metadata

from vgf_conformance.lowering.cache import SOURCES, default_folder
from vgf_conformance.lowering.sources import SourceIndex

#: What lowering executes, by distribution, with the packages whose files count; those of the libraries
#: below it, which nobody edits to change the backend, count with their version.
_EXECUTED: dict[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "executorch": ("executorch",),
    "torchao": ("torchao",),
    "ai-ml-sdk-model-converter": ("model_converter",),
    "tosa-tools": ("serializer", "tosa", "tosa_serializer"),
    "flatbuffers": (),
    "numpy": (),
    "sympy": (),
}

#: What of this harness takes part.
_OURS = ("vgf_conformance.formats", "vgf_conformance.lowering")


@functools.cache
def versions() -> dict[str, str]:
    """Installed versions by distribution, and a digest of all files for each package (``files of NAME``)."""
    index = SourceIndex(default_folder() / SOURCES)
    found = {name: importlib.metadata.version(name) for name in _EXECUTED}
    packages = [package for several in _EXECUTED.values() for package in several]
    found |= {f"files of {package}": index.digest(package) for package in (*packages, *_OURS)}
    index.save()
    return found
