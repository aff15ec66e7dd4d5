"""Records for tests, made from a short description."""

from __future__ import annotations

from typing import Any

from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Stage, Verdict


def record(
    case: str = "add",
    sample: str = "rank1",
    profile: str = "FP",
    scheme: str = "none",
    target: str = "reference",
    verdict: Verdict = Verdict.PASS,
    **more: Any,
) -> Record:
    file = more.pop("file", "operators/test_elementwise.py")
    if verdict is not Verdict.PASS:
        more.setdefault("stage", Stage.LOWER)
    return Record(
        id=f"suites/{file}::{case}[{sample}-{profile}-{scheme}-{target}]",
        case=case,
        sample=sample,
        kind="operator",
        suite="operators",
        profile=profile,
        scheme=scheme,
        target=target,
        verdict=verdict,
        file=file,
        **more,
    )
