"""Commands in a folder full of traps: files that are named like modules, programs and libraries in use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

# Fixtures that are made once more here.
from tests.packs.conftest import pack, small, suite  # noqa: F401

ROOT = Path(__file__).parents[1]

MODULES = (
    *("numpy", "json", "vulkan", "vgfpy", "sitecustomize", "vgf_conformance"),
    *("usercustomize", "runpy", "importlib", "subprocess", "torch", "tabulate", "ml_dtypes", "executorch"),
)
PROGRAMS = ("model-converter", "model_converter", "gdb", "python3", "ldconfig", "gcc", "uname")

MODEL = """
import torch

profiles = ["FP"]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.abs(x)


def model():
    return Model()


def inputs():
    return (torch.randn(2, 3),)
"""


class Answer(NamedTuple):
    code: int
    out: str
    err: str


class Folder:
    """A working directory, with a program elsewhere that is started as the installed one is."""

    def __init__(self, path: Path, program: Path, cache: Path) -> None:
        path.mkdir()
        self.path = path
        self.trapped = path / "TRAPPED"
        self._program = program
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "VGF_CONFORMANCE_CACHE": str(cache),
            # As a careless "$VARIABLE:/folder" leaves them: the empty entry is the working directory.
            "PATH": f":{os.environ['PATH']}",
            "LD_LIBRARY_PATH": ":/no/such/folder",
        }

    def set_traps(self) -> None:
        for name in MODULES:
            (self.path / f"{name}.py").write_text(f"open({str(self.trapped)!r}, 'a').write(__name__)\n")
        for name in PROGRAMS:
            (self.path / name).write_text(f"#!/bin/sh\necho $0 >> '{self.trapped}'\n")
            (self.path / name).chmod(0o755)
        # Whoever loads this one gets no further.
        (self.path / "libvulkan.so.1").write_text("no library")

    def run(self, *arguments: object) -> Answer:
        """Run a command; its answer without what differs from run to run."""
        done = subprocess.run(
            [sys.executable, str(self._program), *map(str, arguments)],
            cwd=self.path,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert not self.trapped.exists(), self.trapped.read_text()
        out = re.sub(r"\d+(\.\d+)? (s|seconds|MB)\b", "...", done.stdout).replace(str(self.path), ".")
        return Answer(done.returncode, out, done.stderr)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an installation puts onto PATH: the script's own folder comes first on sys.path."""
    path = tmp_path_factory.mktemp("bin") / "vgf-conformance"
    path.write_text("import sys\nfrom vgf_conformance.cli import main\nsys.exit(main())\n")
    return path


@pytest.fixture
def folders(program: Path, tmp_path: Path, cache_folder: Path) -> tuple[Folder, Folder]:
    """One with traps, and one without."""
    trapped, other = (Folder(tmp_path / name, program, cache_folder) for name in ("trapped", "other"))
    trapped.set_traps()
    return trapped, other


def alike(folders: tuple[Folder, Folder], *arguments: object) -> Answer:
    """Run a command in both folders; the answers are the same."""
    first, second = (folder.run(*arguments) for folder in folders)
    assert first == second
    return first


def test_packs_and_results(folders: tuple[Folder, Folder], small: Path) -> None:  # noqa: F811
    run = alike(folders, "pack", "run", small, "-o", "run", "-k", "pair")
    assert (run.code, run.err) == (0, "")
    assert alike(folders, "pack", "verify", small).code == 0
    qualified = alike(
        folders, "qualify", small, "--product", "a driver", "-o", "submission", "--shard", "1/1"
    )
    assert "Traceback" not in qualified.err
    verified = alike(folders, "submission", "verify", "submission", "--pack", small)
    assert verified.out.strip()
    assert alike(folders, "report", "run", "-o", "reports").code == 0
    assert alike(folders, "merge", "run", "-o", "merged").code == 0
    assert alike(folders, "compare", "run", "merged").code == 0


def test_what_is_said_of_machine_and_driver(folders: tuple[Folder, Folder]) -> None:
    assert alike(folders, "capabilities").code == 0
    assert alike(folders, "capabilities", "--json", "--layers", "none").code == 0
    trapped, _ = folders
    diagnosis = trapped.run("doctor")
    assert diagnosis.code == 0
    assert "Packs can be run here, on" in diagnosis.out
    assert not re.search(r"^ +✗", diagnosis.out, re.MULTILINE), diagnosis.out


def test_a_model(folders: tuple[Folder, Folder]) -> None:
    """The model lies in the folder: its own imports are what they are elsewhere."""
    trapped, _ = folders
    (trapped.path / "model.py").write_text(MODEL)
    answer = trapped.run("check", "model.py", "--target", "reference")
    assert answer.code == 0, answer
    assert "FP         none      reference  pass" in answer.out


def test_python_itself_puts_the_folder_on_the_path(folders: tuple[Folder, Folder]) -> None:
    """``python -m``: what Python imports before the command has a say is out of reach, the rest is not."""
    trapped, _ = folders
    trapped.set_traps()
    for name in ("json", "sitecustomize", "vgf_conformance", "runpy", "importlib", "subprocess"):
        (trapped.path / f"{name}.py").unlink()
    trapped._program = Path("-m")
    assert trapped.run("vgf_conformance.cli", "capabilities").code == 0


def test_a_working_directory_that_was_removed(program: Path, tmp_path: Path) -> None:
    script = 'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" "$3" capabilities'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(tmp_path / "gone"), sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Emulation Layer: conformant" in done.stdout


def test_a_relative_path_in_a_working_directory_that_was_removed(program: Path, tmp_path: Path) -> None:
    script = 'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" "$3" capabilities --driver ./icd.json'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(tmp_path / "gone"), sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "vgf-conformance: ./icd.json: there is no working directory any more: give an absolute path\n"
    )


def test_the_checkout_itself(program: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vgf_conformance.cli", "capabilities"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
