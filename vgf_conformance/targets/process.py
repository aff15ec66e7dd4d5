"""A target in a worker process: started on demand, killed after a time limit, restarted after a crash."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.pte import Executable
from vgf_conformance.launch import python_command, python_environment, signal_name
from vgf_conformance.targets import vulkan
from vgf_conformance.targets.base import Outputs, Target, TargetFailure
from vgf_conformance.targets.borrowed import BorrowedProcess
from vgf_conformance.targets.capabilities import Platform
from vgf_conformance.targets.capable import CapableTarget
from vgf_conformance.targets.programs import said
from vgf_conformance.targets.validation import messages
from vgf_conformance.vocabulary import TIME_LIMIT, Finding, Stage, Verdict

#: Seconds in which a worker must have started: a busy machine is no fault of the delegate's.
START_LIMIT = 300.0
#: Seconds that a worker gets to leave by itself.
CLOSE_LIMIT = 5.0
#: Characters of the worker's output kept as its last words.
LAST_WORDS = 2000


class ProcessTarget:
    """A Target whose runner lives in a process of its own.

    ``runner`` is ``module:Class``; ``environment`` is added to the worker's environment. ``worker`` is what
    messages call the process, and ``explain`` makes of what it wrote the end of a refusal's message.
    """

    def __init__(
        self,
        name: str,
        runner: str,
        environment: Mapping[str, str] | None = None,
        driver: str = "",
        time_limit: float = TIME_LIMIT,
        worker: str = "the worker",
        explain: Callable[[str], str] | None = None,
    ) -> None:
        self.name = name
        self.driver = driver
        self._runner = runner
        self._worker = worker
        self._explain = explain
        self._environment = dict(environment or {})
        self._time_limit = time_limit
        self._delegates: tuple[Delegate | Executable, ...] = ()
        self._process: subprocess.Popen[bytes] | BorrowedProcess | None = None
        self._connection: Connection | None = None
        self._log: BinaryIO | None = None
        self._heard = 0
        #: A failure that nobody was told of yet.
        self._died: TargetFailure | None = None
        self._lost: tuple[object, ...] = ()
        #: Whether a request waits for its answer, or was given up before that came.
        self.waiting = False

    def load(self, delegates: Sequence[Delegate | Executable]) -> None:
        """Make ``delegates`` (whatever the runner builds) current; those already loaded stay built."""
        if tuple(delegates) == self._delegates:
            return
        self._delegates = tuple(delegates)
        if self._process is not None and not self.waiting:
            try:
                self._ask(("load", self._delegates), START_LIMIT)
            except TargetFailure as failure:
                failure.message += ", after the run before this one"
                self._died = failure

    def run(self, index: int, inputs: Sequence[Any]) -> Outputs:
        """Run delegate ``index``; raises TargetFailure for a refusal, a crash or a hang."""
        died, self._died = self._died, None
        if died is not None:
            raise died
        self._ready()
        outputs = self._ask(("run", index, list(inputs)), self._time_limit)
        assert isinstance(outputs, Outputs)
        return replace(outputs, validation=messages(self._said()))

    def lend(self) -> None:
        """Have a worker for processes that are forked from this one, each of which calls ``borrow``.

        They use it one after another.
        """
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._start()

    def borrow(self) -> None:
        """Use the worker of the process from which this one was forked; another one where it is lost."""
        if self._process is not None and self._log is not None:
            self._process = BorrowedProcess(self._process.pid)
            self._heard = os.fstat(self._log.fileno()).st_size

    def kill(self) -> None:
        """End the worker at once, whatever it does."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        """End the worker, which leaves by itself once its pipe is closed; the next run starts a new one."""
        if self._process is None:
            return
        if self._connection is not None:
            self._connection.close()
        # One that is borrowed stays for others.
        if not isinstance(self._process, BorrowedProcess):
            try:
                self._process.wait(CLOSE_LIMIT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for resource in (self._connection, self._log):
            if resource is not None:
                resource.close()
        self._process = self._connection = self._log = None

    def _ready(self) -> None:
        """See that there is a worker, with the delegates, that has nothing else to answer."""
        if self.waiting:
            self.kill()
        if self._process is None:
            self._start()
            self._ask(("load", self._delegates), START_LIMIT)

    def _start(self) -> None:
        self.waiting = False
        ours, theirs = socket.socketpair()
        # Outlives this call: the worker's output, read when it dies.
        self._log = tempfile.TemporaryFile(prefix="vgf-conformance-worker-")  # noqa: SIM115 - close() does
        self._heard = 0
        self._process = subprocess.Popen(
            python_command("vgf_conformance.targets.worker", str(theirs.fileno()), self._runner),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            env=python_environment(self._environment),
        )
        theirs.close()
        self._connection = Connection(ours.detach())

    def _ask(self, request: tuple[Any, ...], limit: float) -> Any:
        assert self._connection is not None
        self.waiting = True
        try:
            self._connection.send(request)
            if not self._connection.poll(limit):
                raise self._hung(limit)
            reply = self._connection.recv()
        except (EOFError, OSError) as error:
            if isinstance(self._process, BorrowedProcess) and getattr(error, "errno", 0) == errno.EBADF:
                return self._ask_another(request, limit)
            raise self._crashed() from error
        self.waiting = False
        if reply[0] == "ok":
            return reply[1]
        if reply[0] == "refused":
            _, verdict, stage, finding, message = reply
            text = self._said()
            message += self._explain(text) if self._explain else ""
            raise TargetFailure(verdict, stage, finding, message, self._last_words(text))
        raise TargetFailure(
            Verdict.ERROR, Stage.RUN, Finding.RAISED, reply[1].strip().splitlines()[-1], reply[1]
        )

    def _ask_another(self, request: tuple[Any, ...], limit: float) -> Any:
        """Ask a worker of our own where somebody closed the descriptors of the one that was borrowed."""
        # Kept, for whatever closes them would close what has their numbers by now.
        self._lost = (self._connection, self._log)
        self._process = self._connection = self._log = None
        self._start()
        if request[0] != "load":
            self._ask(("load", self._delegates), START_LIMIT)
        return self._ask(request, limit)

    def _hung(self, limit: float) -> TargetFailure:
        message = f"no answer within {limit:g} s: {self._worker} was killed"
        words = self._last_words(self._said())
        if self._process is not None:
            self._process.kill()
        self.close()
        return TargetFailure(Verdict.TIMEOUT, Stage.RUN, Finding.HUNG, message, words)

    def _crashed(self) -> TargetFailure:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        words = self._last_words(self._said())
        self.close()
        if status is not None and status < 0:
            what = f"{self._worker} was ended by {signal_name(status)}"
        else:
            what = f"{self._worker} ended with exit status {status}"
        return TargetFailure(Verdict.CRASH, Stage.RUN, Finding.CRASHED, what, words)

    def _said(self) -> str:
        """The end of what the worker wrote since this was last asked."""
        assert self._log is not None
        start, self._heard = self._heard, os.fstat(self._log.fileno()).st_size
        return said(self._log.fileno(), start)

    def _last_words(self, text: str) -> str:
        """The end of the worker's output, after what the validation layer said in this call, ``text``."""
        assert self._log is not None
        size = os.fstat(self._log.fileno()).st_size
        words = os.pread(self._log.fileno(), LAST_WORDS, max(0, size - LAST_WORDS))
        return "\n".join([*messages(text), words.decode(errors="replace").strip()])


