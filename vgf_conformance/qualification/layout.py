"""The files of a submission, and a look at them that follows no link and trusts no name.

```
submission/
  waivers.toml              optional, the vendor's: see waivers.py
  shard-1-of-2/             one folder for each shard, shard-1-of-1 where there is but one
    statement.json          what was run on what, and the SHA-256 of every other file here
    capabilities.json       what the driver says of itself
    run1.jsonl run2.jsonl   the records of both runs
    run1.log run2.log       the same as text, as it came
    outputs/<SHA-256>.npy   what the driver gave
```
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vgf_conformance.files import PARTIAL
from vgf_conformance.packs.archive import MEMBER_LIMIT
from vgf_conformance.results.shards import Shard
from vgf_conformance.untrusted import BadFile, opened

STATEMENT = "statement.json"
CAPABILITIES = "capabilities.json"
WAIVERS = "waivers.toml"
OUTPUTS = "outputs"
RUNS = ("run1.jsonl", "run2.jsonl")
LOGS = ("run1.log", "run2.log")

#: Entries that a folder of a submission may have.
ENTRY_LIMIT = 100_000

FILE, FOLDER = "file", "folder"

_SHARD = re.compile(r"shard-([1-9][0-9]{0,3})-of-([1-9][0-9]{0,3})")
_OUTPUT = re.compile(r"outputs/[0-9a-f]{64}\.npy")
_PARTIAL = re.compile(rf"(outputs/)?{re.escape(PARTIAL)}[a-z0-9_.]+")


class Entry(NamedTuple):
    """What lies in a folder: its name, FILE, FOLDER or what else it is, and the size of a file in bytes."""

    name: str
    kind: str
    size: int


def shard_folder(shard: Shard) -> str:
    """The name of a shard's folder."""
    return f"shard-{shard.number}-of-{shard.of}"


def shard_named(name: str) -> Shard | None:
    """The shard of a folder, None where no shard is called so."""
    match = _SHARD.fullmatch(name)
    if match is None or int(match[1]) > int(match[2]):
        return None
    return Shard(number=int(match[1]), of=int(match[2]))


def output_name(sha256: str) -> str:
    """The file of an output in its shard's folder."""
    return f"{OUTPUTS}/{sha256}.npy"


def is_output(name: str) -> bool:
    """Whether a file of a shard's folder has the name of an output."""
    return _OUTPUT.fullmatch(name) is not None


def is_known(name: str) -> bool:
    """Whether a shard's folder may hold a file of this name."""
    return name in (STATEMENT, CAPABILITIES, *RUNS, *LOGS) or is_output(name)


def is_partial(name: str) -> bool:
    """Whether a file of a shard's folder is one that ``qualify`` had not finished when it was killed."""
    return _PARTIAL.fullmatch(name) is not None


def entries(folder: Path) -> list[Entry]:
    """What a folder holds, by name; a link is not followed, and a file larger than any other is none.

    Raises BadFile where the folder cannot be read, or has more than ENTRY_LIMIT entries.
    """
    try:
        with os.scandir(folder) as found:
            listed = list(itertools.islice(found, ENTRY_LIMIT + 1))
        if len(listed) > ENTRY_LIMIT:
            raise BadFile(folder, f"holds more than {ENTRY_LIMIT} files")
        return sorted(map(_entry, listed))
    except OSError as error:
        raise BadFile(folder, f"cannot be read: {error.strerror or error}") from error


def _entry(found: os.DirEntry[str]) -> Entry:
    status = found.stat(follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        kind = FOLDER
    elif stat.S_ISLNK(status.st_mode):
        kind = "a link"
    elif not stat.S_ISREG(status.st_mode):
        kind = "no plain file"
    elif status.st_size > MEMBER_LIMIT:
        kind = f"{status.st_size} bytes, more than any file of a submission"
    else:
        kind = FILE
    return Entry(found.name, kind, status.st_size)


def files_of(folder: Path) -> Iterator[Entry]:
    """The files of a shard's folder and of its ``outputs``, named from there; raises BadFile."""
    for entry in entries(folder):
        if entry.kind == FOLDER and entry.name == OUTPUTS:
            yield from (
                inner._replace(name=f"{OUTPUTS}/{inner.name}") for inner in entries(folder / entry.name)
            )
        else:
            yield entry


def sha256_of(path: Path, limit: int = MEMBER_LIMIT) -> str:
    """The SHA-256 of a file in hexadecimal; raises BadFile where it has more than ``limit`` bytes."""
    digest = hashlib.sha256()
    with opened(path, limit) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
