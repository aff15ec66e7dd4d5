"""Programs that are run to their end, and what they wrote: it may have no end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Bytes that are read of a log at its beginning, and at its end.
LIMIT = 2 << 20


@dataclass(frozen=True)
class Ended:
    """How a program ended, negative for a signal, and what it wrote."""

    status: int
    out: str
    err: str


def run(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> Ended | None:
    """Run ``command`` to its end; None where that takes longer than ``seconds``.

    What it started ends with it. What left its process group goes on, and is not waited for.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
        )
        status = wait(process, seconds)
        return None if status is None else Ended(status, said(out.fileno()), said(err.fileno()))


def wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit status of a process that leads its group; None where it did not end within ``seconds``.

    Whatever the group still has is killed.
    """
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def said(log: int, start: int = 0) -> str:
    """What the file with the descriptor ``log`` holds from byte ``start`` on.

    Of more than twice LIMIT bytes only the first and the last LIMIT are given.
    """
    end = os.fstat(log).st_size
    if end - start <= 2 * LIMIT:
        return _text(log, start, end)
    left_out = end - start - 2 * LIMIT
    return f"{_text(log, start, start + LIMIT)}\n... {left_out} bytes ...\n{_text(log, end - LIMIT, end)}"


def _text(log: int, start: int, end: int) -> str:
    return os.pread(log, max(0, end - start), start).decode(errors="replace")
