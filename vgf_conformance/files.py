"""Files that are kept are written whole or not at all: beside their place first, then renamed.

A full disk, a kill or a fault in what writes leaves the file that was there before.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vgf_conformance.untrusted import FILE, BadFile, is_file, is_folder, kind_of
from vgf_conformance.vocabulary import UserError

#: What a file is called, up to its chance rest, for as long as it is not whole; a kill may leave one.
PARTIAL = ".partial-"


def write(path: Path, content: bytes | str) -> None:
    """Write a file, text in UTF-8; raises UserError as ``replacing`` does."""
    # Half of a surrogate pair has no encoding.
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    with replacing(path) as file:
        file.write(data)


def append(path: Path, text: str) -> None:
    """Write text, in UTF-8, at the end of a file; raises UserError where that cannot be done."""
    descriptor = appending(path)
    try:
        with os.fdopen(descriptor, "ab") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def make_folder(path: Path) -> None:
    """Make a folder, and those above it; raises UserError where that cannot be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UserError(f"{path} is not a folder: name another") from error
    except OSError as error:
        raise UserError(f"cannot make the folder {path}: {error.strerror or error}") from error


def appending(path: Path) -> int:
    """A descriptor that appends to the regular file ``path`` and reads it, made where there is none.

    Raises BadFile where something else has the name, or the system refuses.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    kind = kind_of(path)
    if kind not in (FILE, None):
        raise BadFile(path, f"is {kind}, not a regular file")
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadFile(path, "is not a regular file")
    return descriptor


def require_replaceable(path: Path) -> None:
    """Raise UserError where ``path`` is something that no file may replace: for looking before any work."""
    kind = kind_of(path)
    if kind not in (FILE, None):
        raise UserError(f"cannot write {path}: it is {kind}, not a regular file; name another")


def require_place(path: Path, suffix: str) -> None:
    """Raise UserError where no file that ends in ``suffix`` may be called ``path``: before any work.

    So nothing of another kind is replaced by mistake.
    """
    require_replaceable(path)
    if path.suffix != suffix:
        raise UserError(f"cannot write {path}: name a file that ends in {suffix}")


def require_folder(path: Path) -> None:
    """Raise UserError where ``path`` is something else than a folder: before any work."""
    if kind_of(path) is not None and not is_folder(path):
        raise UserError(f"{path} is not a folder: name another")


def require_not_read(path: Path, read: Iterable[Path]) -> None:
    """Raise UserError where writing ``path`` would replace one of the files that are ``read``."""
    if kind_of(path) == FILE and any(is_file(other) and path.samefile(other) for other in read):
        raise UserError(f"cannot write {path}: it is what is read; name another")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of ``path`` at the end of the block; its folder is made.

    Raises UserError where that cannot be done, or where something else than a regular file has the name: a
    link or a device would be replaced instead of written to.
    """
    require_replaceable(path)
    temporary = ""
    try:
        make_folder(path.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=PARTIAL)
        with os.fdopen(descriptor, "w+b") as file:
            # mkstemp's own mode is for its owner alone.
            os.fchmod(descriptor, 0o644)
            yield file
        Path(temporary).replace(path)
        temporary = ""
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
