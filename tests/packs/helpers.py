"""Calls the command line, and takes packs apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest

from vgf_conformance.cli import main
from vgf_conformance.packs.archive import MANIFEST, write_archive

Change = Callable[[dict[str, Any], dict[str, bytes]], None]


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def call(capfd: pytest.CaptureFixture[str], *arguments: object) -> Answer:
    """Run ``vgf-conformance pack`` here."""
    capfd.readouterr()
    code = main(["pack", *map(str, arguments)])
    return Answer(code, *capfd.readouterr())


def refused(answer: Answer, *messages: str) -> None:
    """Exit code 2, one line on standard error, and nothing of Python's."""
    assert answer.code == 2, answer
    lines = answer.err.splitlines()
    assert len(lines) == 1, answer.err
    assert lines[0].startswith("vgf-conformance: ")
    for message in messages:
        assert message in lines[0]


def members(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(small: Path, folder: Path, change: Change) -> Path:
    """``small`` once more, sound as an archive, with manifest and members changed."""
    contents = members(small)
    manifest = json.loads(contents.pop(MANIFEST))
    change(manifest, contents)
    return written(folder, json.dumps(manifest).encode(), contents)


def written(folder: Path, manifest: bytes, contents: dict[str, bytes]) -> Path:
    """An archive as a pack is one, whatever its content is."""
    files = {}
    for number, (name, content) in enumerate(contents.items()):
        files[name] = folder / f"member{number}"
        files[name].write_bytes(content)
    path = folder / "changed.zip"
    write_archive(path, manifest, files)
    return path


def replaced(manifest: dict[str, Any], contents: dict[str, bytes], name: str, content: bytes) -> None:
    """Give a member another content, and the manifest the hash to it."""
    contents[name] = content
    digest = hashlib.sha256(content).hexdigest()
    manifest["members"][name] = {"sha256": digest, "size": len(content)}