def reference_target(time_limit: float = TIME_LIMIT) -> ProcessTarget:
    """The TOSA reference model."""
    # The reference model starts gdb for a backtrace when it meets an invalid graph, which takes
    # 8 to 17 s; it finds gdb through PATH. An empty PATH would mean the working directory.
    return ProcessTarget(
        "reference",
        "vgf_conformance.targets.reference:ReferenceRunner",
        environment={"PATH": os.devnull},
        time_limit=time_limit,
    )


def vulkan_target(name: str, platform: Platform, folder: Path, time_limit: float = TIME_LIMIT) -> Target:
    """The target ``name`` on ``platform``; layer manifests are written into ``folder``.

    What the device cannot do is refused before it gets there.
    """
    process = ProcessTarget(
        name,
        "vgf_conformance.targets.vgf_runner:VgfRunner",
        environment=vulkan.layered_environment(platform.driver, platform.layers, folder, platform.validation),
        driver=recorded_driver(name, platform),
        time_limit=time_limit,
    )
    return CapableTarget(process, platform)


def recorded_driver(name: str, platform: Platform) -> str:
    """What the records of the target ``name`` on ``platform`` have as their driver."""
    driver = platform.driver.name
    return f"{driver}, {platform.layers_text}" if name == "vulkan" else driver


def emulation_target(driver: vulkan.Driver, folder: Path, time_limit: float = TIME_LIMIT) -> ProcessTarget:
    """The emulation layers over ``driver``, whatever it says of itself; layer manifests go into ``folder``.

    Raises UserError where the layers are missing.
    """
    return ProcessTarget(
        "emulation",
        "vgf_conformance.targets.vgf_runner:VgfRunner",
        environment=vulkan.emulation_environment(driver, folder),
        driver=driver.name,
        time_limit=time_limit,
    )
