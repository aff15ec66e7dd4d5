"""The one place that prints: no text of a stranger can move the cursor, set a title or reorder a line.

Names, ids, messages and file names come from files of strangers. Whatever is printed has its control
characters written out (``\\x1b``), on any encoding of the terminal.
"""

from __future__ import annotations

import sys
from typing import TextIO

#: What ``isprintable`` refuses, but a terminal shows as it should.
_HARMLESS = {"\n", "\t"}


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
    """Print ``text`` to standard output, at once."""
    _print(text, sys.stdout)


def warn(text: str) -> None:
    """Print ``text`` to standard error, at once."""
    _print(text, sys.stderr)


def complain(text: str) -> None:
    """Print ``text`` to standard error under the command's name, as one message."""
    warn(f"vgf-conformance: {text}")


def _print(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    shown = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    print(shown, file=stream, flush=True)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
