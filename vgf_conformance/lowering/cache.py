"""The disk cache of lowered artifacts, addressed by content.

An entry is a SHA-256 of its payload followed by the payload, written to a temporary file
and renamed: a reader sees a whole entry or none. A damaged entry, an unreadable folder or
a full disk costs the time of lowering again, never a result, and is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs

from vgf_conformance import files
from vgf_conformance.vocabulary import UserError

_DIGEST = hashlib.sha256().digest_size

#: The index of installed files, beside the entries.
SOURCES = "sources.json"


def default_folder() -> Path:
    """Where the cache lies: ``VGF_CONFORMANCE_CACHE``, else the user's cache folder."""
    chosen = os.environ.get("VGF_CONFORMANCE_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("vgf-conformance"))


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """Give this process, and those that it starts, an empty cache that is gone afterwards.

    What is known of installed files (see ``sources``) is taken along: reading them all again takes seconds.
    """
    variable, usual = "VGF_CONFORMANCE_CACHE", default_folder()
    before = os.environ.get(variable)
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-cache-") as folder:
        with contextlib.suppress(OSError):
            shutil.copy(usual / SOURCES, folder)
        os.environ[variable] = folder
        try:
            yield
        finally:
            os.environ.pop(variable)
            if before is not None:
                os.environ[variable] = before


class Cache:
    """Stores picklable values by key in ``folder``; only what this harness wrote is ever read."""

    def __init__(self, folder: Path, say: Callable[[str], None] = warnings.warn) -> None:
        """``say`` is told, in words, of what is damaged or cannot be written."""
        self._folder = folder
        self._say = say
        self._writable = True

    def get(self, key: str) -> Any | None:
        """The value stored under ``key``; None where there is none or it is corrupt."""
        try:
            entry = self._path(key).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(entry[_DIGEST:]).digest() != entry[:_DIGEST]:
            self._warn(f"entry {key[:16]} is damaged")
            return None
        try:
            return pickle.loads(entry[_DIGEST:])  # noqa: S301 - checked against its own digest
        except (pickle.UnpicklingError, AttributeError, ImportError, EOFError, TypeError):
            self._warn(f"entry {key[:16]} was written by another version")
            return None

    def put(self, key: str, value: Any) -> None:
        """Store ``value``; a folder that cannot be written is reported once and then left alone."""
        payload = pickle.dumps(value)
        self._write(self._path(key), hashlib.sha256(payload).digest() + payload)

    def keep(self, name: str, content: bytes) -> Path | None:
        """Write a plain file for people, named by its content; None where the folder cannot be written."""
        path = self._folder / "kept" / f"{hashlib.sha256(content).hexdigest()[:16]}-{name}"
        return path if self._write(path, content) else None

    def _warn(self, what: str) -> None:
        self._say(f"the artifact cache {self._folder}: {what}; it is made again")

    def _write(self, path: Path, content: bytes) -> bool:
        if not self._writable:
            return False
        try:
            files.write(path, content)
        except UserError as error:
            self._writable = False
            self._say(f"the artifact cache {self._folder} takes no more entries: {error}")
        return self._writable

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key
