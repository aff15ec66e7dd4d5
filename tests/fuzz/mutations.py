"""Inputs for readers: sound ones, damaged. Hypothesis draws the damage, so that it can shrink it."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w
from hypothesis import strategies as st

#: What may lie where a file should: see ``campaign.place``.
PLACES = ("pipe", "sparse", "link", "endless", "folder")


@dataclass(frozen=True)
class Input:
    """What a reader gets: content, and what it lies in."""

    content: bytes
    place: str = "file"


Contents = st.SearchStrategy[bytes]
#: Path within a document, to a value.
Path = tuple[str | int, ...]

_BYTES = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 16, 32, 127, 128, 254, 255]) | st.integers(0, 255)
_WORDS = st.sampled_from([0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 1 << 24, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
_EDITS = ("byte", "byte", "bit", "word", "word", "long", "delete", "double", "insert", "cut")


@st.composite
def damaged_bytes(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of ``seeds`` with up to four bytes, words or stretches changed."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        edit, at = draw(st.sampled_from(_EDITS)), draw(st.integers(0, max(0, len(content) - 1)))
        if edit == "byte":
            content[at : at + 1] = bytes([draw(_BYTES)])
        elif edit == "bit" and content:
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif edit in ("word", "long"):
            # Fields of binary formats are aligned.
            at -= at % 4
            number = struct.pack("<L", draw(_WORDS))
            content[at : at + 4 * (1 + (edit == "long"))] = number + bytes(4 * (edit == "long"))
        elif edit == "insert":
            content[at:at] = bytes([draw(_BYTES)]) * draw(st.sampled_from([1, 2, 8, 5000, 100_000]))
        elif edit == "cut":
            del content[at:]
        else:
            length = draw(st.sampled_from([1, 2, 4, 8, 100]))
            content[at : at + length] = content[at : at + length] * (2 * (edit == "double"))
    return bytes(content)


#: Written into a text where a document has these strings: what no serialiser gives.
_RAW = {
    "@deep@": "[" * 5000 + "]" * 5000,
    "@bottomless@": "[" * 100_000,
    "@digits@": "9" * 5000,
    "@nan@": "NaN",
    "@huge@": "1e999",
    "@half@": '"\\ud800"',
    "@nothing@": "",
}
_TEXTS = (
    "",
    "x" * 10_000,
    "../../x",
    "/etc/passwd",
    "a\nb\x1b]0;PWN\x07\x1b[2J",
    "\u202eabc",
    "a\0b",
    "constructor",
    "__proto__",
    "1e5",
    "<script>alert(1)</script>",
    "*" * 200,
)
_SIMPLE = (
    st.sampled_from([None, True, False, -1, 0, 1, 2, 255, 1 << 31, 1 << 63, 1 << 64, -(1 << 63), 1e308, 0.5])
    | st.sampled_from(_TEXTS)
    | st.text(max_size=8)
    | st.integers()
)
VALUES: st.SearchStrategy[Any] = (
    _SIMPLE
    | st.sampled_from(sorted(_RAW))
    | st.sampled_from([[], {}, [[]], [None], {"": None}, [0] * 10_000, {"a": {"constructor": 1}}])
    | st.lists(_SIMPLE, max_size=3)
    | st.dictionaries(st.text(max_size=4), _SIMPLE, max_size=3)
)


def _paths(document: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    entries: Any = ()
    if isinstance(document, dict):
        entries = document.items()
    elif isinstance(document, list):
        entries = enumerate(document)
    for key, value in entries:
        yield from _paths(value, (*path, key))


def _drawn(draw: st.DrawFn, document: Any) -> Path:
    # sampled_from looks at each of its elements, every time.
    paths = list(_paths(document))
    return paths[draw(st.integers(0, len(paths) - 1))]


@st.composite
def altered_document(draw: st.DrawFn, seeds: Sequence[Any]) -> Any:
    """One of ``seeds``, documents, with up to three values replaced, removed, renamed or moved."""
    document = copy.deepcopy(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 3))):
        path = _drawn(draw, document)
        if not path:
            if draw(st.integers(0, 9)) == 9:
                return copy.deepcopy(draw(VALUES))
            continue
        holder: Any = document
        for step in path[:-1]:
            holder = holder[step]
        edit = draw(st.sampled_from(["replace", "replace", "remove", "rename", "double", "move"]))
        key: Any = path[-1]
        if edit == "replace":
            # Some values are lists that every draw would share.
            holder[key] = copy.deepcopy(draw(VALUES))
        elif edit == "remove":
            del holder[key]
        elif edit == "move":
            other = document
            for step in _drawn(draw, document):
                other = other[step]
            holder[key] = copy.deepcopy(other)
        elif isinstance(holder, list):
            holder.insert(0, copy.deepcopy(holder[key]))
        elif edit == "rename":
            holder[draw(st.sampled_from(_TEXTS) | st.text(max_size=8))] = holder.pop(key)
    return document


def json_text(document: Any) -> bytes:
    """``document`` as JSON, with what stands for the things that no serialiser gives."""
    # TOML has dates.
    text = json.dumps(document, default=str)
    for mark, raw in _RAW.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode()


def toml_text(document: Any) -> bytes:
    """``document`` as TOML; whatever TOML has no words for, as JSON, which is no TOML."""
    try:
        return tomli_w.dumps(document).encode("utf-8", "surrogatepass")
    except Exception:
        return json_text(document)


def damaged_json(seeds: Sequence[bytes]) -> Contents:
    """Documents that are changed as such, and as bytes."""
    return _damaged_documents(seeds, json.loads, json_text)


def damaged_toml(seeds: Sequence[bytes], loads: Callable[[str], Any]) -> Contents:
    """The same for TOML."""
    return _damaged_documents(seeds, lambda content: loads(content.decode()), toml_text)


def _damaged_documents(
    seeds: Sequence[bytes], loads: Callable[[bytes], Any], text: Callable[[Any], bytes]
) -> Contents:
    documents = [loads(seed) for seed in seeds]
    altered = altered_document(documents).map(text)
    return st.one_of(altered, altered, altered, damaged_bytes(seeds))


def damaged_lines(seeds: Sequence[bytes]) -> Contents:
    """A file of JSON lines, some of them changed, doubled, left out or in another order."""
    whole = [json.loads(line) for seed in seeds for line in seed.splitlines()]

    @st.composite
    def lines(draw: st.DrawFn) -> bytes:
        chosen = [json_text(line) for line in draw(st.lists(st.sampled_from(whole), min_size=1, max_size=4))]
        chosen.insert(draw(st.integers(0, len(chosen))), json_text(draw(altered_document(whole))))
        return draw(st.sampled_from([b"\n", b"\n", b"\n", b"\n\n", b"\r\n", b""])).join(chosen) + b"\n"

    return st.one_of(lines(), lines(), lines(), damaged_bytes(seeds))
