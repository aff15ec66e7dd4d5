"""A model file's bytes, read without PyTorch: a file that cannot be read is refused before that is loaded."""

from __future__ import annotations

from pathlib import Path

from vgf_conformance.untrusted import DOCUMENT_LIMIT, BadFile, read_bytes
from vgf_conformance.vocabulary import UserError


def read_model_file(file: str) -> bytes:
    """The content of a user's model file; raises UserError."""
    try:
        # A link is the user's own.
        content = read_bytes(Path(file), DOCUMENT_LIMIT, links=True)
    except BadFile as error:
        raise UserError(f"{error}; give a Python file") from error
    if Path(file).suffix != ".py":
        raise UserError(f"{file}: not a Python file: its name does not end in .py")
    return content
