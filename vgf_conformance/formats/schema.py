"""Documents held against the JSON schemas that lie beside their readers."""

from __future__ import annotations

import functools
import itertools
import json
from importlib import resources
from typing import Any

import jsonschema

#: Characters of a refusal: a schema's message quotes the value that it refuses, however long.
_LONGEST = 300


def newer(document: Any, version: int) -> str | None:
    """Why a document whose ``schema`` is above ``version`` cannot be read; None where it is not above."""
    written = document.get("schema") if isinstance(document, dict) else None
    if isinstance(written, (int, float)) and written > version:
        return f"schema {written}, but this version reads up to {version}: update vgf-conformance"
    return None


def refusal(document: Any, package: str, name: str = "schema.json", *, kind: str = "") -> str | None:
    """Why ``package``'s schema ``name`` refuses ``document``, at which place; None where it accepts it.

    ``kind`` is the definition of the schema that is meant, where that is not the whole.
    """
    errors = _validator(package, name, kind).iter_errors(document)
    # The first will do: a stranger may have put a million into one document.
    error = jsonschema.exceptions.best_match(itertools.islice(errors, 1))
    return None if error is None else f"{_short(error.json_path)}: {_short(error.message)}"


@functools.cache
def _validator(package: str, name: str, kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(resources.files(package).joinpath(name).read_text("utf-8"))
    meant = schema["$defs"][kind] if kind else schema
    return jsonschema.Draft202012Validator(_inlined(meant, schema.get("$defs", {})))


def _inlined(part: Any, definitions: dict[str, Any]) -> Any:
    """``part`` with each reference replaced by what it refers to: looking it up each time takes longer."""
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    own = {name: _inlined(item, definitions) for name, item in part.items() if name not in ("$ref", "$defs")}
    if "$ref" not in part:
        return own
    return {**_inlined(definitions[part["$ref"].removeprefix("#/$defs/")], definitions), **own}


def _short(text: str) -> str:
    # Both ends: a message begins with the value and ends with what is wrong with it.
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 100]} ... {text[-100:]}"
