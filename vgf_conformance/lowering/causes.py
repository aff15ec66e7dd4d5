"""Finds the innermost cause of an exception that a chain of compiler passes wrapped."""

from __future__ import annotations

import re
import traceback
from pathlib import PurePath

#: torch.fx appends its own context to the message of whatever a pass raises.
_FX_CONTEXT = re.compile(r"\n\s*(While executing|Original traceback|GraphModule:|Use tlparse).*", re.DOTALL)
#: The part of a file's path that says where packages are installed on this machine.
_INSTALLED = re.compile(r'File "[^"]*/(?:site-packages/|(?=vgf_conformance/)|lib/(?=python3))([^"]*)')
#: Text of one traceback frame that a message quotes.
_LONGEST = 400


def innermost(error: BaseException) -> BaseException:
    """Follow explicit and implicit chaining to the exception that came first."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def describe(error: BaseException) -> str:
    """One line: type, message and the place in the package where the cause was raised."""
    cause = innermost(error)
    text = _FX_CONTEXT.sub("", str(cause)).strip()
    text = " ".join(text.split())[:_LONGEST]
    name = type(cause).__name__
    return f"{name}: {text}{_place(cause)}" if text else f"{name}{_place(cause)}"


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        parts = PurePath(frame.filename).parts
        if "site-packages" in parts and "torch" not in parts:
            path = "/".join(parts[parts.index("site-packages") + 1 :])
            return f" ({path}:{frame.lineno} in {frame.name})"
    return ""


def whole(error: BaseException) -> str:
    """The whole traceback, for the log; paths start at the package, whatever machine it is."""
    return _INSTALLED.sub(r'File "\1', "".join(traceback.format_exception(error)))
