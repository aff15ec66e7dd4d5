"""Making submissions: on the emulation layers, cut short and gone on with, and on drivers that misbehave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.qualification.conftest import machine
from vgf_conformance.cli import main
from vgf_conformance.packs.pack import Pack, open_pack
from vgf_conformance.qualification.mandatory import mandatory_cases
from vgf_conformance.qualification.qualify import qualify
from vgf_conformance.qualification.statement import this_tool
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.vocabulary import UserError

WHOLE = Shard(number=1, of=1)


def test_lavapipe_qualifies_without_a_word_of_pytorch(
    small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, mandatory = tmp_path / "submission", tmp_path / "mandatory.txt"
    mandatory.write_text("suites/operators/test_small.py::absolute[rank1-INT-a8w8-pc]\n")
    assert main(["qualify", str(small), "--product", "lavapipe", "-o", str(folder)]) == 0
    verify = ["submission", "verify", str(folder), "--pack", str(small), "--mandatory", str(mandatory)]
    assert main(verify) == 0
    assert ": lavapipe on llvmpipe" in capfd.readouterr().out
    shard = folder / "shard-1-of-1"
    names = {path.name for path in shard.iterdir()}
    assert names == {
        *("statement.json", "capabilities.json", "outputs"),
        *("run1.jsonl", "run2.jsonl", "run1.log", "run2.log"),
    }
    said = json.loads((shard / "statement.json").read_text())
    assert said["product"] == "lavapipe"
    assert said["tool"]["sha256"] == this_tool().sha256
    assert "absolute[rank1-INT-a8w8-pc-emulation]: pass" in (shard / "run1.log").read_text()


def test_a_driver_that_differs_from_run_to_run(pack: Pack, tmp_path: Path) -> None:
    made = machine("DiffersBetweenRuns")
    try:
        assert not qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()


def test_a_run_that_was_killed_goes_on(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "shard-1-of-1"
    written: list[str] = []
    append = ResultsWriter.append

    def killed(self: ResultsWriter, record: Record) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(record.id)
        append(self, record)

    made = machine("Faithful")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(ResultsWriter, "append", killed)
            with pytest.raises(KeyboardInterrupt):
                qualify(pack, made, "a driver", tmp_path, WHOLE)
        assert not (place / "statement.json").exists()
        (place / "outputs" / f"{'0' * 64}.npy").write_text("of a record that was never written")
        with pytest.raises(UserError, match="was begun with another product"):
            qualify(pack, made, "another driver", tmp_path, WHOLE)
        assert qualify(pack, made, "a driver", tmp_path, WHOLE)
        with pytest.raises(UserError, match="is finished"):
            qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()
    assert not (place / "outputs" / f"{'0' * 64}.npy").exists()
    first, second = (read_results([place / name]) for name in ("run1.jsonl", "run2.jsonl"))
    assert [record.id for record in first.records][:2] == written
    assert [record.outputs for record in first.records] == [record.outputs for record in second.records]
    assert (len(first.runs), len(second.runs)) == (2, 1)


def test_another_device_does_not_go_on(pack: Pack, tmp_path: Path) -> None:
    made = machine("Faithful")
    try:
        qualify(pack, made, "a driver", tmp_path, WHOLE)
    finally:
        made.target.close()
    (tmp_path / "shard-1-of-1" / "statement.json").unlink()
    with pytest.raises(UserError, match="was begun with another device"):
        qualify(pack, machine("Faithful", "another"), "a driver", tmp_path, WHOLE)


@pytest.mark.parametrize("product", ["", "  ", "two\nlines", "\x1b[31m"])
def test_a_product_is_a_line_of_text(product: str, pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="name the product in one line"):
        qualify(pack, machine("Faithful"), product, tmp_path, WHOLE)


def test_the_smoke_pack_holds_what_this_release_demands() -> None:
    with open_pack(Path("golden/packs/smoke.zip")) as smoke:
        assert mandatory_cases() == [case.id for case in smoke.manifest.cases]
