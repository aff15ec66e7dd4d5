"""Says which backends the ExecuTorch runtime has.

Called as ``python -m vgf_conformance.runtime.probe BACKEND [LIBRARY]``.

Prints one JSON object: ``fault`` (why the library does not load, or empty), ``registered`` (the names of all
backends) and ``available`` (whether BACKEND says that it can run here). A process of its own: a library may
crash while it is loaded.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from vgf_conformance.runtime.loading import open_runtime


def probe(backend: str, library: str | None) -> dict[str, Any]:
    """The answer as plain data."""
    try:
        registry = open_runtime(library).backend_registry
    except OSError as error:
        return {"fault": str(error), "registered": [], "available": False}
    registered = sorted(registry.registered_backend_names)
    available = backend in registered and bool(registry.is_available(backend))
    return {"fault": "", "registered": registered, "available": available}


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)))
