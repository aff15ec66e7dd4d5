"""The packs in the repository."""

from __future__ import annotations

from pathlib import Path

from vgf_conformance.packs.pack import open_pack
from vgf_conformance.qualification.mandatory import mandatory_cases

SMOKE = Path(__file__).parents[2] / "golden" / "packs" / "smoke.zip"


def test_the_smoke_pack_is_sound_and_small() -> None:
    assert SMOKE.stat().st_size <= 5_000_000
    with open_pack(SMOKE) as pack:
        pack.verify()


def test_no_device_has_to_pass_what_the_emulation_layers_are_known_to_fail() -> None:
    """A mandatory case cannot be waived, and most drivers run below the layers."""
    with open_pack(SMOKE) as pack:
        failing = {case.id for case in pack.manifest.cases if case.known_failure}
        others = {case.id for case in pack.manifest.cases} - failing
    assert failing
    assert {*mandatory_cases()} == others
