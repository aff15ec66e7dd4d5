"""Markdown that survives any text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tabulate import tabulate

from vgf_conformance.report.tally import clipped
from vgf_conformance.terminal import visible


def table(rows: Iterable[Sequence[object]], headers: Sequence[str]) -> str:
    """A GitHub table; every cell is one line and taken as text."""
    return tabulate(
        [[inline(str(cell)) for cell in row] for row in rows],
        headers=[inline(header) for header in headers],
        tablefmt="github",
        disable_numparse=True,
    )


def inline(text: str, limit: int = 300) -> str:
    """Text as one line with nothing that Markdown or HTML would take for markup."""
    line = " ".join(visible(clipped(text, limit)).split())
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;"))


def item(text: str, limit: int = 300) -> str:
    """Text as an item of a list: not as a heading, a quotation, a rule or a list within."""
    return "- " + re.sub(r"^(\d*)([#>+=.)-])", r"\1\\\2", inline(text, limit))


def code(text: str) -> str:
    """A fenced block, its fence longer than any in the text, indented to stand in a list."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    lines = [fence, *visible(clipped(text, 2000)).split("\n"), fence]
    return "\n".join(f"  {line}".rstrip() for line in lines)


def document(title: str, *sections: tuple[str, str]) -> str:
    """A page; sections without a body are left out."""
    parts = [f"# {title}", *(f"## {heading}\n\n{body}" for heading, body in sections if body)]
    return "\n\n".join(parts) + "\n"
