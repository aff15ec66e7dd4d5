"""Packs on targets: the real emulation layers, drivers that misbehave, and machines without PyTorch."""

from __future__ import annotations

import dataclasses
import json
import os
import runpy
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packs.helpers import call, changed, refused
from vgf_conformance.evaluation.collect import declared_cases
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import subject_of
from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.run import run_cases
from vgf_conformance.packs.session import run_on
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard, artifact_of
from vgf_conformance.results.store import read_results
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.vocabulary import Finding, Profile, UserError, Verdict

Capture = pytest.CaptureFixture[str]

BLOCKER = """
import sys
sys.modules["torch"] = None
sys.modules["executorch"] = None
"""


@pytest.fixture(scope="session")
def ran(small: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The pack verified and run in processes that cannot import PyTorch or ExecuTorch."""
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, cwd=folder
        )

    blocked = run("-c", "import torch")
    assert "ModuleNotFoundError" in blocked.stderr, blocked
    verified = run("-m", "vgf_conformance.cli", "pack", "verify", str(small))
    assert (verified.returncode, verified.stderr) == (0, "")
    done = run("-m", "vgf_conformance.cli", "pack", "run", str(small), "-o", "results")
    done.args = folder / "results"
    return done


@pytest.fixture
def records(ran: subprocess.CompletedProcess[str]) -> dict[str, Record]:
    return {record.id: record for record in read_results([Path(str(ran.args))]).records}


def test_a_pack_runs_where_pytorch_cannot_be_imported(ran: subprocess.CompletedProcess[str]) -> None:
    assert (ran.returncode, ran.stderr) == (0, "")
    reports = {path.name for path in Path(str(ran.args)).iterdir()}
    assert reports == {"results.jsonl", "matrix.md", "tolerance.md", "junit.xml", "report.html"}


def test_verdicts_are_those_of_the_suite(
    records: dict[str, Record], suite: Path, evaluator: Evaluator
) -> None:
    for ours in records.values():
        theirs = evaluate(ours, suite, evaluator)
        assert (ours.verdict, ours.stage, ours.finding) == (theirs.verdict, theirs.stage, theirs.finding)
        assert [item for item in theirs.comparisons if item.pair == "emulation/reference"] == ours.comparisons
        assert ours.id == theirs.id.replace(theirs.file, f"suites/{theirs.file}")
        same = (
            "case",
            "sample",
            "kind",
            "suite",
            "file",
            "operator",
            "dtypes",
            "tier",
            "driver",
            "delegates",
            "outputs",
        )
        assert {name: getattr(ours, name) for name in same} == {name: getattr(theirs, name) for name in same}


def evaluate(record: Record, suite: Path, evaluator: Evaluator) -> Record:
    """The suite's own record of the same case."""
    module = types.ModuleType("small")
    vars(module).update(runpy.run_path(str(suite)))
    cases = {case.name: case for case in declared_cases(module, f"operators/{suite.name}")}
    case = cases[record.case]
    (sample,) = (item for item in case.samples if item.name == record.sample)
    subject = subject_of(case, sample, 0)
    return evaluator.evaluate(subject, Profile.parse(record.profile), record.scheme, "emulation")


def fake(name: str, **options: Any) -> ProcessTarget:
    return ProcessTarget("emulation", f"tests.fakes:{name}", **options)


@pytest.mark.parametrize(
    ("runner", "verdict", "finding", "words"),
    [
        ("CrashesWithSigill", Verdict.CRASH, Finding.CRASHED, "ended by SIGILL"),
        ("Hangs", Verdict.TIMEOUT, Finding.HUNG, "no answer within 3 s"),
        ("ReturnsNan", Verdict.FAIL, Finding.WRONG, "output 0"),
        ("DropsLast", Verdict.FAIL, Finding.WRONG, "output 1: 1 outputs, should be 2"),
        ("ReturnsExtra", Verdict.FAIL, Finding.WRONG, "3 outputs, should be 2"),
        ("LeavesTail", Verdict.FAIL, Finding.UNWRITTEN, "output 0: 4 of 15 elements were never written"),
        ("RepeatsDifferently", Verdict.FAIL, Finding.UNREPEATABLE, "two runs on the same inputs differ"),
        ("WrongDtype", Verdict.FAIL, Finding.WRONG, "float16, should be float32"),
        ("Refuses", Verdict.UNSUPPORTED, Finding.INVALID, "no such operator here"),
    ],
)
def test_a_driver_that_misbehaves_fails_that_case_alone(
    pack: Pack, runner: str, verdict: Verdict, finding: Finding, words: str
) -> None:
    target = fake(runner, time_limit=3.0)
    try:
        absolute, pair, narrow = run_cases(pack, pack.manifest.cases, target)
    finally:
        target.close()
    assert (absolute.verdict, narrow.verdict) == (Verdict.PASS, Verdict.PASS)
    assert (pair.verdict, pair.finding, pair.unexpected) == (verdict, finding, True)
    assert words in pair.message
    known = "the suite knows such a failure on the emulation layers: the layers are off"
    alone = "fails in the same way alone, in a fresh worker"
    assert pair.notes == ([known] if verdict is Verdict.UNSUPPORTED else [known, alone])


@pytest.fixture
def faithful() -> Iterator[ProcessTarget]:
    target = fake("Faithful")
    yield target
    target.close()


def test_a_run_goes_on_where_it_was_cut_short(pack: Pack, faithful: ProcessTarget, tmp_path: Path) -> None:
    first, cases = pack.manifest.cases[:1], pack.manifest.cases
    assert run_on(pack, first, faithful, tmp_path, described(pack), resume=False)
    faithful.close()
    killer = fake("CrashesWithSigsegv")
    assert not run_on(pack, cases, killer, tmp_path, described(pack), resume=True)
    killer.close()
    results = read_results([tmp_path])
    assert [record.case for record in results.records] == ["absolute", "pair", "narrow"]
    assert results.runs[0]["notes"] == ["not run: 2 other cases of the pack"]
    assert not (tmp_path / "results.previous.jsonl").exists()


def test_without_resume_earlier_results_are_set_aside(
    pack: Pack, faithful: ProcessTarget, tmp_path: Path, capsys: Capture
) -> None:
    for _ in range(2):
        assert run_on(pack, pack.manifest.cases[:1], faithful, tmp_path, described(pack), resume=False)
    assert len(read_results([tmp_path]).runs) == 1
    assert (tmp_path / "results.previous.jsonl").exists()
    assert "set aside as results.previous.jsonl" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_costs_no_report_and_no_exit_status(
    small: Path, tmp_path: Path
) -> None:
    """``pack run ... | head -1``, on a terminal that knows ASCII alone."""
    reader, closed = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "vgf_conformance.cli", "pack", "run", str(small), "-o", str(tmp_path)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONIOENCODING": "ascii",
    }
    done = subprocess.run(command, env=environment, stdout=closed, stderr=subprocess.PIPE)
    os.close(closed)
    assert (done.returncode, done.stderr) == (0, b"")
    reports = {path.name for path in tmp_path.iterdir()}
    assert reports == {"results.jsonl", "matrix.md", "tolerance.md", "junit.xml", "report.html"}


