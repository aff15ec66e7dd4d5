"""The wheel's ExecuTorch runtime, with a backend library that is loaded before it."""

from __future__ import annotations

import ctypes
from typing import Any


def open_runtime(library: str | None) -> Any:
    """The ``executorch.runtime.Runtime`` of this process; raises OSError where ``library`` cannot be loaded.

    A library that brings its own copy of the runtime's registry stands first in the order of symbols, so
    that the wheel's runtime finds what it registers: hence RTLD_GLOBAL, and before executorch is imported.
    """
    if library:
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    from executorch.runtime import Runtime

    return Runtime.get()
