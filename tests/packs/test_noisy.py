"""What conforms operator by operator passes in a pack too, by the visible graph that travels along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.attribution.chains import Device
from tests.packs.helpers import changed, replaced
from tests.packs.noisy_suite import NOISY, noisy_pack
from vgf_conformance.packs.folder import judge_outputs, unpack
from vgf_conformance.packs.pack import open_pack
from vgf_conformance.packs.run import run_cases
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict


@pytest.fixture(scope="session")
def noisy(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return noisy_pack(tmp_path_factory.mktemp("noisy"))


def ran(path: Path, share: float) -> Record:
    with open_pack(path) as pack:
        device = Device("SIN", share, name="emulation")
        records = {record.id: record for record in run_cases(pack, pack.manifest.cases, device)}
    alone = next(record for record in records.values() if record.case == "single")
    assert (alone.verdict is Verdict.PASS, alone.finding) == (
        (share < 1),
        None if share < 1 else Finding.WRONG,
    )
    return records[NOISY]


def old(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    """As a pack of schema 1 is."""
    manifest["schema"] = 1
    for case in manifest["cases"]:
        for call in case["calls"]:
            name = call.pop("visible")
            if name is not None:
                del contents[name], manifest["members"][name]


def test_only_floating_graphs_of_several_operators_travel_visible(noisy: Path) -> None:
    with open_pack(noisy) as pack:
        pack.verify()
        shown = {case.case: [call.visible for call in case.calls] for case in pack.manifest.cases}
        assert shown["single"] == shown["whole"] == [None]
        (call,) = next(case for case in pack.manifest.cases if case.case == "wave").calls
        loaded = pack.load(call)
        assert loaded.visible is not None
        assert len(loaded.visible.outputs) > len(loaded.delegate.outputs)
        assert pack.largest == 15


def test_inside_every_bound_is_a_noisy_pass(noisy: Path) -> None:
    record = ran(noisy, 0.9)
    assert (record.verdict, record.stage, record.finding) == (Verdict.PASS, None, Finding.NOISY)
    assert record.first_wrong is None
    assert len(record.visible) == 1
    assert len(record.visible[0]) > 4
    (note,) = [note for note in record.notes if note.startswith("noisy: ")]
    assert "every operator is within its own bound on what it was fed, SIN (number " in note
    assert Record.from_json(record.to_json()) == record


def test_outside_its_bound_the_operator_is_named(noisy: Path) -> None:
    record = ran(noisy, 1.25)
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert record.first_wrong is not None
    assert (record.first_wrong.operator, record.first_wrong.stage) == ("SIN", Stage.RUN)
    assert "is outside of its own bound" in record.message


def test_a_pack_of_schema_1_says_that_it_cannot_tell(noisy: Path, tmp_path: Path) -> None:
    record = ran(changed(noisy, tmp_path, old), 0.9)
    assert (record.verdict, record.finding) == (Verdict.FAIL, Finding.WRONG)
    assert record.message.endswith("the pack has no graph of it with all intermediate results visible")
    assert record.visible == [[]]


def test_a_visible_graph_of_another_case_is_refused(noisy: Path, tmp_path: Path) -> None:
    def swapped(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
        calls = {case["case"]: case["calls"][0] for case in manifest["cases"]}
        replaced(manifest, contents, calls["wave"]["visible"], contents[calls["wave"]["vgf"]])

    with open_pack(changed(noisy, tmp_path, swapped)) as pack, pytest.raises(UserError, match="outputs"):
        pack.verify()


def test_outputs_that_were_brought_back_stay_failed(noisy: Path, tmp_path: Path) -> None:
    import numpy as np

    with open_pack(noisy) as pack:
        unpack(pack, tmp_path / "out")
        device = Device("SIN", 0.9)
        for case in pack.manifest.cases:
            loaded = [pack.load(call) for call in case.calls]
            device.load([call.delegate for call in loaded])
            for number, call in enumerate(loaded):
                for place, array in enumerate(device.run(number, call.inputs).arrays):
                    np.save(tmp_path / "out" / case.folder / f"call{number}" / f"output{place}.npy", array)
        records = {record.case: record for record in judge_outputs(pack, tmp_path / "out")}
    assert records["single"].verdict is Verdict.PASS
    assert records["wave"].verdict is Verdict.FAIL
    assert "an unpacked folder has no graph with them" in records["wave"].message
