"""TOML, as people write it: expectations, waivers, reasons."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse(content: bytes) -> dict[str, Any]:
    """The document of a TOML file; raises ValueError saying why it is none."""
    try:
        document: dict[str, Any] = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    except RecursionError as error:
        raise ValueError("not TOML: nested too deep") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {error}") from error
    return document