@pytest.mark.parametrize(
    "line",
    [b'{"type":"run","schema":4,"notes":1}', b"[" * 100_000, b'{"type":"case","seconds":' + b"9" * 400],
)
def test_damaged_results_are_not_resumed(
    pack: Pack, faithful: ProcessTarget, tmp_path: Path, line: bytes
) -> None:
    run_on(pack, pack.manifest.cases[:1], faithful, tmp_path, described(pack))
    path = tmp_path / "results.jsonl"
    damaged = path.read_bytes() + line + b"\n"
    path.write_bytes(damaged)
    with pytest.raises(UserError, match=r"results\.jsonl:4: "):
        run_on(pack, pack.manifest.cases, faithful, tmp_path, described(pack), resume=True)
    assert path.read_bytes() == damaged


def test_a_pipe_in_the_place_of_results_is_not_waited_for(
    pack: Pack, faithful: ProcessTarget, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "results.jsonl")
    for resume in (False, True):
        with pytest.raises(UserError, match="not a regular file"):
            run_on(pack, pack.manifest.cases, faithful, tmp_path, described(pack), resume=resume)


def test_results_of_another_pack_are_not_gone_on_with(
    pack: Pack, faithful: ProcessTarget, tmp_path: Path
) -> None:
    other = {"pack": {"sha256": "0" * 64, "built by": "vgf-conformance 0.1.0"}}
    run_on(pack, pack.manifest.cases[:1], faithful, tmp_path, other, resume=False)
    with pytest.raises(UserError, match="holds results of another pack"):
        run_on(pack, pack.manifest.cases, faithful, tmp_path, described(pack), resume=True)


