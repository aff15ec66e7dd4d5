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
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from vgf_conformance.packs.archive import MEMBER_LIMIT
from vgf_conformance.results.shards import Shard

STATEMENT = "statement.json"
CAPABILITIES = "capabilities.json"
WAIVERS = "waivers.toml"
OUTPUTS = "outputs"
RUNS = ("run1.jsonl", "run2.jsonl")
LOGS = ("run1.log", "run2.log")

_SHARD = re.compile(r"shard-([1-9][0-9]{0,3})-of-([1-9][0-9]{0,3})")
_OUTPUT = re.compile(r"outputs/[0-9a-f]{64}\.npy")


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


def is_known(name: str) -> bool:
    """Whether a shard's folder may hold a file of this name."""
    return name in (STATEMENT, CAPABILITIES, *RUNS, *LOGS) or _OUTPUT.fullmatch(name) is not None


def entries(folder: Path) -> Iterator[tuple[str, str]]:
    """What a folder holds, by name: each name with ``file``, ``folder`` or what else it is.

    A link is not followed, and a file larger than any of a submission is none.
    """
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield entry.name, "folder"
        elif stat.S_ISLNK(status.st_mode):
            yield entry.name, "a link"
        elif not stat.S_ISREG(status.st_mode):
            yield entry.name, "no plain file"
        elif status.st_size > MEMBER_LIMIT:
            yield entry.name, f"{status.st_size} bytes, more than any file of a submission"
        else:
            yield entry.name, "file"


def files_of(folder: Path) -> Iterator[tuple[str, str]]:
    """The files of a shard's folder and of its ``outputs``, named from there, as ``entries`` has them."""
    for name, kind in entries(folder):
        if kind == "folder" and name == OUTPUTS:
            yield from ((f"{OUTPUTS}/{inner}", what) for inner, what in entries(folder / name))
        else:
            yield name, kind


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
