"""Starts Python programs of this package that never import from the working directory.

``python -m`` and ``python -c`` put the working directory first on ``sys.path``, before the standard library:
whoever starts a run in an unpacked download would execute what lies there. Isolated mode (``-I``) would also
ignore PYTHONPATH, by which the package itself may be installed, and ``-P`` came with Python 3.11.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: ``sys`` is built in: nothing is looked for on the path before the working directory has left it.
_START = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; sys.argv[:] = sys.argv[1:]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``module`` of this package with ``arguments``; for ``python_environment``."""
    return [sys.executable, "-c", _START, module, *arguments]


def python_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment with its import path, and ``variables`` over it."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path(sys.path)), **(variables or {})}


def _import_path(entries: Sequence[str]) -> list[str]:
    """``entries`` without the working directory, unless that is where this package itself lies."""
    here, package = Path.cwd(), Path(__file__).resolve().parents[1]
    return [entry for entry in entries if entry and (Path(entry).resolve() != here or here == package)]
