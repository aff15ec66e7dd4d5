"""The one door for bytes that somebody else made: files are opened, bounded and parsed here, nowhere else.

Everything that fails here fails as :class:`BadFile`, which names the file and what is wrong with it. Only
regular files are read: a link could lead anywhere, a pipe would be waited for, and a device may have no end.
A lint test keeps ``open``, ``json.loads`` and the like out of all other modules.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from vgf_conformance.vocabulary import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: How deep the objects and lists of a document may be nested, and how many digits an integer may have: an
#: unsigned 64-bit integer has 20.
DEPTH_LIMIT = 64
DIGIT_LIMIT = 20

#: Bytes that a document may have which people write or read: waivers, statements, manifests of drivers.
DOCUMENT_LIMIT = 16 << 20

#: An escaped surrogate: half a character, unless its other half follows.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

#: A dotted key of TOML that is nested too deep: the time that a parser takes for one grows with its square.
_DOTTED = re.compile(rb"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){%d}""" % DEPTH_LIMIT)

_KINDS = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

FILE, FOLDER, LINK = "a file", "a folder", "a link"


class BadFile(UserError):
    """A file that cannot be used: ``path`` is the file, ``why`` what is wrong with it."""

    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = Path(path)
        self.why = why


class Malformed(ValueError):
    """Content that is not what it should be; the message says why, without the file's name."""


def kind_of(path: Path) -> str | None:
    """What lies at ``path``: FILE, FOLDER, LINK, "a pipe", ...; None where nothing does.

    Raises BadFile where the system refuses the name, or does not let us look.
    """
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise BadFile(path, _said(error)) from error
    except ValueError as error:  # a NUL in the name
        raise BadFile(path, f"not a name of a file: {error}") from error
    return next((kind for test, kind in _KINDS if test(mode)), "neither a file nor a folder")


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder, or a link to one; raises BadFile as kind_of does."""
    kind = kind_of(path)
    # Loops of links have no end; the system says so.
    return kind == FOLDER or (kind == LINK and path.is_dir())


def is_file(path: Path) -> bool:
    """Whether ``path`` is a regular file, or a link to one; raises BadFile as kind_of does."""
    kind = kind_of(path)
    return kind == FILE or (kind == LINK and path.is_file())


def absolute(text: str) -> Path:
    """The absolute path that a person means by ``text``, which may begin with ``~``; raises BadFile."""
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise BadFile(text, "there is no such user, or no home folder") from error
    except OSError as error:
        raise BadFile(text, "there is no working directory any more: give an absolute path") from error


@contextmanager
def opened(path: Path, limit: int, *, links: bool = False) -> Iterator[BufferedReader]:
    """The regular file at ``path``, open for reading.

    ``links`` allows a link to a regular file: for what the machine's owner put there. Raises BadFile where it
    is missing, something else than a file, unreadable, or has more than ``limit`` bytes.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise BadFile(path, _refusal(path, error, links)) from error
    except ValueError as error:
        raise BadFile(path, f"not a name of a file: {error}") from error
    try:
        _require_regular(path, os.fstat(descriptor), limit)
    except BaseException:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _require_regular(path: Path, status: os.stat_result, limit: int) -> None:
    # Python makes no file object of a folder.
    if not stat.S_ISREG(status.st_mode):
        kind = next((kind for test, kind in _KINDS if test(status.st_mode)), "something else")
        raise BadFile(path, f"is {kind}, not a regular file")
    if status.st_size > limit:
        raise BadFile(path, f"is too large: {status.st_size} bytes, where {limit} are the most")


def read_bytes(path: Path, limit: int, *, links: bool = False) -> bytes:
    """The content of a regular file of at most ``limit`` bytes; raises BadFile."""
    try:
        with opened(path, limit, links=links) as file:
            # Asked for more than there is, Python takes the memory first. A file may grow while it is read.
            content = file.read(min(os.fstat(file.fileno()).st_size, limit) + 1)
            content += file.read(limit + 1 - len(content)) if file.peek(1) else b""
    except OSError as error:
        raise BadFile(path, f"cannot be read: {_said(error)}") from error
    if len(content) > limit:
        raise BadFile(path, f"is too large: more than {limit} bytes")
    return content


def read_text(path: Path, limit: int = DOCUMENT_LIMIT) -> str:
    """The text of a regular file in UTF-8; raises BadFile."""
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise BadFile(path, f"not UTF-8: {error.reason} at byte {error.start}") from error


def read_json(path: Path, limit: int = DOCUMENT_LIMIT, *, links: bool = False) -> Any:
    """The value of a JSON file; raises BadFile."""
    try:
        return parse_json(read_bytes(path, limit, links=links))
    except Malformed as error:
        raise BadFile(path, str(error)) from error


def read_toml(path: Path, limit: int = DOCUMENT_LIMIT) -> dict[str, Any]:
    """The document of a TOML file; raises BadFile."""
    try:
        return parse_toml(read_bytes(path, limit))
    except Malformed as error:
        raise BadFile(path, str(error)) from error


def parse_json(content: bytes) -> Any:
    """The value of a JSON text; raises Malformed.

    Stricter than the standard library: UTF-8, no NaN or infinity, no number out of range, no name twice in
    an object, no half of a surrogate pair, and no nesting below DEPTH_LIMIT.
    """
    try:
        value = _DECODER.decode(content.decode())
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise Malformed(f"not JSON: nested deeper than {DEPTH_LIMIT} levels") from error
    except ValueError as error:
        raise Malformed(f"not JSON: {error}") from error
    _require_shallow(value)
    if _SURROGATE.search(content):
        _require_text(value)
    return value


def parse_toml(content: bytes) -> dict[str, Any]:
    """The document of a TOML text; raises Malformed."""
    if _DOTTED.search(content):
        raise Malformed(f"not TOML: nested deeper than {DEPTH_LIMIT} levels")
    try:
        document: dict[str, Any] = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise Malformed(f"not TOML: nested deeper than {DEPTH_LIMIT} levels") from error
    except ValueError as error:
        # TOMLDecodeError, and integers too long for Python.
        raise Malformed(f"not TOML: {error}") from error
    _require_shallow(document)
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice[:40]!a} is there twice in one object")
    return found


def _integer(text: str) -> int:
    if len(text) > DIGIT_LIMIT:
        raise ValueError(f"an integer of {len(text)} digits: {text[:DIGIT_LIMIT]}...")
    return int(text)


def _fraction(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"a number out of range: {text[:DIGIT_LIMIT]}")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)


def _require_shallow(value: Any) -> None:
    """Raise Malformed where containers are nested too deep for those who walk through them."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEPTH_LIMIT):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise Malformed(f"nested deeper than {DEPTH_LIMIT} levels")


def _require_text(value: Any) -> None:
    """Raise Malformed where a string of ``value`` has half of a surrogate pair: no encoding can write it."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise Malformed(f"not text: half of a surrogate pair in {item[:40]!a}") from error


def _refusal(path: Path, error: OSError, links: bool) -> str:
    if error.errno == errno.ENOENT:
        return "no such file"
    if error.errno == errno.ELOOP and not links:
        return "is a link: name the file itself"
    # A socket, or a device without a driver.
    if error.errno == errno.ENXIO:
        return "is not a regular file"
    return f"cannot be read: {_said(error)}"


def _said(error: OSError) -> str:
    return error.strerror or str(error)
