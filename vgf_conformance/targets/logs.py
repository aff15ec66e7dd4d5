"""What the log of the ExecuTorch runtime says, for messages."""

from __future__ import annotations

import re

#: Characters of a line, and lines, of the runtime's log that a message quotes.
_LINE_LIMIT = 200
_LINES = 3
#: A line of ExecuTorch's log: ``[method.cpp:128] text`` in the wheel, which leaves level and time out, and
#: ``E 00:00:00.000123 executorch:method.cpp:128] text`` in a program of its own.
_RUNTIME_LINE = re.compile(
    r"^(?:\[|[A-Z] \d\d:\d\d:\d\d\.\d{1,9} executorch:)(?P<place>[\w.+-]{1,100}:\d{1,9})\] (?P<text>.*)$",
    re.MULTILINE,
)


def runtime_says(log: str) -> str:
    """The last lines of ExecuTorch's own in ``log``, as an end of a message; empty where there are none.

    The runtime's error is a number, and the last line is often its caller's: those before have the cause.
    """
    lines = [f"[{found['place']}] {found['text'].strip()}" for found in _RUNTIME_LINE.finditer(log)]
    quoted = "; ".join(line[:_LINE_LIMIT] for line in lines[-_LINES:])
    return f" (its log ends: {quoted})" if quoted else ""
