"""The cache's key knows every file that lowering executes, and a start does not read them all again."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vgf_conformance.lowering import sources, versions
from vgf_conformance.lowering.sources import SourceIndex

HOUR = 3600


def package(folder: Path) -> Path:
    """A package of a few files, written an hour ago, that the import system finds."""
    root = folder / "scratch_package"
    (root / "passes").mkdir(parents=True)
    for name, text in (
        ("__init__.py", ""),
        ("passes/fold.py", "LIMIT = 60\n"),
        ("passes/rules.yaml", "a: 1\n"),
        ("resize.glsl", "void main() {}\n"),
    ):
        (root / name).write_text(text)
        age(root / name)
    return root


def age(path: Path) -> None:
    then = path.stat().st_mtime - HOUR
    os.utime(path, (then, then))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return package(tmp_path)


def digest(folder: Path) -> str:
    index = SourceIndex(folder / "index.json")
    found = index.digest("scratch_package")
    index.save()
    return found


def same_size_and_time(root: Path) -> None:
    path = root / "passes/fold.py"
    status = path.stat()
    path.write_text("LIMIT = 61\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda root: (root / "passes/fold.py").write_text("LIMIT = 0\n"), id="edited"),
        pytest.param(same_size_and_time, id="edited, with the same size and time"),
        pytest.param(lambda root: (root / "passes/rules.yaml").write_text("a: 2\n"), id="data"),
        pytest.param(lambda root: (root / "resize.glsl").write_text("void main() { }\n"), id="shader"),
        pytest.param(lambda root: (root / "passes/new.py").write_text(""), id="added"),
        pytest.param(lambda root: (root / "passes/fold.py").unlink(), id="removed"),
        pytest.param(lambda root: (root / "resize.glsl").rename(root / "other.glsl"), id="renamed"),
    ],
)
def test_every_change_of_a_package_changes_its_digest(
    change: Callable[[Path], object], scratch: Path, tmp_path: Path
) -> None:
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    change(scratch)
    assert digest(tmp_path) != before


def test_a_file_that_changes_twice_within_its_time_stamp_is_read_again(scratch: Path, tmp_path: Path) -> None:
    path = scratch / "passes/fold.py"
    path.write_text("LIMIT = 1\n")
    status = path.stat()
    before = digest(tmp_path)
    with path.open("r+") as file:
        file.write("LIMIT = 2\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest(tmp_path) != before


def test_bytecode_does_not_count(scratch: Path, tmp_path: Path) -> None:
    before = digest(tmp_path)
    (scratch / "__pycache__").mkdir()
    (scratch / "__pycache__/fold.cpython-311.pyc").write_bytes(b"x")
    assert digest(tmp_path) == before


def test_what_did_not_change_is_not_read_again(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(tmp_path)
    monkeypatch.setattr(sources, "_content_digest", lambda path: pytest.fail(f"{path} is read"))
    assert digest(tmp_path) == before


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": [[1], 2, 3]}', "{"])
def test_a_damaged_index_costs_no_more_than_time(content: str, scratch: Path, tmp_path: Path) -> None:
    before = digest(tmp_path)
    (tmp_path / "index.json").write_text(content)
    assert digest(tmp_path) == before


def test_links_of_an_editable_installation_are_followed_once(scratch: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(scratch / "passes", elsewhere)
    (scratch / "passes").symlink_to(elsewhere)
    (elsewhere / "loop").symlink_to(scratch)
    before = digest(tmp_path)
    (elsewhere / "fold.py").write_text("LIMIT = 9\n")
    assert digest(tmp_path) != before


@pytest.mark.parametrize(
    "edited",
    [
        "torch/export/_trace.py",
        "torch/_decomp/decompositions.py",
        "torch/fx/graph.py",
        "executorch/exir/passes/constant_prop_pass.py",
        "executorch/exir/program/_program.py",
        "executorch/backends/transforms/fuse_view_copy.py",
        "executorch/backends/arm/_passes/arm_pass_manager.py",
        "executorch/backends/arm/quantizer/arm_quantizer.py",
        "torchao/quantization/pt2e/observer.py",
        "torchao/quantization/pt2e/quantize_pt2e.py",
        "tosa_serializer/__init__.py",
        "model_converter/__init__.py",
        "vgf_conformance/lowering/quantise.py",
        "vgf_conformance/formats/convert.py",
    ],
)
def test_an_edit_anywhere_in_what_lowering_executes_changes_the_versions(
    edited: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = versions.versions()
    name, _, inner = edited.partition("/")
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.submodule_search_locations
    copy = tmp_path / name
    mirror(Path(spec.submodule_search_locations[0]), copy, Path(inner))
    with (copy / inner).open("a") as file:
        file.write("# edited\n")
    real = importlib.util.find_spec

    def find_spec(package: str) -> importlib.machinery.ModuleSpec | None:
        if package.partition(".")[0] != name:
            return real(package)
        found = importlib.machinery.ModuleSpec(package, None, is_package=True)
        found.submodule_search_locations = [str(tmp_path.joinpath(*package.split(".")))]
        return found

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    versions.versions.cache_clear()
    try:
        assert versions.versions() != before
    finally:
        versions.versions.cache_clear()


def mirror(source: Path, target: Path, inner: Path) -> None:
    """A folder of links to all that ``source`` holds, but for a copy of the file ``inner``."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.name != inner.parts[0]:
            (target / entry.name).symlink_to(entry)
    if len(inner.parts) == 1:
        shutil.copy2(source / inner, target / inner)
    else:
        mirror(source / inner.parts[0], target / inner.parts[0], Path(*inner.parts[1:]))
