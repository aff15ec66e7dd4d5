"""Evaluates model files in processes of their own, so that whatever one does reaches nothing else.

One process, the server, loads PyTorch and ExecuTorch, and forks another for each model file:
:mod:`vgf_conformance.evaluation.forkserver`. Nothing here imports either, and nothing that a model's process
sends is unpickled: its messages are lines of JSON. What it prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from typing import IO, Any

from vgf_conformance.cases.modelfile import read_model_file
from vgf_conformance.launch import python_command, python_environment, signal_name
from vgf_conformance.targets.base import Target
from vgf_conformance.terminal import one_line, warn
from vgf_conformance.untrusted import Malformed, parse_json
from vgf_conformance.vocabulary import UserError

#: Seconds in which the server ends what it started, before it is killed.
_CLOSE_LIMIT = 30.0
#: Bytes read at once.
_PIECE = 1 << 16
#: Pieces still read after a process has ended: more than a pipe holds.
_LAST_PIECES = 32


class ModelEnded(UserError):
    """The process of a model ended before it had sent all that was asked for."""


class ModelServer:
    """Runs functions on model files; the server starts with the first, and ``close`` ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Connection | None = None
        self._log: IO[bytes] | None = None
        self._messages = _Lines(-1)
        self._printed = _Lines(-1)

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self, function: str, file: str, targets: Mapping[str, Target], *arguments: object
    ) -> Iterator[tuple[str, Any]]:
        """Call ``function`` (``module:name``) in a process of its own, and yield what it sends as it comes.

        It is called with what sends a message (a word and a JSON value), ``file``, ``targets`` and
        ``arguments``. Raises UserError where the file cannot be read, where the function does, and where
        PyTorch cannot be loaded; ModelEnded where the process ends before the function has returned.
        """
        read_model_file(file)
        if self._process is None:
            self._start()
        assert self._requests is not None
        with contextlib.suppress(BrokenPipeError):
            self._requests.send((function, file, pickle.dumps(dict(targets)), arguments))
        sent, told, refusal = 0, -1, ""
        for word, value in self._received():
            if word == "ended":
                break
            if word == "done":
                told = value
            elif word == "refused":
                refusal = str(value)
            else:
                sent += 1
                yield word, value
        if refusal:
            raise UserError(refusal)
        if told != sent:
            raise ModelEnded(f"{file}: the process of the model {_ending(value)}")

    def close(self) -> None:
        """End the server and what it started."""
        if self._process is None:
            return
        assert self._requests is not None
        assert self._log is not None
        self._requests.close()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_CLOSE_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        for lines in (self._messages, self._printed):
            os.close(lines.descriptor)
        self._process = self._requests = self._log = None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        messages, printed = os.pipe(), os.pipe()
        passed = [theirs.fileno(), messages[1], printed[1]]
        # Outlives this call: what is printed while PyTorch is loaded, read where that fails.
        self._log = tempfile.TemporaryFile(prefix="vgf-conformance-models-")  # noqa: SIM115 - close() does
        self._process = subprocess.Popen(
            python_command("vgf_conformance.evaluation.forkserver", str(os.getpid()), *map(str, passed)),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=passed,
            env=python_environment(),
            # Whoever interrupts this process at a terminal does not interrupt a model.
            start_new_session=True,
        )
        theirs.close()
        for descriptor in (messages[1], printed[1]):
            os.close(descriptor)
        self._requests = Connection(ours.detach())
        self._messages, self._printed = _Lines(messages[0]), _Lines(printed[0])

    def _received(self) -> Iterator[tuple[str, Any]]:
        """The messages up to the one that says that the model's process has ended, which comes last."""
        with selectors.DefaultSelector() as ready:
            for lines in (self._messages, self._printed):
                ready.register(lines.descriptor, selectors.EVENT_READ, lines)
            while not self._messages.closed:
                heard = {key.data for key, _ in ready.select()}
                if self._printed in heard:
                    self._show()
                for word, value in self._messages.messages() if self._messages in heard else ():
                    if word == "ended":
                        self._show_rest()
                    yield word, value
                    if word == "ended":
                        return
        raise self._lost()

    def _show(self) -> None:
        for line in self._printed.read():
            warn(line.decode(errors="replace"))

    def _show_rest(self) -> None:
        """What the model printed last, and no more: what it left running may hold the pipe, and go on."""
        for _ in range(_LAST_PIECES):
            if not self._printed.waits():
                break
            self._show()
        if rest := self._printed.rest():
            warn(rest.decode(errors="replace"))

    def _lost(self) -> UserError:
        assert self._process is not None
        assert self._log is not None
        status = self._process.wait()
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _PIECE))
        said = self._log.read().decode(errors="replace").strip().splitlines()
        words = f": {one_line(said[-1])}" if said else ""
        return UserError(
            f"the process that loads PyTorch and ExecuTorch {_status(status)}{words}; "
            "vgf-conformance doctor says what is missing"
        )


class _Lines:
    """Reads a pipe line by line, without waiting for more than there is."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.closed = False
        self._pending = b""

    def read(self) -> list[bytes]:
        """The lines that are complete after one more piece."""
        piece = os.read(self.descriptor, _PIECE)
        self.closed = not piece
        *lines, self._pending = (self._pending + piece).split(b"\n")
        return lines

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Those of the lines that are messages: a line of a process that was killed may be cut short."""
        for line in self.read():
            with contextlib.suppress(Malformed, TypeError, ValueError):
                word, value = parse_json(line)
                yield str(word), value

    def waits(self) -> bool:
        """Whether there is something to read at once."""
        with selectors.DefaultSelector() as ready:
            ready.register(self.descriptor, selectors.EVENT_READ)
            return not self.closed and bool(ready.select(0))

    def rest(self) -> bytes:
        """A last line without an end."""
        rest, self._pending = self._pending, b""
        return rest


def _ending(status: object) -> str:
    """How a process ended before its time, and what to do; ``status`` is negative for a signal."""
    if status == -signal.SIGKILL:
        return (
            "was killed (SIGKILL) before the model was judged, probably because memory ran out: "
            "give smaller inputs or weights"
        )
    if isinstance(status, int) and status < 0:
        return f"{_status(status)} before the model was judged: run the model by itself to see where"
    if isinstance(status, int):
        return f"{_status(status)} before the model was judged: a model file must not end or close anything"
    return ""


def _status(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    return f"was ended by {signal_name(status)}"
