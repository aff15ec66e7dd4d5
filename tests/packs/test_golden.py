"""The packs in the repository."""

from __future__ import annotations

from pathlib import Path

from vgf_conformance.packs.pack import open_pack

SMOKE = Path(__file__).parents[2] / "golden" / "packs" / "smoke.zip"


def test_the_smoke_pack_is_sound_and_small() -> None:
    assert SMOKE.stat().st_size <= 5_000_000
    with open_pack(SMOKE) as pack:
        pack.verify()
