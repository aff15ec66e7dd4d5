"""The stand-alone executor_runner: its files, and every way in which it may fail."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests import executor_runner
from vgf_conformance.formats.delegate import Port
from vgf_conformance.formats.pte import Executable
from vgf_conformance.targets import programs
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.executor import ExecutorRunner
from vgf_conformance.targets.process import LAST_WORDS
from vgf_conformance.vocabulary import Finding, Stage, Verdict

FLAT = Port((4,), "float32", (0,))
TRANSPOSED = Port((2, 3), "int8", (1, 0))
PROGRAM = Executable(b"program", "forward", (FLAT, None, TRANSPOSED), (FLAT, TRANSPOSED))
VALUES = np.arange(4, dtype=np.float32)
TABLE = np.arange(6, dtype=np.int8).reshape(2, 3)


def runner(folder: Path, mode: str = "copy", time_limit: float = 60) -> ExecutorRunner:
    return ExecutorRunner(executor_runner.install(folder), {executor_runner.MODE: mode}, time_limit)


def failure(made: ExecutorRunner, program: Executable = PROGRAM) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        made.execute(program, [VALUES, 5, TABLE])
    return caught.value


def kind(found: TargetFailure) -> tuple[Verdict, Stage, Finding]:
    return found.verdict, found.stage, found.finding


def test_inputs_and_outputs_are_raw_files_in_memory_order(tmp_path: Path) -> None:
    """The fake numbers outputs as inputs: number 1 is the plain value, which leaves no file."""
    program = Executable(b"program", "forward", (TRANSPOSED, FLAT), (Port((3, 2), "int8", (0, 1)), FLAT))
    outputs = runner(tmp_path).execute(program, [TABLE, VALUES])
    assert outputs.arrays[0].tolist() == TABLE.T.tolist()
    assert outputs.arrays[1].tolist() == VALUES.tolist()
    assert list(outputs.faults()) == []
    back = runner(tmp_path).execute(Executable(b"program", "forward", (TRANSPOSED,), (TRANSPOSED,)), [TABLE])
    assert back.arrays[0].tolist() == TABLE.tolist()


def test_a_plain_value_counts_as_an_input(tmp_path: Path) -> None:
    """Its file is empty, so the fake leaves the output of its number unwritten."""
    found = failure(runner(tmp_path))
    assert kind(found) == (Verdict.FAIL, Stage.RUN, Finding.UNWRITTEN)
    assert found.message == "the ExecuTorch runtime: executor_runner: output-1.bin was not written"
    assert found.log == "executor_runner: last words"


@pytest.mark.parametrize(
    ("mode", "expected", "message"),
    [
        (
            "crash",
            (Verdict.CRASH, Finding.CRASHED),
            "the ExecuTorch runtime: executor_runner was ended by SIGSEGV",
        ),
        ("refuse", (Verdict.FAIL, Finding.RAISED), "executor_runner ended with exit status 1"),
        ("silent", (Verdict.FAIL, Finding.UNWRITTEN), "executor_runner: output-0.bin was not written"),
        ("short", (Verdict.FAIL, Finding.UNWRITTEN), "output-0.bin has 15 bytes, should have 16"),
        ("endless", (Verdict.FAIL, Finding.UNWRITTEN), "output-0.bin is too large: 1099511627776 bytes"),
        ("link", (Verdict.FAIL, Finding.UNWRITTEN), "output-0.bin is a link"),
    ],
)
def test_a_runner_that_fails(
    mode: str, expected: tuple[Verdict, Finding], message: str, tmp_path: Path
) -> None:
    found = failure(runner(tmp_path, mode))
    assert (found.verdict, found.finding) == expected
    assert message in found.message
    assert found.log == "executor_runner: last words"


def test_the_end_of_a_long_log_is_kept(tmp_path: Path) -> None:
    found = failure(runner(tmp_path, "talk"))
    assert found.message == "the ExecuTorch runtime: executor_runner ended with exit status 1"
    assert found.log.endswith("on and on\nthe end")
    assert len(found.log) <= LAST_WORDS


def test_of_a_long_log_the_middle_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LIMIT", 3)
    (tmp_path / "log").write_bytes(b"0abcdefghijk")
    with (tmp_path / "log").open("rb") as log:
        assert programs.said(log.fileno(), 6) == "fghijk"
        assert programs.said(log.fileno(), 1) == "abc\n... 5 bytes ...\nijk"


def test_an_exit_status_comes_with_the_logs_own_lines(tmp_path: Path) -> None:
    """Of a log that is longer than what is read of it; times are left out, as they differ each time."""
    found = failure(runner(tmp_path, "log"))
    assert kind(found) == (Verdict.FAIL, Stage.RUN, Finding.RAISED)
    assert found.message == (
        "the ExecuTorch runtime: executor_runner ended with exit status 1 (its log ends: "
        "[VGFSetup.cpp:1497] Failed to create VGF header decoder; "
        "[VGFBackend.cpp:538] Failed to process VGF blob.; "
        "[method.cpp:128] Init failed for backend VgfBackend: 0x1)"
    )
    assert len(found.log) <= 2000


def test_a_runner_that_hangs_ends_with_all_that_it_started(tmp_path: Path) -> None:
    start = time.monotonic()
    found = failure(runner(tmp_path, "hang", time_limit=2))
    assert kind(found) == (Verdict.TIMEOUT, Stage.RUN, Finding.HUNG)
    assert found.message == "the ExecuTorch runtime: executor_runner did not end within 2 s: it was killed"
    assert time.monotonic() - start < 600
    deadline = time.monotonic() + 300
    # What was killed takes a moment to be gone.
    while (left := _started_with(f"{executor_runner.MODE}=hang".encode())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def _started_with(variable: bytes) -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*") if _has(path, variable)]


def _has(process: Path, variable: bytes) -> bool:
    try:
        return variable in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def test_two_runs_that_differ(tmp_path: Path) -> None:
    program = Executable(b"program", "forward", (FLAT,), (FLAT,))
    outputs = runner(tmp_path, "drift").execute(program, [VALUES])
    assert list(outputs.faults()) == [(Finding.UNREPEATABLE, "output 0: two runs on the same inputs differ")]


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    path = executor_runner.install(tmp_path)
    path.write_bytes(b"\x7fELF and nothing else")
    found = failure(ExecutorRunner(path, {}, 60))
    assert (found.verdict, found.finding) == (Verdict.ERROR, Finding.RAISED)
    assert found.message == f"{path} does not start (Exec format error)"


@pytest.mark.parametrize(
    ("program", "lacks"),
    [
        (Executable(b"", "forward", (FLAT,), (None,)), "writes no outputs but tensors"),
        (Executable(b"", "forward", (Port((-1,), "int8", (0,)),), (FLAT,)), "dynamic shapes"),
    ],
)
def test_what_the_runner_cannot_do_is_unsupported(program: Executable, lacks: str, tmp_path: Path) -> None:
    found = failure(runner(tmp_path, "crash"), program)
    assert kind(found) == (Verdict.UNSUPPORTED, Stage.RUN, Finding.CAPABILITY)
    assert lacks in found.message
