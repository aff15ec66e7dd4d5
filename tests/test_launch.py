"""How programs are started: what their import path and their environment hold, whatever ours do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.comparison.build import GraphBuilder
from vgf_conformance import launch
from vgf_conformance.formats import convert
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.launch import import_command, leave_working_directory, python_environment
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.precise import PreciseFailure, precise_results
from vgf_conformance.targets.process import reference_target

ROOT = Path(__file__).parents[1]

#: A program that has this package and the standard library only; its child says what its import path is.
STARTS = """
import subprocess, sys
from vgf_conformance.launch import import_command, python_environment
done = subprocess.run(import_command("says"), env=python_environment(), stdout=subprocess.PIPE, check=True)
sys.stdout.buffer.write(done.stdout)
"""
SAYS = "import json, sys; print(json.dumps(sys.path))"


def path_of_a_child(
    options: list[str], folder: Path, python: Path = Path(sys.executable), **variables: str
) -> list[str]:
    """The import path of a child of a program that is started in ``folder``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(python), *options],
        cwd=folder,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """An installation of this package, with the module that the child imports; the name has its own traps."""
    folder = tmp_path / "a library"
    folder.mkdir()
    (folder / "vgf_conformance").symlink_to(ROOT / "vgf_conformance")
    (folder / "says.py").write_text(SAYS)
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working directory whose own module would be imported first."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("json", "says", "sitecustomize"):
        (folder / f"{name}.py").write_text("raise SystemExit('imported from the working directory')")
    return folder


def program(folder: Path) -> Path:
    file = folder / "bin" / "program"
    file.parent.mkdir(exist_ok=True)
    file.write_text(STARTS)
    return file


def test_an_installation_that_pythonpath_names(library: Path, here: Path, tmp_path: Path) -> None:
    path = path_of_a_child([str(program(tmp_path))], here, PYTHONPATH=str(library))
    assert str(library) in path
    assert not {"", str(here)} & {*path}


def test_python_puts_the_working_directory_first(library: Path, here: Path) -> None:
    for name in ("json", "sitecustomize"):
        (here / f"{name}.py").unlink()
    path = path_of_a_child(["-c", STARTS], here, PYTHONPATH=str(library))
    assert not {"", str(here)} & {*path}


@pytest.mark.parametrize("entries", ["{library}:", ":{library}", "{library}:.", ".:{library}:./:nowhere"])
def test_empty_and_relative_entries(entries: str, library: Path, here: Path, tmp_path: Path) -> None:
    """They are on this process's path, by the user's own word; its children do not follow."""
    for name in ("json", "sitecustomize"):
        (here / f"{name}.py").unlink()
    searched = entries.format(library=library)
    path = path_of_a_child([str(program(tmp_path))], here, PYTHONPATH=searched)
    assert str(library) in path
    assert not {"", ".", str(here)} & {*path}


def test_another_name_of_the_working_directory(library: Path, here: Path, tmp_path: Path) -> None:
    (here / "json.py").unlink()
    (tmp_path / "link").symlink_to(here)
    script = f"import sys; sys.path.insert(0, {str(tmp_path / 'link')!r})\n{STARTS}"
    path = path_of_a_child(["-c", script], here, PYTHONPATH=str(library), PYTHONSAFEPATH="1")
    assert str(tmp_path / "link") not in path


def test_a_path_that_pythonpath_cannot_hold(tmp_path: Path, here: Path) -> None:
    folder = tmp_path / "one:two three"
    folder.mkdir()
    (folder / "vgf_conformance").symlink_to(ROOT / "vgf_conformance")
    (folder / "says.py").write_text(SAYS)
    (folder / "program").write_text(STARTS)
    assert str(folder) in path_of_a_child([str(folder / "program")], here)


