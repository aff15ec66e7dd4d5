"""A worker that was started by the process from which this one was forked."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

#: Seconds between two looks at a process that is to end.
_STEP = 0.01


class BorrowedProcess:
    """The process ``pid`` as ``subprocess.Popen`` shows one's own.

    Only its parent can wait for it. Until the parent does, an ended process stays as a zombie, whose exit
    status the system shows (proc(5), the last field of ``/proc/PID/stat``).
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            fields = ["X", "0"]
        if self.returncode is None and fields[0] in "ZX":
            self.returncode = os.waitstatus_to_exitcode(int(fields[-1]))
        return self.returncode

    def wait(self, timeout: float) -> int:
        """The exit status, as soon as there is one; raises subprocess.TimeoutExpired."""
        end = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_STEP)
        return status

    def kill(self) -> None:
        """Kill it, where it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
