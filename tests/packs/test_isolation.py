"""A driver that crashes, hangs, gives NaN and remembers: each found and named, and nothing else changed."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packs.helpers import changed
from vgf_conformance.packs.pack import Pack, open_pack
from vgf_conformance.packs.run import run_cases
from vgf_conformance.results.record import Record
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.vocabulary import Finding, Verdict

COUNT = 60


def _numbered(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
    """The case with two outputs, many times over; each one's delegate has its number."""
    (pair,) = [case for case in manifest["cases"] if case["case"] == "pair"]
    manifest["cases"] = []
    for number in range(COUNT):
        case = copy.deepcopy(pair)
        case["sample"] = f"sample{number}"
        case["id"] = case["id"].replace("[rank2-", f"[sample{number}-")
        case["calls"][0]["delegate"] = f"delegate {number}"
        manifest["cases"].append(case)
    used = re.findall(r"objects/[\w.]+", str(manifest["cases"]))
    for name in [name for name in contents if name not in used]:
        del contents[name], manifest["members"][name]


def numbered(small: Path, folder: Path) -> Path:
    """A pack of COUNT cases, in ``folder``."""
    return changed(small, folder, _numbered)


@pytest.fixture
def many(small: Path, tmp_path: Path) -> Iterator[Pack]:
    with open_pack(numbered(small, tmp_path)) as pack:
        pack.verify()
        yield pack


def run(pack: Pack, runner: str, time_limit: float = 60.0) -> list[Record]:
    target = ProcessTarget("emulation", f"tests.fakes:{runner}", time_limit=time_limit)
    try:
        return list(run_cases(pack, pack.manifest.cases, target))
    finally:
        target.close()


def _told(record: Record) -> dict[str, Any]:
    """All but what differs from one run to the next."""
    return {**vars(record), "seconds": None, "worker_bytes": None}


def test_each_failure_is_found_and_named_and_the_rest_is_as_in_a_clean_run(many: Pack) -> None:
    clean = run(many, "Numbered")
    found = run(many, "Troubled", time_limit=3.0)
    assert [item.verdict for item in clean] == [Verdict.PASS] * COUNT
    failing = {number: item for number, item in enumerate(found) if item.verdict is not Verdict.PASS}
    assert {number: (item.verdict, item.finding) for number, item in failing.items()} == {
        17: (Verdict.CRASH, Finding.CRASHED),
        31: (Verdict.TIMEOUT, Finding.HUNG),
        40: (Verdict.FAIL, Finding.WRONG),
        52: (Verdict.FAIL, Finding.DEPENDENT),
    }
    for number in (17, 31, 40):
        assert "fails in the same way alone, in a fresh worker" in failing[number].notes
    assert "passes alone, in a fresh worker" in failing[52].notes
    assert failing[52].message.startswith(f"depends on what ran before it ({found[51].id}): ")
    assert "SIGSEGV" in failing[17].message
    others = [number for number in range(COUNT) if number not in failing]
    assert [_told(found[number]) for number in others] == [_told(clean[number]) for number in others]


def test_a_worker_that_leaks_is_told(many: Pack) -> None:
    """Twice through the pack on one worker."""
    target = ProcessTarget("emulation", "tests.fakes:Leaks")
    try:
        records = list(run_cases(many, many.manifest.cases * 2, target))
    finally:
        target.close()
    (leak,) = [note for record in records for note in record.notes if note.startswith("memory leak")]
    assert 1.5 < float(re.findall(r"grows by ([\d.]+) MB", leak)[0]) < 2.5
    assert all(record.worker_bytes > 1 << 20 for record in records)
