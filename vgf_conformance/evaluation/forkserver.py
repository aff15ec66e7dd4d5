"""Loads PyTorch and ExecuTorch once, and forks a process for each model file: see ``evaluation.isolated``.

A request names a function, a model file, the targets and further arguments. The forked process calls the
function, which sends messages; the server says how that process ended. The targets' workers serve one
process after another, and are replaced where one was left in the middle of a request.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from fcntl import F_DUPFD_CLOEXEC, fcntl
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from vgf_conformance.targets.base import Target
from vgf_conformance.targets.lending import workers
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.terminal import one_line
from vgf_conformance.vocabulary import UserError

#: Of prctl(2): the signal that a process gets when the one that started it ends.
_PARENT_DEATH_SIGNAL = 1
#: Descriptors that a model is not likely to close or to write to begin here.
_HIGH = 900
#: What the system ends first when memory runs out.
_FIRST = "1000"
#: Exit statuses of a process that has done its work, and has left no worker in the middle of a request: where
#: nothing was lowered, and where something was.
_DONE, _LOWERED = 120, 121

#: Sends one message: a word and a JSON value.
Send = Callable[[str, Any], None]
#: What is done with a model file: called with what sends, the file, the targets and further arguments; says
#: whether something was lowered.
Work = Callable[..., bool]


class Server:
    """Forks processes that send to ``messages`` and print to ``printed``, one at a time."""

    def __init__(self, requests: Connection, messages: int, printed: int) -> None:
        self._requests = requests
        self._messages = messages
        self._printed = printed
        self._opened = b""
        self._targets: dict[str, Target] = {}
        self._warm: set[str] = set()

    def serve(self) -> None:
        """Serve requests until the other end hangs up, or SIGTERM comes."""
        try:
            while True:
                function, file, targets, arguments = self._requests.recv()
                module, _, name = function.partition(":")
                work = getattr(importlib.import_module(module), name)
                self._use(targets)
                self._warm_up("warm_export")
                status = self._run(work, file, arguments)
                write_message(self._messages, "ended", status)
                if status == _LOWERED:
                    self._warm_up("warm_lowering")
        except EOFError:
            self._each_worker(ProcessTarget.close)
        except BaseException:
            self._each_worker(ProcessTarget.kill)
            raise

    def _each_worker(self, do: Callable[[ProcessTarget], None]) -> None:
        for worker in workers(self._targets.values()):
            do(worker)

    def _use(self, targets: bytes) -> None:
        """Have the workers of ``targets`` (pickled by whoever asks) running."""
        if targets != self._opened:
            self._each_worker(ProcessTarget.close)
            self._targets, self._opened = pickle.loads(targets), targets  # noqa: S301 - from our own parent
        self._each_worker(ProcessTarget.lend)

    def _warm_up(self, what: str) -> None:
        if what not in self._warm:
            self._warm.add(what)
            getattr(importlib.import_module("vgf_conformance.evaluation.warm"), what)()

    def _run(self, work: Work, file: str, arguments: Sequence[Any]) -> int:
        """The exit status of the process that did ``work``, negative for a signal."""
        # What is there now is no garbage: looking for it in each process would copy the memory.
        gc.freeze()
        server = os.getpid()
        process = os.fork()
        if process == 0:
            # Nothing of the forked process may go on as if it were the server.
            try:
                self._requests.close()
                messages = _become_model(server, self._messages, self._printed)
                _work(messages, work, file, self._targets, arguments)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        try:
            os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        finally:
            # What the model has started goes with it; it may not have come so far as to have a group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
        ended = os.waitstatus_to_exitcode(status)
        if ended not in (_DONE, _LOWERED):
            self._each_worker(ProcessTarget.kill)
        return ended


class Messages:
    """Sends messages to ``descriptor``, whatever a model does to this process meanwhile."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, _HIGH)
        os.close(descriptor)
        self._count = 0
        self._process = os.getpid()
        # A model may put something else in the place of these.
        self._getpid, self._leave, self._write = os.getpid, os._exit, write_message

    def send(self, word: str, value: Any) -> None:
        """Send ``word`` with a JSON value."""
        self._own()
        self._write(self._descriptor, word, value)
        self._count += 1

    def refuse(self, message: str) -> None:
        """Send why the work cannot be done."""
        self._own()
        self._write(self._descriptor, "refused", message)

    def leave(self, status: int) -> NoReturn:
        """Say that all was sent, and end the process without what the model wants done at its end."""
        self._own()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        self._write(self._descriptor, "done", self._count)
        self._leave(status)

    def _own(self) -> None:
        """A process that the model has forked says nothing: this one does."""
        if self._getpid() != self._process:
            self._leave(0)


def write_message(
    descriptor: int,
    word: str,
    value: Any,
    dumps: Callable[..., str] = json.dumps,
    write: Callable[[int, bytes], int] = os.write,
) -> None:
    """Write one message, a line of JSON, to ``descriptor``."""
    line = dumps([word, value], ensure_ascii=False).encode(errors="replace") + b"\n"
    while line:
        line = line[write(descriptor, line) :]


def _become_model(server: int, messages: int, printed: int) -> Messages:
    """Make this process, just forked, one that a model may do anything in."""
    os.setsid()
    end_with(server)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (printed, 1), (printed, 2)):
        os.dup2(descriptor, place)
    os.close(nothing)
    os.close(printed)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = os.fdopen(descriptor, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
        setattr(sys, name, stream)
    faulthandler.enable()
    return Messages(messages)


def _work(
    messages: Messages, work: Work, file: str, targets: Mapping[str, Target], arguments: Sequence[Any]
) -> NoReturn:
    """Do ``work`` as the only thing that this process is for."""
    borrowed = workers(targets.values())
    for worker in borrowed:
        worker.borrow()
    sys.argv[:] = [file]
    lowered = False
    try:
        # At the end: what lies beside a model file stands in for no package.
        sys.path.append(str(Path(file).resolve().parent))
        lowered = work(messages.send, file, targets, *arguments)
    except UserError as error:
        messages.refuse(str(error))
    except BaseException as error:
        messages.refuse(f"{file}: evaluating the model raises {type(error).__name__}: {one_line(str(error))}")
    sound = not any(worker.waiting for worker in borrowed)
    messages.leave((_LOWERED if lowered else _DONE) if sound else 0)


def end_with(parent: int) -> None:
    """Have this process killed as soon as ``parent``, which has started it, ends."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(parent: int, requests: int, messages: int, printed: int) -> None:
    """Serve the process ``parent``; the others are descriptors that it passes."""
    end_with(parent)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Server(Connection(requests), messages, printed).serve()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