def test_an_editable_installation_in_a_virtual_environment(library: Path, here: Path, tmp_path: Path) -> None:
    """One half by a ``.pth`` file that names a folder, the other by one that installs an import hook."""
    venv.create(tmp_path / "environment", with_pip=False, symlinks=True)
    (site,) = tmp_path.glob("environment/lib/python*/site-packages")
    (site / "editable.pth").write_text(f"{library}\n")
    (library / "says.py").unlink()
    hook = f"""
import importlib.machinery, importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "says":
            return importlib.util.spec_from_file_location(name, {str(tmp_path / "hooked.py")!r})
sys.meta_path.insert(0, Finder)
"""
    (site / "hook.py").write_text(hook)
    (site / "hook.pth").write_text("import hook\n")
    (tmp_path / "hooked.py").write_text(SAYS)
    python = tmp_path / "environment" / "bin" / "python"
    path = path_of_a_child([str(program(tmp_path))], here, python)
    assert {str(library), str(site)} <= {*path}
    # Where the working directory is such an installation's, it is found as everywhere else.
    assert str(library) in path_of_a_child([str(program(tmp_path))], library, python)


def test_a_zip_file_that_is_a_program(here: Path, tmp_path: Path) -> None:
    file = tmp_path / "program.pyz"
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("__init__", "launch"):
            archive.write(ROOT / "vgf_conformance" / f"{name}.py", f"vgf_conformance/{name}.py")
        archive.writestr("says.py", SAYS)
        archive.writestr("__main__.py", STARTS)
    assert str(file) in path_of_a_child([str(file)], here)


def test_the_package_lies_in_the_working_directory(library: Path) -> None:
    (library / "vgf_conformance").unlink()
    (library / "vgf_conformance").mkdir()
    for name in ("__init__", "launch"):
        source = ROOT / "vgf_conformance" / f"{name}.py"
        (library / "vgf_conformance" / f"{name}.py").write_text(source.read_text())
    assert str(library) in path_of_a_child(["-c", STARTS], library)


def test_searched_folders_do_not_depend_on_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", ":/usr/bin:bin:.")
    monkeypatch.setenv("LD_LIBRARY_PATH", ";/one:$ORIGIN/lib:./two:")
    monkeypatch.setenv("PYTHONPATH", "three::/four")
    found = python_environment({"LD_DEBUG": "libs"})
    assert (found["PATH"], found["LD_LIBRARY_PATH"]) == ("/usr/bin", "/one:$ORIGIN/lib")
    assert (found["PYTHONPATH"], found["LD_DEBUG"]) == ("/four", "libs")
    for nothing in ("", ".", ":"):
        monkeypatch.setenv("PATH", nothing)
        assert python_environment()["PATH"] == os.defpath
    monkeypatch.delenv("PATH")
    assert "PATH" not in python_environment()


def test_a_process_leaves_its_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    for first in ("", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [first, *sys.path])
        before = sys.path[1:]
        leave_working_directory()
        assert sys.path == before
    assert not os.environ["PATH"].startswith(".")
    # What is not first was put there by an installation.
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    leave_working_directory()
    assert sys.path[-1] == str(tmp_path)


@pytest.mark.parametrize("entry", ["\0", "x" * 5000, "loop"])
def test_entries_that_are_no_folders(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    leave_working_directory()
    assert import_command("json")
    assert not launch._is_here(entry)


def plant(folder: Path, name: str) -> Path:
    """A program in ``folder`` that leaves a file where it is run."""
    (folder / name).write_text(f"#!/bin/sh\ntouch '{folder / 'RAN'}'\n")
    (folder / name).chmod(0o755)
    return folder / "RAN"


def invalid_graph() -> bytes:
    build = GraphBuilder()
    return build.finish(build.operator("ABS", [build.input("x", [4], "float32")], [5], "float32"))


def test_the_reference_model_starts_no_debugger_that_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts gdb where a graph is invalid, both as a binding and as a program."""
    ran = plant(tmp_path, "gdb")
    monkeypatch.chdir(tmp_path)
    target = reference_target()
    given, wanted = (Port((size,), "float32", (0,)) for size in (4, 5))
    target.load([Delegate("abs", invalid_graph(), b"", (given,), (wanted,), nodes=1)])
    with pytest.raises(TargetFailure, match="TOSA"):
        target.run(0, [np.ones(4, np.float32)])
    target.close()
    graph = invalid_graph()
    with pytest.raises(PreciseFailure):
        precise_results(graph, read_graph(graph), [np.ones(4, np.float32)])
    assert not ran.exists()


def test_a_converter_that_lies_here_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model-converter", "model_converter"):
        plant(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MODEL_CONVERTER_PATH", raising=False)
    monkeypatch.setenv("PATH", ":.")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert convert.find_converter() is None
