"""The doors: where files of others are read, and where anything is printed or written for keeps.

``untrusted`` alone opens and parses what others made, ``terminal`` alone prints, ``files`` alone writes what
is kept. Each exception is named here with its reason, by module and call, and has to be in use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "vgf_conformance"
DOORS = {"untrusted.py", "terminal.py", "files.py"}

#: Functions by full name, and methods (of paths, of archives) by name.
FUNCTIONS = {
    "open", "print", "io.open", "os.open", "os.fdopen", "os.mkfifo",
    "json.load", "json.loads", "pickle.load", "pickle.loads",
    "numpy.load", "numpy.fromfile", "numpy.loadtxt", "numpy.genfromtxt", "numpy.memmap",
    "tempfile.mkstemp", "eval", "exec", "torch.load",
}  # fmt: skip
METHODS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "tofile"}
MODULES = {"zipfile", "tarfile", "tomllib", "tomli", "shelve", "dbm", "csv", "configparser", "xml", "yaml"}

OURS = "a file of this package or of an installed one"
TEMPORARY = "a file in a temporary folder of ours, that we or a tool of the SDK wrote there"
USERS = "source that the user asks to be executed"

#: What other modules may do, and why.
ALLOWED = {
    ("formats/schema.py", "json.loads"): OURS,
    ("formats/schema.py", "read_text"): OURS,
    ("report/html.py", "read_text"): OURS,
    ("evaluation/claimed.py", "read_bytes"): OURS,
    ("lowering/sources.py", "open"): OURS,
    ("lowering/sources.py", "read_bytes"): "our own cache: what does not parse is not used",
    ("lowering/sources.py", "json.loads"): "our own cache: what does not parse is not used",
    ("qualification/statement.py", "json.loads"): OURS,
    ("qualification/statement.py", "read_text"): OURS,
    ("qualification/statement.py", "read_bytes"): OURS,
    ("targets/vulkan.py", "json.loads"): OURS,
    ("targets/vulkan.py", "read_text"): OURS,
    ("doctor.py", "read_bytes"): OURS,
    ("lowering/cache.py", "read_bytes"): "our own cache: checked against its digest",
    ("lowering/cache.py", "pickle.loads"): "our own cache: checked against its digest",
    ("evaluation/collect.py", "read_bytes"): USERS,
    ("evaluation/forkserver.py", "os.fdopen"): "what a model prints to",
    ("evaluation/forkserver.py", "os.open"): "/dev/null",
    ("evaluation/forkserver.py", "pickle.loads"): "sent by our own parent",
    ("evaluation/forkserver.py", "write_text"): "/proc",
    ("targets/borrowed.py", "read_text"): "/proc",
    ("targets/environment.py", "read_text"): "/proc",
    ("targets/memory.py", "read_text"): "/proc",
    ("runtime/probe.py", "print"): "the answer of a probe, which imports nothing of ours",
    ("targets/probe.py", "print"): "the answer of a probe, which imports nothing of ours",
    ("attribution/origin.py", "json.loads"): "what our own lowering noted with each operator",
    ("targets/precise.py", "write_bytes"): TEMPORARY,
    ("targets/precise.py", "write_text"): TEMPORARY,
    ("targets/precise.py", "numpy.load"): TEMPORARY,
    ("targets/vgf_runner.py", "write_bytes"): TEMPORARY,
    ("targets/validation.py", "write_text"): TEMPORARY,
    ("targets/vulkan.py", "write_text"): TEMPORARY,
    ("targets/executor.py", "write_bytes"): TEMPORARY,
    ("targets/executor.py", "open"): TEMPORARY,
    ("formats/convert.py", "write_bytes"): TEMPORARY,
    ("formats/convert.py", "read_bytes"): TEMPORARY,
    ("lowering/lower.py", "read_bytes"): TEMPORARY,
    ("packs/build.py", "write_bytes"): TEMPORARY,
    ("packs/archive.py", "read_bytes"): TEMPORARY,
    ("tosatests/generate.py", "numpy.load"): TEMPORARY,
    ("tosatests/generate.py", "json.loads"): TEMPORARY,
    ("tosatests/generate.py", "read_text"): TEMPORARY,
    ("tosatests/generate.py", "read_bytes"): TEMPORARY,
    ("tosatests/agreement.py", "os.open"): "/dev/null",
    ("packs/archive.py", "zipfile"): "the door of packs: members are listed and checked before one is read",
    ("packs/archive.py", "open"): "the door of packs",
}


def called(tree: ast.AST) -> Iterator[str]:
    """What a module uses of the above, by name."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                names[item.asname or item.name.partition(".")[0]] = item.name
                if item.name.partition(".")[0] in MODULES:
                    yield item.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {item.asname or item.name: f"{node.module}.{item.name}" for item in node.names}
            if node.module.partition(".")[0] in MODULES:
                yield node.module.partition(".")[0]
    for node in ast.walk(tree):
        name = dotted(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""
        first, dot, rest = name.partition(".")
        full = names.get(first, first) + dot + rest
        if full in FUNCTIONS:
            yield full
        elif isinstance(node, ast.Attribute) and node.attr in METHODS and first not in ("untrusted", "files"):
            yield node.attr


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    inner = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if isinstance(node, ast.Attribute) and inner else ""


def used() -> set[tuple[str, str]]:
    return {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in PACKAGE.rglob("*.py")
        if path.name not in DOORS or path.parent != PACKAGE
        for name in called(ast.parse(path.read_bytes()))
    }


def test_only_the_doors_read_print_and_write() -> None:
    assert sorted(used() - ALLOWED.keys()) == []


def test_every_exception_is_in_use() -> None:
    assert sorted(ALLOWED.keys() - used()) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open('x')", "open"),
        ("from pathlib import Path\nPath('x').open()", "open"),
        ("path.read_text()", "read_text"),
        ("self.path.read_bytes()", "read_bytes"),
        ("(folder / 'x').read_bytes()", "read_bytes"),
        ("list(map(Path.read_bytes, paths))", "read_bytes"),
        ("import json\njson.loads('x')", "json.loads"),
        ("import json as j\nj.load(x)", "json.load"),
        ("from json import loads as parse\nparse(x)", "json.loads"),
        ("import numpy as np\nnp.load(x)", "numpy.load"),
        ("from numpy import load\nload(x)", "numpy.load"),
        ("import os\nos.open('x', 0)", "os.open"),
        ("import zipfile", "zipfile"),
        ("from zipfile import ZipFile", "zipfile"),
        ("import xml.etree.ElementTree as tree", "xml"),
        ("import tomllib", "tomllib"),
        ("eval('x')", "eval"),
        ("print('x')", "print"),
        ("say = print", "print"),
        ("path.write_text('x')", "write_text"),
    ],
)
def test_the_rule_sees(source: str, found: str) -> None:
    assert found in set(called(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    ["untrusted.read_text(path)", "read_bytes(path)", "import json\njson.dumps(x)", "np.frombuffer(x)"],
)
def test_the_rule_lets_pass(source: str) -> None:
    assert set(called(ast.parse(source))) == set()
