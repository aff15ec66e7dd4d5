"""Listens to the backend while it converts, and keeps which TOSA graph each VGF was made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from executorch.backends.arm.vgf import backend


@contextmanager
def conversions() -> Iterator[dict[bytes, bytes]]:
    """Yield a dict that fills with TOSA graphs by VGF.

    The backend's dump of intermediate artifacts would do, but names them by delegation tag, which two
    delegates can have in common: then only the last one's files are left.
    """
    graphs: dict[bytes, bytes] = {}
    original = backend.vgf_compile

    def vgf_compile(tosa_flatbuffer: bytes, *arguments: Any, **keywords: Any) -> bytes:
        vgf: bytes = original(tosa_flatbuffer, *arguments, **keywords)
        graphs[bytes(vgf)] = bytes(tosa_flatbuffer)
        return vgf

    backend.vgf_compile = vgf_compile
    try:
        yield graphs
    finally:
        backend.vgf_compile = original
