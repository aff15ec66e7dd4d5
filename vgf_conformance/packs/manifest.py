"""What a pack says of itself: ``manifest.json``, whose contract is ``schema.json`` beside this file.

SCHEMA_VERSION grows with every change that an older reader cannot take. Version 2 added ``visible``.
Older packs are read as well.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from vgf_conformance.formats import schema
from vgf_conformance.untrusted import Malformed, parse_json

SCHEMA_VERSION = 2

#: Characters of a case's folder; file systems take 255 bytes.
FOLDER_LIMIT = 200


@dataclass(frozen=True)
class Member:
    """A file of the pack: its SHA-256 in hexadecimal and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class StoredArray:
    """An array in a ``.npy`` member, in memory order; narrow floats lie there as integers of their width."""

    member: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Expected:
    """One output of a call: the reference model's, in fp64 too where it is floating point and can be had.

    ``rule`` is the tolerance as the builder's version judged by it (``tosa-1.0.2 EXP``).
    """

    array: StoredArray
    rule: str
    exact: StoredArray | None


@dataclass(frozen=True)
class Call:
    """One delegate call of a case; ``tosa``, ``vgf`` and ``scenario`` are members.

    So is ``visible``: the VGF of the same graph with every intermediate result an output, in the order of
    ``attribution.cut``; None where there is none.
    """

    delegate: str
    nodes: int
    tosa_version: str
    tosa: str
    vgf: str
    scenario: str
    inputs: tuple[StoredArray, ...]
    outputs: tuple[Expected, ...]
    visible: str | None = None


@dataclass(frozen=True)
class PackedCase:
    """A case, sample, profile and scheme with its delegate calls.

    ``id`` is the suite's without the target: see case_id.
    ``known_failure`` says why the suite expects the emulation layers to fail it, empty where it does not.
    """

    id: str
    file: str
    case: str
    sample: str
    kind: str
    operator: str
    tier: str
    profile: str
    scheme: str
    dtypes: tuple[str, ...]
    calls: tuple[Call, ...]
    known_failure: str

    @property
    def named(self) -> str:
        """The id that its parts make."""
        return case_id(self.file, self.case, self.sample, self.profile, self.scheme)

    @property
    def folder(self) -> str:
        """Its folder in an unpacked pack: one plain name, whatever the manifest says."""
        file = PurePosixPath(self.file).with_suffix("")
        parts = (*file.parts, self.case, f"{self.sample}-{self.profile}-{self.scheme}")
        return ".".join(re.sub(r"[^A-Za-z0-9_+-]+", "_", part) for part in parts)

    def id_on(self, target: str) -> str:
        """The suite's id of this case on ``target``."""
        return f"{self.id.removesuffix(']')}-{target}]"


def case_id(file: str, case: str, sample: str, profile: str, scheme: str) -> str:
    """The suite's id of a case, without the target."""
    return f"suites/{file}::{case}[{sample}-{profile}-{scheme}]"


@dataclass(frozen=True)
class LeftOut:
    """A case, or a whole suite file, that is not in the pack."""

    id: str
    reason: str


@dataclass(frozen=True)
class Manifest:
    """``tool`` is the version of vgf-conformance, ``versions`` those of the stack that lowered the cases."""

    tool: str
    versions: dict[str, str]
    tosa_versions: tuple[str, ...]
    tier: str
    cases: tuple[PackedCase, ...]
    left_out: tuple[LeftOut, ...]
    members: dict[str, Member]

    def encode(self) -> bytes:
        """The content of ``manifest.json``: the same bytes for the same manifest."""
        document = {"schema": SCHEMA_VERSION, **dataclasses.asdict(self)}
        return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True).encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes) -> Manifest:
        """The inverse of encode; raises Malformed saying what is wrong with a manifest."""
        document = parse_json(content)
        refusal = schema.newer(document, SCHEMA_VERSION) or schema.refusal(document, __package__)
        if refusal:
            raise Malformed(refusal)
        _require_printable(document)
        manifest = cls(
            tool=document["tool"],
            versions=document["versions"],
            tosa_versions=tuple(document["tosa_versions"]),
            tier=document["tier"],
            cases=tuple(map(_case, document["cases"])),
            left_out=tuple(LeftOut(**item) for item in document["left_out"]),
            members={name: Member(**item) for name, item in document["members"].items()},
        )
        _require_whole(manifest)
        return manifest


def _require_printable(document: Any) -> None:
    """Raise Malformed where a text has characters that a terminal acts on, newer ones too."""
    waiting = [document]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str) and not item.isprintable():
            raise Malformed(f"a text with characters that cannot be printed: {item[:80]!a}")


def _require_whole(manifest: Manifest) -> None:
    """What a schema cannot say; raises Malformed."""
    for what, values in (
        ("id", [case.id for case in manifest.cases]),
        # Some file systems do not tell upper from lower case.
        ("folder", [case.folder.lower() for case in manifest.cases]),
    ):
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise Malformed(f"two cases have the {what} {twice[0]}")
    for case in manifest.cases:
        if case.id != case.named:
            raise Malformed(f"the case {case.id} is {case.named} by its parts")
        if len(case.folder) > FOLDER_LIMIT:
            raise Malformed(f"the case {case.id} would have a folder of {len(case.folder)} characters")
    used = {name for case in manifest.cases for call in case.calls for name in members_of(call)}
    for name in sorted(used ^ manifest.members.keys()):
        what = "used by a case, but not declared" if name in used else "declared, but used by no case"
        raise Malformed(f"member {name} is {what}")


def members_of(call: Call) -> Iterator[str]:
    """The members that a call needs."""
    yield from filter(None, (call.tosa, call.vgf, call.scenario, call.visible))
    yield from (array.member for array in call.inputs)
    for output in call.outputs:
        yield output.array.member
        if output.exact is not None:
            yield output.exact.member


def _case(document: dict[str, Any]) -> PackedCase:
    fields = {**document, "dtypes": tuple(document["dtypes"]), "calls": tuple(map(_call, document["calls"]))}
    return PackedCase(**fields)


def _call(document: dict[str, Any]) -> Call:
    inputs, outputs = map(_array, document["inputs"]), map(_expected, document["outputs"])
    return Call(**{**document, "inputs": tuple(inputs), "outputs": tuple(outputs)})


def _expected(document: dict[str, Any]) -> Expected:
    exact = document["exact"]
    return Expected(_array(document["array"]), document["rule"], None if exact is None else _array(exact))


def _array(document: dict[str, Any]) -> StoredArray:
    return StoredArray(document["member"], document["dtype"], tuple(document["shape"]))
