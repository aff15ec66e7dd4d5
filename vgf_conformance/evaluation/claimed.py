"""The installed backend's claims for a run: read once for each installation, and held against torch."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterable
from pathlib import Path

from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.lowering.versions import versions
from vgf_conformance.quiet import quiet
from vgf_conformance.results import claims as words
from vgf_conformance.results.claims import Claim
from vgf_conformance.vocabulary import UserError

#: What is cached when the installed executorch has no claims to read: the words of its refusal.
_Outcome = tuple[Claim, ...] | str


def installed_claims() -> tuple[Claim, ...]:
    """As ``claims.claims``, from the artifact cache where this installation's claims lie there.

    Reading them imports executorch and parses the backend's 400 files of tests: 5 s and more, which no
    run should wait for twice. Raises UserError where this executorch does not say what it claims.
    """
    cache = Cache(default_folder())
    key = _key()
    outcome = cache.get(key)
    if outcome is None:
        outcome = _read()
        cache.put(key, outcome)
    if isinstance(outcome, str):
        raise UserError(outcome)
    return outcome


def require_known(claims: Iterable[Claim]) -> None:
    """Raise UserError, naming the claim, where the installed torch lacks a claimed operator."""
    from vgf_conformance.evaluation.operators import is_known

    for claim in claims:
        if not is_known(claim.operator):
            raise UserError(
                f"executorch {importlib.metadata.version('executorch')} claims {claim.computation} "
                f"({claim.source.value}), but torch {importlib.metadata.version('torch')} has no operator "
                f"{claim.operator}: install versions that belong together, or correct the name in "
                "vgf_conformance/claims.py"
            )


def _read() -> _Outcome:
    with quiet():
        from vgf_conformance.claims import claims

        try:
            return claims()
        except UserError as error:
            return str(error)


def _key() -> str:
    """All that the claims depend on: the backend with its tests, and how they are read here."""
    readers = (Path(__file__).parents[1] / "claims.py", Path(words.__file__))
    parts = [repr(sorted(versions().items())).encode(), *(path.read_bytes() for path in readers)]
    return hashlib.sha256(b"claims\0" + b"\0".join(parts)).hexdigest()
