"""The cases that a release demands of every submission: ``golden/mandatory/<version>.txt``, an id a line."""

from __future__ import annotations

from pathlib import Path

from vgf_conformance import __version__
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
    try:
        cases = [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(f"{path}: not UTF-8") from error
    if not cases:
        raise UserError(f"{path} names no case")
    return cases
