"""Every input that was once taken badly is taken well; sound inputs are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import judge, kept_input, place
from tests.fuzz.formats import CORPUS, FORMATS
from tests.fuzz.mutations import Input

KEPT = sorted(path for path in CORPUS.glob("*/*") if path.suffix)


@pytest.mark.parametrize("kept", KEPT, ids=[f"{path.parent.name}-{path.stem}" for path in KEPT])
def test_kept_inputs(kept: Path, tmp_path: Path) -> None:
    form = FORMATS[kept.parent.name]
    judge(form, kept_input(kept), tmp_path / f"input{form.suffix}")


@pytest.mark.parametrize("name", FORMATS)
def test_sound_inputs(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    for content in form.seeds():
        path = tmp_path / f"input{form.suffix}"
        place(Input(content), path)
        form.read(path)


@pytest.mark.parametrize("name", ["npy", "pack", "results", "statement", "icd"])
@pytest.mark.parametrize("other", ["pipe", "sparse", "link", "endless", "folder"])
def test_what_is_no_file(name: str, other: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    judge(form, Input(b"", other), tmp_path / f"input{form.suffix}")
