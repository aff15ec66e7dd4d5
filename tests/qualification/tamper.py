"""Ways to change a submission, each leaving its hashes right unless they are the change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vgf_conformance.qualification.layout import RUNS, STATEMENT, files_of, sha256_of

Lines = list[dict[str, Any]]


def statement(shard: Path, **changes: Any) -> None:
    document = json.loads((shard / STATEMENT).read_text())
    (shard / STATEMENT).write_text(json.dumps({**document, **changes}))


def reseal(shard: Path) -> None:
    """Make the statement's hashes those of the files."""
    files = {entry.name: sha256_of(shard / entry.name) for entry in files_of(shard) if entry.kind == "file"}
    files.pop(STATEMENT)
    statement(shard, files=files)


def lines(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, documents: Lines) -> None:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))


def runs(shard: Path, change: Callable[[Lines], Lines | None]) -> None:
    """Change the lines of both runs, in place or into others, and the hashes with them."""
    for name in RUNS:
        documents = lines(shard / name)
        write(shard / name, change(documents) or documents)
    reseal(shard)


def cases(documents: Lines) -> Lines:
    return [document for document in documents if document["type"] == "case"]


def shard_with(folder: Path, case: str) -> Path:
    """The shard that has a case, by its name in the suite."""
    for shard in sorted(folder.glob("shard-*")):
        if any(document["case"] == case for document in cases(lines(shard / RUNS[0]))):
            return shard
    raise AssertionError(f"no shard has {case}")
