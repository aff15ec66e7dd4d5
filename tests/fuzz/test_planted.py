"""Faults planted into readers are found: an unchecked length, an evaluated header, unbounded reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.formats import ROOT

_SCRIPT = """
import inspect, io, sys, zipfile
from pathlib import Path
import numpy as np
from tests.fuzz import campaign, formats
from vgf_conformance.formats import arrays, pte
from vgf_conformance.packs import archive
from vgf_conformance.results import store

folder = Path(sys.argv[1])
campaign.CORPUS = folder / "corpus"
{plant}
campaign.one({name!r}, 100.0, 1, folder)
"""

#: As np.save's format was read once: the header's word for how much memory to take.
_UNCHECKED = """
def read_npy(content):
    header = arrays._header(content)
    return np.zeros(header.shape, header.dtype)
arrays.read_npy = read_npy
"""

_EVALUATED = """
def fields(header):
    found = eval(header)
    return {name: str(value) for name, value in found.items()}
arrays._fields = fields
"""

_QUIETLY_EVALUATED = """
def fields(header):
    try:
        return {name: str(value) for name, value in eval(header).items()}
    except Exception:
        return {}
arrays._fields = fields
"""

_UNBOUNDED_LINE = """
def lines(path):
    with store.opened(path, store.FILE_LIMIT) as file:
        yield from enumerate(iter(file.readline, b""), 1)
store._raw_lines = lines
"""

_BEYOND_THE_END = """
source = inspect.getsource(pte._place).replace("end > len(data)", "False")
exec(source, vars(pte))
"""

_UNBOUNDED_MEMBER = """
def read(self, name):
    try:
        return self._zip.open(name).read()
    except Exception as error:
        raise archive.Malformed(str(error)) from error
archive.Archive.read = read
"""

_ANY_FILE = """
formats.read_bytes = lambda path, limit: Path(path).read_bytes()
"""


@pytest.mark.parametrize(
    ("name", "plant", "what"),
    [
        ("npy", _UNCHECKED, ""),
        ("pte", _BEYOND_THE_END, "raises AssertionError"),
        ("npy", _EVALUATED, "executes what it reads"),
        ("npy", _QUIETLY_EVALUATED, "executes what it reads"),
        ("results", _UNBOUNDED_LINE, "MiB of memory"),
        ("pack", _UNBOUNDED_MEMBER, "MiB of memory"),
        ("pte", _ANY_FILE, ""),
    ],
    ids=["length", "end", "eval", "quiet_eval", "line", "member", "file"],
)
def test_what_is_planted_is_found(name: str, plant: str, what: str, tmp_path: Path) -> None:
    turn = tmp_path / "turn"
    turn.mkdir()
    script = _SCRIPT.format(name=name, plant=plant)
    command = [sys.executable, "-c", script, str(turn)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert what in found["what"]
    assert "kept as" in found["what"]
    assert [*(turn / "corpus" / name).iterdir()]
