"""Starts programs that take nothing from the working directory: no module, no library, no other program.

``python -m`` and ``python -c`` put the working directory first on ``sys.path``, before the standard library:
whoever starts a run in an unpacked download would execute what lies there. Isolated mode (``-I``) would also
ignore PYTHONPATH, by which the package itself may be installed, and ``-P`` came with Python 3.11. An empty
entry of PATH, LD_LIBRARY_PATH or PYTHONPATH means the working directory, too.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

#: ``sys`` is built in: nothing is looked for on the path before the working directory has left it. What the
#: new process found by itself stays behind what this one has: it may know more, by ``.pth`` files.
_START = "import sys; sys.path[:] = {path} + [entry for entry in sys.path if entry and entry not in {path}]; "
_RUN = (
    "sys.argv[:] = sys.argv[1:]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
_IMPORT = "import importlib; importlib.import_module(sys.argv[1])"

#: Variables with folders in which programs, libraries and modules are looked for, and what separates these.
_SEARCHED = {"PATH": ":", "LD_LIBRARY_PATH": "[:;]", "PYTHONPATH": ":"}


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``module`` of this package with ``arguments``; for ``python_environment``."""
    return [sys.executable, "-c", _start() + _RUN, module, *arguments]


def import_command(module: str) -> list[str]:
    """The command that imports ``module``; for ``python_environment``."""
    return [sys.executable, "-c", _start() + _IMPORT, module]


def python_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a program, of Python or not: this process's, with ``variables`` over it.

    Nothing is looked for in folders that depend on the working directory.
    """
    searched = {
        name: _absolute(re.split(separator, os.environ[name]))
        for name, separator in _SEARCHED.items()
        if name in os.environ
    }
    # No PATH at all means the system's own, but an empty one means the working directory.
    if not searched.get("PATH", "PATH"):
        searched["PATH"] = os.defpath
    return {**os.environ, **searched, **(variables or {})}


def leave_working_directory() -> None:
    """Look for nothing more in the working directory, here and in whatever is started from here.

    ``python -m`` puts it on the import path; what it then imports before this call is its own affair.
    """
    os.environ.update(python_environment())
    safe = getattr(sys.flags, "safe_path", False)
    if not safe and sys.path and _is_here(sys.path[0]) and not _is_here(_package()):
        del sys.path[0]


def search_path() -> str:
    """The folders of PATH that do not depend on the working directory."""
    return python_environment().get("PATH", os.defpath)


def signal_name(status: int) -> str:
    """The signal that ended a process whose exit status is ``status``, which is negative."""
    try:
        return signal.Signals(-status).name
    except ValueError:
        # Those for real-time use have no names.
        return f"signal {-status}"


def _start() -> str:
    return _START.format(path=ascii(_import_path()))


def _import_path() -> list[str]:
    """``sys.path`` without the working directory, unless that is where this package itself lies."""
    ours = _is_here(_package())
    return [
        _made_absolute(entry)
        for entry in sys.path
        if isinstance(entry, str) and (ours or not _is_here(entry))
    ]


def _package() -> str:
    return str(Path(__file__).resolve().parents[1])


def _is_here(entry: str) -> bool:
    """Whether ``entry`` is the working directory, by whatever name."""
    try:
        # A working directory that was removed can still be told apart from others.
        return Path(entry).samefile(os.curdir)
    except (OSError, ValueError):
        return False


def _made_absolute(entry: str) -> str:
    """``entry`` for a process that may start elsewhere; as it is where there is no working directory."""
    try:
        return str(Path(entry).absolute())
    except OSError:
        return entry


def _absolute(folders: Iterable[str]) -> str:
    """Those of ``folders`` that are absolute, or that the loader of libraries makes so (``$ORIGIN``)."""
    return os.pathsep.join(folder for folder in folders if folder.startswith(("/", "$")))
