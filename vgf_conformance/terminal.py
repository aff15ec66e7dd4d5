"""The one place that prints: no text of a stranger can move the cursor, set a title or reorder a line.

Names, ids, messages and file names come from files of strangers. Whatever is printed has its control
characters written out (``\\x1b``), on any encoding of the terminal.

Printing never decides what else a command does: once a reader has closed the pipe (``| head -1``), further
text goes nowhere, and records, reports and the exit status are what they would have been.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from vgf_conformance.vocabulary import UserError

#: What ``isprintable`` refuses, but a terminal shows as it should.
_HARMLESS = {"\n", "\t"}


#: Characters of a complaint: reasons of the converter and of the dynamic linker have hundreds.
COMPLAINT_LIMIT = 4000


def visible(text: str) -> str:
    """``text`` with every character written out that a terminal would act on or not show; lines stay."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in _HARMLESS else _escaped(letter) for letter in text
    )


def one_line(text: str, limit: int = 500) -> str:
    """The same as one line of at most ``limit`` characters, an ellipsis at the end of what is longer."""
    # Only so much of a long text is looked at: a stranger may send megabytes of it.
    line = " ".join(visible(text[: 4 * limit]).split())
    return line if len(line) <= limit and len(text) <= 4 * limit else f"{line[:limit]} ..."


def say(text: str = "") -> None:
    """Print ``text`` to standard output, at once; raises UserError where that cannot be written.

    A closed pipe is no fault: nobody wants to read the rest.
    """
    try:
        _print(text, sys.stdout)
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error


def warn(text: str) -> None:
    """Print ``text`` to standard error, at once, as far as it can be written."""
    try:
        _print(text, sys.stderr)
    except OSError:
        _discard(sys.stderr)


def complain(text: str) -> None:
    """Print ``text`` to standard error under the command's name, as one message.

    Of one that is longer than COMPLAINT_LIMIT characters only both ends: it may quote what has no end.
    """
    half = COMPLAINT_LIMIT // 2
    shown = text if len(text) <= COMPLAINT_LIMIT else f"{text[:half]} ... {text[-half:]}"
    warn(f"vgf-conformance: {shown}")


class Enduring:
    """A stream for others to print to: once its pipe is closed, what is written goes nowhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream."""
        with self._quietly():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As the stream."""
        with self._quietly():
            self._stream.flush()

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            _discard(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _print(text: str, stream: TextIO | None) -> None:
    # None: the process was started without this stream.
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    shown = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    print(shown, file=stream, flush=True)


def _discard(stream: TextIO) -> None:
    """Let all that is written to ``stream`` from now on go nowhere, what it still holds included.

    Python would complain of that at its exit, with an exit status of its own.
    """
    # A stream without a descriptor holds nothing back.
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
