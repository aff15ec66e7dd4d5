"""Programs that are run to their end: what they write, leave running, or never end."""

from __future__ import annotations

import os
import signal
import time

import pytest

from vgf_conformance.launch import signal_name
from vgf_conformance.targets import programs
from vgf_conformance.targets.programs import Ended, run


def shell(script: str, seconds: float = 60) -> Ended | None:
    return run(["/bin/sh", "-c", script], os.environ, seconds)


def test_output_and_status() -> None:
    assert shell("echo out; echo err >&2; exit 3") == Ended(3, "out\n", "err\n")


def test_what_never_ends_is_killed() -> None:
    assert shell("sleep 1000", seconds=0.1) is None


def test_what_it_left_running_is_not_waited_for() -> None:
    start = time.monotonic()
    ended = shell("setsid sleep 20 & echo done")
    assert ended == Ended(0, "done\n", "")
    assert time.monotonic() - start < 15


def test_output_without_end_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LIMIT", 1000)
    ended = shell("yes | head -c 5000000; echo end")
    assert ended is not None
    assert len(ended.out) < 2100
    assert ended.out.endswith("y\nend\n")


def test_every_signal_has_a_name() -> None:
    assert signal_name(-signal.SIGSEGV) == "SIGSEGV"
    assert signal_name(-(signal.SIGRTMIN + 5)) == f"signal {signal.SIGRTMIN + 5}"
    ended = shell(f"kill -{signal.SIGRTMIN + 5} $$")
    assert ended is not None
    assert ended.status == -(signal.SIGRTMIN + 5)