def test_shards_of_a_pack_make_up_the_run(pack: Pack, faithful: ProcessTarget, tmp_path: Path) -> None:
    shards = [Shard.parse(f"{number}/3") for number in (1, 2, 3)]
    cases = pack.manifest.cases
    for shard in shards:
        folder = tmp_path / str(shard.number)
        run_on(pack, cases, faithful, folder, {**described(pack), "shard": str(shard)}, shard=shard)
        assert all(shard.holds(artifact_of(record.id)) for record in read_results([folder]).records)
    joined = read_results(sorted(tmp_path.iterdir()))
    run_on(pack, cases, faithful, tmp_path / "whole", described(pack))
    whole = read_results([tmp_path / "whole"])
    assert joined.plan == whole.plan == [record.id for record in whole.records]
    assert sorted(map(timeless, joined.records)) == sorted(map(timeless, whole.records))


def timeless(record: Record) -> str:
    return json.dumps(
        dataclasses.replace(record, written="", seconds={}, worker_bytes=0).to_json(), sort_keys=True
    )


def described(pack: Pack) -> dict[str, Any]:
    return {"pack": {"sha256": pack.sha256, "built by": f"vgf-conformance {pack.manifest.tool}"}}


def test_words_choose_cases(pack: Pack) -> None:
    assert [case.case for case in pack.chosen(["test_small", "FP"])] == ["pair", "narrow"]
    with pytest.raises(UserError, match="no case's id contains pair and INT"):
        pack.chosen(["pair", "INT"])


def test_bad_usage_is_one_line(small: Path, tmp_path: Path, capfd: Capture) -> None:
    results = tmp_path / "results"
    refused(call(capfd, "run", small, "-o", results, "-k", "nothing"), "no case's id contains nothing")
    refused(call(capfd, "run", small, "-o", results, "--driver", "/no/driver.json"), "does not exist")
    results.write_text("")
    refused(call(capfd, "run", small, "-o", results), "is a file; name a folder")


def test_other_expected_outputs_make_a_failure(
    small: Path, tmp_path: Path, faithful: ProcessTarget, capfd: Capture
) -> None:
    def swap(manifest: dict[str, Any], contents: dict[str, bytes]) -> None:
        first, second = manifest["cases"][1]["calls"][0]["outputs"]
        first["array"], second["array"] = second["array"], first["array"]

    from vgf_conformance.packs.pack import open_pack

    with open_pack(changed(small, tmp_path, swap)) as pack:
        pack.verify()
        (pair,) = run_cases(pack, [pack.manifest.cases[1]], faithful)
    assert (pair.verdict, pair.finding) == (Verdict.FAIL, Finding.WRONG)


def test_the_environment_names_pack_and_driver(ran: subprocess.CompletedProcess[str], pack: Pack) -> None:
    first = json.loads((Path(str(ran.args)) / "results.jsonl").read_text().splitlines()[0])
    assert first["pack"]["sha256"] == pack.sha256
    assert first["driver"]["manifest"]
