"""The cases that a release demands of every submission: ``golden/mandatory/<version>.txt``, an id a line."""

from __future__ import annotations

from pathlib import Path

from vgf_conformance import __version__
from vgf_conformance.untrusted import BadFile, read_text
from vgf_conformance.vocabulary import UserError

_PACKAGE = Path(__file__).parents[1]
#: In an installed package, and in a checkout.
_FOLDERS = (_PACKAGE / "qualification" / "mandatory", _PACKAGE.parent / "golden" / "mandatory")


def mandatory_cases(path: Path | None = None) -> list[str]:
    """The ids, without a target, in ``path``, or in this release's own list; raises UserError."""
    path = path or next(filter(Path.is_file, (folder / f"{__version__}.txt" for folder in _FOLDERS)), None)
    if path is None:
        raise UserError(
            f"there is no list of mandatory cases for {__version__}: name one with --mandatory FILE"
        )
    cases = list(dict.fromkeys(line.strip() for line in read_text(path).splitlines() if line.strip()))
    if not cases:
        raise BadFile(path, "names no case")
    return cases
