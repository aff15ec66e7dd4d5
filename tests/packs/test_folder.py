"""Packs for the stand-alone scenario runner, and the outputs that it leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.full_disk import full_disk
from tests.packs.helpers import call, refused
from vgf_conformance.packs.folder import judge_outputs, unpack
from vgf_conformance.packs.pack import Pack
from vgf_conformance.results.record import Record
from vgf_conformance.targets.vulkan import choose_driver, emulation_environment
from vgf_conformance.vocabulary import Finding, UserError, Verdict

Capture = pytest.CaptureFixture[str]

PAIR = Path("operators.test_small.pair.rank2-FP-none") / "call0"


@pytest.fixture
def folder(pack: Pack, tmp_path: Path) -> Path:
    """The pack laid out, with the right outputs in it."""
    unpack(pack, tmp_path / "device")
    for expected in (tmp_path / "device").glob("*/*/expected*.npy"):
        shutil.copy(expected, expected.with_name(expected.name.replace("expected", "output")))
    return tmp_path / "device"


def test_the_stand_alone_runner_runs_what_is_unpacked(small: Path, tmp_path: Path, capfd: Capture) -> None:
    device = tmp_path / "device"
    assert call(capfd, "unpack", small, "-o", device).code == 0
    layers = emulation_environment(choose_driver(None), tmp_path / "layers")
    calls = sorted(path.parent for path in device.glob("*/*/scenario.json"))
    assert len(calls) == 3
    for one in calls:
        subprocess.run(
            ["scenario_runner", "--scenario", "scenario.json", "--output", "."],
            cwd=one,
            env={**os.environ, **layers},
            check=True,
            capture_output=True,
        )
    answer = call(capfd, "verify", small, "--outputs", device)
    assert answer.code == 0, answer
    rows = [line.split() for line in answer.out.splitlines() if " device " in line]
    assert [row[:4] for row in rows] == [
        ["FP", "none", "device", "1"],
        ["INT", "a8w8-pc", "device", "1"],
        ["FP+bf16", "none", "device", "1"],
    ]


def test_an_unpacked_folder_says_how_to_go_on(folder: Path, pack: Pack) -> None:
    text = (folder / "README.txt").read_text()
    assert pack.sha256 in text
    assert "scenario_runner --scenario scenario.json --output ." in text
    assert {path.name for path in (folder / PAIR).iterdir()} >= {
        "scenario.json",
        "graph.vgf",
        "graph.tosa",
        "input0.npy",
        "expected1.npy",
        "exact1.npy",
    }


def test_right_outputs_pass(folder: Path, pack: Pack) -> None:
    assert [record.verdict for record in judge_outputs(pack, folder)] == [Verdict.PASS] * 3


def _missing(path: Path) -> None:
    path.unlink()


def _wrong(path: Path) -> None:
    np.save(path, np.load(path) + 1)


def _other_shape(path: Path) -> None:
    np.save(path, np.load(path).T)


def _other_dtype(path: Path) -> None:
    np.save(path, np.load(path).astype(np.float16))


@pytest.mark.parametrize(
    ("fault", "finding", "words"),
    [
        (_missing, Finding.UNWRITTEN, f"output 0 is missing: {PAIR}/output0.npy"),
        (_wrong, Finding.WRONG, "output 0"),
        (_other_shape, Finding.WRONG, "shape [5, 3], should be [3, 5]"),
        (_other_dtype, Finding.WRONG, "float16, should be float32"),
    ],
)
def test_other_outputs_fail(
    folder: Path, pack: Pack, fault: Callable[[Path], None], finding: Finding, words: str
) -> None:
    fault(folder / PAIR / "output0.npy")
    absolute, pair, narrow = judge_outputs(pack, folder)
    assert (absolute.verdict, narrow.verdict) == (Verdict.PASS, Verdict.PASS)
    assert (pair.verdict, pair.finding) == (Verdict.FAIL, finding)
    assert words in pair.message
    assert isinstance(pair, Record)


def _pickled(path: Path) -> None:
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)


def _huge(path: Path) -> None:
    np.save(path, np.zeros(100_000))


def _text(path: Path) -> None:
    path.write_text("3.14")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (_pickled, "holds pickled Python objects"),
        (_huge, "is too large: 800128 bytes, where 10120 are the most"),
        (_text, "is no .npy file"),
        (_folder, "is a folder, not a regular file"),
        (_pipe, "is a pipe, not a regular file"),
    ],
)
def test_outputs_that_are_none_are_refused(
    folder: Path, small: Path, capfd: Capture, fault: Callable[[Path], None], words: str
) -> None:
    fault(folder / PAIR / "output0.npy")
    refused(call(capfd, "verify", small, "--outputs", folder), "output0.npy", words)


def test_a_folder_of_something_else_is_refused(small: Path, tmp_path: Path, capfd: Capture) -> None:
    refused(call(capfd, "verify", small, "--outputs", tmp_path), "no folder of a case")
    (tmp_path / "file").write_text("")
    refused(call(capfd, "unpack", small, "-o", tmp_path), "exists and is not an empty folder")


def test_a_full_disk_while_unpacking(pack: Pack, tmp_path: Path) -> None:
    with full_disk(100), pytest.raises(UserError, match=r"cannot write .*: File too large"):
        unpack(pack, tmp_path / "out")
