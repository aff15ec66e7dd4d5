"""Versions of every tool between a module and its VGF, and a digest of the backend's own sources."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
from pathlib import Path

_PACKAGES = (
    "torch",
    "executorch",
    "torchao",
    "ai-ml-sdk-model-converter",
    "tosa-tools",
)


@functools.cache
def versions() -> dict[str, str]:
    """Installed versions by package, and digests of the sources that make an artifact.

    The digests make the cache right for backend developers, who change a pass without changing a
    version, and for the harness itself.
    """
    found = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {
        **found,
        "backend sources": _digest_of_sources("executorch.backends.arm"),
        "lowering sources": _digest_of_sources("vgf_conformance.lowering"),
    }


def _digest_of_sources(package: str) -> str:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    digest = hashlib.sha256()
    for folder in spec.submodule_search_locations:
        for path in sorted(Path(folder).rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
