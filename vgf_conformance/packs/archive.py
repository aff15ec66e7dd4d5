"""The file that holds a pack: a zip archive, the same bytes for the same members, read without trust.

Members are ``manifest.json`` and ``objects/...``. The archive's comment is the SHA-256 of all that stands
before it, so that no byte of the file can change unseen; who means to deceive can write another one:
what to trust is the SHA-256 of the whole file, as its publisher gives it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType

from vgf_conformance.vocabulary import UserError

MANIFEST = "manifest.json"

#: Bytes that a member, and that all of them, may have when unpacked.
MEMBER_LIMIT = 1 << 30
TOTAL_LIMIT = 8 << 30
#: How many times larger than the file its content may be, beyond the first so many bytes: the tensors of
#: real packs shrink to a third or so.
RATIO_LIMIT = 100
RATIO_FREE = 16 << 20

_COMMENT = "sha256:{}"
_COMMENT_LENGTH = len(_COMMENT.format("0" * 64))
#: What zipfile raises on a damaged archive: it does not say, and was found by damaging some.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
    OSError,
)


def require_replaceable(path: Path) -> None:
    """Raise UserError where ``path`` is something that a pack must not replace, before any work is done."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no file that a pack could replace: name another")


def write_archive(path: Path, manifest: bytes, members: Mapping[str, Path]) -> None:
    """Write ``path`` with the manifest first and the members, files by name, after it in order of names.

    An existing file is replaced once all is written. Raises UserError where that cannot be done.
    """
    require_replaceable(path)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        os.close(descriptor)
        _write(Path(temporary), manifest, members)
        # mkstemp's own mode is for its owner alone.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _write(path: Path, manifest: bytes, members: Mapping[str, Path]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        _add(archive, MANIFEST, manifest)
        for name in sorted(members):
            _add(archive, name, members[name].read_bytes())
        archive.comment = _COMMENT.format("0" * 64).encode()
    with path.open("r+b") as file:
        digest = _digest(path, path.stat().st_size - _COMMENT_LENGTH)
        file.seek(-_COMMENT_LENGTH, os.SEEK_END)
        file.write(_COMMENT.format(digest).encode())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
    archive.writestr(info, content, zipfile.ZIP_DEFLATED, compresslevel=9)


def _digest(path: Path, size: int) -> str:
    """The SHA-256 of the first ``size`` bytes of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (block := file.read(min(size, 1 << 20))):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


class Archive:
    """An archive open for reading. Nothing is extracted: members are read into memory, one at a time."""

    def __init__(self, path: Path) -> None:
        """Open it; raises UserError where it is none, or has members that no pack has."""
        self.path = path
        if not path.is_file():
            raise UserError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
        try:
            self._zip = zipfile.ZipFile(path)
        except PermissionError as error:
            raise UserError(f"{path}: {error.strerror}") from error
        except _DAMAGE as error:
            raise UserError(f"{path}: not a pack: no zip archive, or cut short ({error})") from error
        try:
            self._require_sane()
        except BaseException:
            self.close()
            raise

    @property
    def sizes(self) -> dict[str, int]:
        """What each member's header gives as its size, by name."""
        return {info.filename: info.file_size for info in self._zip.infolist()}

    def read(self, name: str) -> bytes:
        """The content of a member, no more than its header says; raises ValueError where it is damaged."""
        try:
            with self._zip.open(name) as file:
                return file.read()
        except (*_DAMAGE, KeyError) as error:
            raise ValueError(str(error)) from error

    def whole_digest(self) -> str:
        """The SHA-256 of the file."""
        return _digest(self.path, self.path.stat().st_size)

    def require_digest(self) -> None:
        """Raise UserError where the digest at the file's end is not that of what stands before it."""
        digest = _digest(self.path, self.path.stat().st_size - _COMMENT_LENGTH)
        if self._zip.comment != _COMMENT.format(digest).encode():
            noted = ascii(self._zip.comment.decode(errors="replace"))
            raise UserError(f"{self.path}: altered: its SHA-256 is {digest}, its end says {noted}")

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_sane(self) -> None:
        for info in self._zip.infolist():
            fault = _fault(info)
            if fault:
                raise UserError(f"{self.path}: member {info.filename!a} {fault}")
        twice = [name for name, count in Counter(self._zip.namelist()).items() if count > 1]
        if twice:
            raise UserError(f"{self.path}: member {twice[0]!a} is there twice")
        total, packed = sum(self.sizes.values()), self.path.stat().st_size
        if total > min(TOTAL_LIMIT, RATIO_FREE + RATIO_LIMIT * packed):
            raise UserError(
                f"{self.path}: a decompression bomb: {packed} bytes would become {total}, more than any pack"
            )


def _fault(info: zipfile.ZipInfo) -> str:
    """What no member of a pack has; empty where there is nothing."""
    # zipfile has cut the name at a NUL and made slashes of backslashes on Windows alone.
    path = PurePosixPath(info.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in info.filename:
        return "leaves the pack's folder"
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode) or info.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
        return "is no plain file"
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is encrypted or packed in a way that no pack is"
    if info.file_size > MEMBER_LIMIT:
        return f"would have {info.file_size} bytes, more than any member of a pack: a decompression bomb"
    return ""
