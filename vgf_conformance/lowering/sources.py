"""Digests of everything that lowering executes, by content, at the price of a look at each file's status.

A backend developer changes a pass, an observer or a shader without changing a version. So each installed
package counts with the content of all its files, wherever it is installed from. What a file's content was is
remembered by its status (size, times, inode), as git does in its index: only what changed is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from vgf_conformance import files
from vgf_conformance.vocabulary import UserError

#: Folders that hold nothing that is executed.
_PASSED_OVER = {"__pycache__", "include", ".git"}

#: Seconds within which a file may change again under the same time stamp.
_GRANULARITY = 2.0

#: A file's size, time stamps (ns) and inode: where all are the same, so is the content.
_Status = tuple[int, int, int, int]


class SourceIndex:
    """Digests of packages; ``file`` remembers those of their files from one process to the next."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _load(file)
        self._changed = False

    def digest(self, package: str) -> str:
        """The digest of all files of an installed package, in hexadecimal; raises ModuleNotFoundError."""
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"no package called {package}")
        digest = hashlib.sha256()
        for root in spec.submodule_search_locations:
            for entry in sorted(_files(root), key=lambda entry: entry.path):
                digest.update(f"{os.path.relpath(entry.path, root)}\0{self._of(entry)}\n".encode())
        return digest.hexdigest()[:16]

    def save(self) -> None:
        """Write what was learned; a folder that cannot be written costs time on the next start, no more."""
        if self._changed:
            with contextlib.suppress(UserError):
                files.write(self._file, json.dumps(self._known, separators=(",", ":")))

    def _of(self, entry: os.DirEntry[str]) -> str:
        found = entry.stat()
        status: _Status = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        known = self._known.get(entry.path)
        if known is not None and known[0] == [*status]:
            return known[1]
        content = _content_digest(entry.path)
        if time.time() - found.st_mtime > _GRANULARITY:
            self._known[entry.path] = ([*status], content)
            self._changed = True
        return content


def _load(file: Path) -> dict[str, tuple[list[int], str]]:
    try:
        known = json.loads(file.read_bytes())
        return {path: ([*status], digest) for path, (status, digest) in known.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        # Missing, or half written by something else: every file is read again.
        return {}


def _content_digest(path: str) -> str:
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _files(root: str) -> Iterator[os.DirEntry[str]]:
    """The files below ``root``; an editable installation may reach its folders through links."""
    seen: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name not in _PASSED_OVER:
                        waiting.append(entry.path)
                elif entry.is_file():
                    yield entry
