"""The wheel's ExecuTorch runtime, with a backend library that is loaded before it."""

from __future__ import annotations

import ctypes

from executorch.runtime import Runtime


def open_runtime(library: str | None) -> Runtime:
    """The runtime of this process; raises OSError where ``library`` cannot be loaded.

    A library that brings its own copy of the runtime's registry stands first in the order of symbols, so
    that the wheel's runtime finds what it registers: hence RTLD_GLOBAL, and before anything is asked.
    """
    if library:
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    runtime = Runtime.get()
    # Quantised programs quantise their inputs with operators that the wheel keeps in a library of its own.
    import executorch.kernels.quantized  # noqa: F401

    return runtime
