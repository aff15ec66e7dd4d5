"""A zip archive's list of members, looked at before ``zipfile`` makes objects of it.

``zipfile`` reads the whole list, however long it is, and takes quadratic time over a member's extra fields.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from vgf_conformance.untrusted import Malformed

#: Members that a pack may have: a thousand cases have some five thousand.
COUNT_LIMIT = 100_000
#: Bytes of a member's extra fields: those that zipfile writes for more than four gigabytes have 28 at most.
_EXTRA_LIMIT = 64

_END = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\5\6"
#: Of an archive with many members or bytes: where the longer end lies, and that.
_LOCATOR = struct.Struct("<4sLQL")
_LONG_END = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_ENTRY_MARK = b"PK\1\2"
#: Where zipfile looks for the end.
_TAIL = (1 << 16) + _END.size


def require_short(file: BinaryIO, size: int) -> None:
    """Raise Malformed where ``file``, of ``size`` bytes, has no list of members that a pack may have."""
    end, length = _end(file, size)
    if length > end:
        raise Malformed("the list of its members begins before the file")
    # Names of packs are short: even of a list that is long enough, so much is never needed.
    if length > COUNT_LIMIT * (_ENTRY.size + _EXTRA_LIMIT):
        raise Malformed(f"the list of its members has {length} bytes")
    file.seek(end - length)
    listed, place, count = file.read(length), 0, 0
    while place < length:
        fields = _ENTRY.unpack_from(listed, place) if place + _ENTRY.size <= length else (b"",)
        if fields[0] != _ENTRY_MARK:
            raise Malformed("the list of its members is damaged")
        name, extra, comment = fields[10:13]
        if extra > _EXTRA_LIMIT or comment:
            raise Malformed("a member has a comment, or fields, that no pack has")
        place += _ENTRY.size + name + extra + comment
        count += 1
    if count > COUNT_LIMIT:
        raise Malformed(f"{count} members, more than any pack has")


def _end(file: BinaryIO, size: int) -> tuple[int, int]:
    """Where the list of members ends, and its length."""
    start = max(0, size - _TAIL)
    file.seek(start)
    tail = file.read(size - start)
    found = tail.rfind(_END_MARK)
    if found < 0 or len(tail) - found < _END.size:
        raise Malformed("no end of a zip archive")
    if tail.count(_END_MARK) > 1:
        # Readers do not agree which one counts.
        raise Malformed("two ends of a zip archive")
    end, length = start + found, _END.unpack_from(tail, found)[5]
    place = found - _LOCATOR.size
    if place < _LONG_END.size or _LOCATOR.unpack_from(tail, place)[0] != b"PK\6\7":
        return end, length
    longer = _LONG_END.unpack_from(tail, place - _LONG_END.size)
    if longer[0] != b"PK\6\6":
        return end, length
    return end - _LOCATOR.size - _LONG_END.size, longer[8]
