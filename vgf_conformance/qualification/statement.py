"""What a shard of a submission says of itself: ``statement.json``, by ``schema.json`` beside this file.

SCHEMA_VERSION grows with every change that an older reader cannot take.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from vgf_conformance import __version__
from vgf_conformance.formats import schema
from vgf_conformance.qualification.machine import platform_of
from vgf_conformance.targets.capabilities import Platform
from vgf_conformance.untrusted import parse_json

SCHEMA_VERSION = 1

#: What of the package makes its results.
_SOURCES = (".py", ".json", ".tosa", ".vgf", ".html")


@dataclass(frozen=True)
class Tool:
    """The vgf-conformance that ran: its version, and a SHA-256 over its files."""

    version: str
    sha256: str


@dataclass(frozen=True)
class Statement:
    """Who qualifies what, on what.

    ``pack`` is the SHA-256 of the pack's file. ``device`` is the device's identity, as every run line has
    it: ``name`` and whatever else tells it from others; ``layers`` says which emulation layers are over it.
    ``files`` has the SHA-256 of every other file of the shard's folder, by name.
    """

    product: str
    shard: str
    pack: str
    tool: Tool
    target: str
    device: Mapping[str, Any]
    layers: str
    os: str
    cpu: str
    python: str
    versions: Mapping[str, str]
    files: Mapping[str, str]

    def encode(self) -> bytes:
        """The content of ``statement.json``."""
        document = {"schema": SCHEMA_VERSION, **dataclasses.asdict(self)}
        return json.dumps(document, indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes) -> Statement:
        """The inverse of encode; raises ValueError saying what is wrong."""
        document = parse_json(content)
        if refusal := schema.newer(document, SCHEMA_VERSION):
            raise ValueError(refusal)
        _require(document, "schema.json")
        del document["schema"]
        return cls(**{**document, "tool": Tool(**document["tool"])})


@functools.cache
def longest_line() -> int:
    """Characters that a text of a statement may have: the schema's own limit."""
    document = json.loads(resources.files(__package__).joinpath("schema.json").read_text("utf-8"))
    return int(document["$defs"]["line"]["maxLength"])


def this_tool() -> Tool:
    """The vgf-conformance that runs now."""
    package = Path(str(resources.files("vgf_conformance")))
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in _SOURCES:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    return Tool(__version__, digest.hexdigest())


def parse_capabilities(content: bytes) -> Platform:
    """What a shard's capability report describes; raises ValueError saying what is wrong."""
    document = parse_json(content)
    _require(document, "capabilities.json")
    return platform_of(document)


def _require(document: Any, name: str) -> None:
    """Raise ValueError where a schema of this package refuses the document."""
    if refusal := schema.refusal(document, __package__, name):
        raise ValueError(refusal)
