"""The file that holds a pack: a zip archive, the same bytes for the same members, read without trust.

Members are ``manifest.json`` and ``objects/...``. The archive's comment is the SHA-256 of all that stands
before it, so that no byte of the file can change unseen; who means to deceive can write another one:
what to trust is the SHA-256 of the whole file, as its publisher gives it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import BinaryIO

from vgf_conformance import files
from vgf_conformance.packs.directory import require_short
from vgf_conformance.terminal import one_line
from vgf_conformance.untrusted import BadFile, Malformed, opened

MANIFEST = "manifest.json"

#: Bytes that a member, and that all of them, may have when unpacked.
MEMBER_LIMIT = 1 << 30
TOTAL_LIMIT = 8 << 30
#: How many times larger than the file its content may be, beyond the first so many bytes: the tensors of
#: real packs shrink to a third or so.
RATIO_LIMIT = 100
RATIO_FREE = 16 << 20

#: Characters of a member's name: 29 in a pack.
_NAME_LIMIT = 200

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


def write_archive(path: Path, manifest: bytes, members: Mapping[str, Path]) -> None:
    """Write ``path`` with the manifest first and the members, files by name, after it in order of names.

    An existing file is replaced once all is written. Raises UserError where that cannot be done.
    """
    with files.replacing(path) as file:
        _write(file, manifest, members)


def _write(file: BinaryIO, manifest: bytes, members: Mapping[str, Path]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        _add(archive, MANIFEST, manifest)
        for name in sorted(members):
            _add(archive, name, members[name].read_bytes())
        archive.comment = _COMMENT.format("0" * 64).encode()
    end = file.seek(-_COMMENT_LENGTH, os.SEEK_END)
    file.seek(0)
    digest = _digest(file, end)
    file.seek(end)
    file.write(_COMMENT.format(digest).encode())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
    archive.writestr(info, content, zipfile.ZIP_DEFLATED, compresslevel=9)


def _digest(file: BinaryIO, size: int) -> str:
    """The SHA-256 of the first ``size`` bytes of a file."""
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0 and (block := file.read(min(size, 1 << 20))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()


class Archive:
    """An archive open for reading. Nothing is extracted: members are read into memory, one at a time."""

    def __init__(self, path: Path) -> None:
        """Open it; raises UserError where it is none, or has members that no pack has."""
        self.path = path
        with contextlib.ExitStack() as stack:
            self._file = stack.enter_context(opened(path, TOTAL_LIMIT))
            self._size = os.fstat(self._file.fileno()).st_size
            try:
                require_short(self._file, self._size)
                self._zip = stack.enter_context(zipfile.ZipFile(self._file))
            except _DAMAGE as error:
                why = one_line(str(error))
                raise BadFile(path, f"not a pack: no zip archive, or cut short ({why})") from error
            self._require_sane()
            self._close = stack.pop_all().close

    @property
    def sizes(self) -> dict[str, int]:
        """What each member's header gives as its size, by name."""
        return {info.filename: info.file_size for info in self._zip.infolist()}

    def read(self, name: str) -> bytes:
        """The content of a member, no more than its header says; raises Malformed where it is damaged."""
        try:
            size = self._zip.getinfo(name).file_size
            with self._zip.open(name) as file:
                # Asked for all there is, zipfile would unpack more than the header says.
                return file.read(size + 1)
        except (*_DAMAGE, KeyError) as error:
            raise Malformed(str(error)) from error

    def whole_digest(self) -> str:
        """The SHA-256 of the file."""
        return _digest(self._file, self._size)

    def require_digest(self) -> None:
        """Raise UserError where the digest at the file's end is not that of what stands before it."""
        digest = _digest(self._file, self._size - _COMMENT_LENGTH)
        if self._zip.comment != _COMMENT.format(digest).encode():
            noted = ascii(self._zip.comment[: 2 * _COMMENT_LENGTH].decode(errors="replace"))
            raise BadFile(self.path, f"altered: its SHA-256 is {digest}, its end says {noted}")

    def close(self) -> None:
        """Close the file."""
        self._close()

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
                raise BadFile(self.path, f"member {_shown(info)} {fault}")
        twice = [name for name, count in Counter(self._zip.namelist()).items() if count > 1]
        if twice:
            raise BadFile(self.path, f"member {twice[0][:_NAME_LIMIT]!a} is there twice")
        total = sum(self.sizes.values())
        if total > min(TOTAL_LIMIT, RATIO_FREE + RATIO_LIMIT * self._size):
            raise BadFile(
                self.path,
                f"a decompression bomb: {self._size} bytes would become {total}, more than any pack",
            )
        self._require_apart()

    def _require_apart(self) -> None:
        """Raise UserError where two members lie over each other, or one outside the file."""
        end = 0
        for info in sorted(self._zip.infolist(), key=lambda info: info.header_offset):
            if info.header_offset < end:
                raise BadFile(self.path, f"member {_shown(info)} lies over another")
            end = info.header_offset + info.compress_size
        if end > self._size:
            raise BadFile(self.path, "not a pack: no zip archive, or cut short (a member ends behind it)")


def _shown(info: zipfile.ZipInfo) -> str:
    return ascii(info.filename[:_NAME_LIMIT])


def _fault(info: zipfile.ZipInfo) -> str:
    """What no member of a pack has; empty where there is nothing."""
    if not 0 < len(info.filename) <= _NAME_LIMIT:
        return f"has a name of {len(info.filename)} characters"
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
