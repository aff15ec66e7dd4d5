"""The split of a run into shards, and what joining them finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.results.records import record
from vgf_conformance.cli import main
from vgf_conformance.results.merge import Results, merge
from vgf_conformance.results.record import NotRun, Record
from vgf_conformance.results.shards import Gaps, Shard, artifact_of, gaps
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.vocabulary import UserError, Verdict

Capture = pytest.CaptureFixture[str]

#: Twenty artifacts on two targets each.
ALL = [
    record(sample=f"s{number}", target=target)
    for number in range(20)
    for target in ("reference", "emulation")
]
DEVICE = {"driver": {"device": "llvmpipe"}}


@pytest.mark.parametrize("text", ["", "4", "0/4", "5/4", "1/0", "1/4/2", "-1/4", "1/10000", "a/b", " 1/4"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(UserError, match="write I/N"):
        Shard.parse(text)


def test_every_artifact_is_in_one_shard_with_all_its_targets() -> None:
    shards = [Shard.parse(f"{number}/3") for number in (1, 2, 3)]
    for one, other in zip(ALL[::2], ALL[1::2], strict=True):
        assert artifact_of(one.id) == artifact_of(other.id)
        assert sum(shard.holds(artifact_of(one.id)) for shard in shards) == 1
    assert all(any(shard.holds(artifact_of(item.id)) for item in ALL) for shard in shards)


def test_the_split_is_frozen() -> None:
    """Other versions, and other implementations, have to split alike."""
    artifact = "suites/operators/test_elementwise.py::add[same-FP-none]"
    assert artifact_of("suites/operators/test_elementwise.py::add[same-FP-none-emulation]") == artifact
    # printf %s '<artifact>' | sha256sum begins with 92cff64098325e55.
    assert Shard.with_artifact(artifact, 1000) == Shard(number=0x92CFF64098325E55 % 1000 + 1, of=1000)


def shard_file(folder: Path, text: str, records: Sequence[Record], device: str = "llvmpipe") -> Path:
    shard = Shard.parse(text)
    folder = folder / text.replace("/", "-")
    with ResultsWriter(folder, {"shard": text, "driver": {"device": device}}) as writer:
        writer.append_plan([item.id for item in ALL])
        for item in records:
            if shard.holds(artifact_of(item.id)):
                writer.append(item)
    return folder


def merged(capfd: Capture, *paths: Path, into: Path) -> tuple[int, str]:
    capfd.readouterr()
    code = main(["merge", *map(str, paths), "-o", str(into)])
    out, err = capfd.readouterr()
    return code, out + err


def test_shards_make_the_whole_run(tmp_path: Path, capfd: Capture) -> None:
    folders = [shard_file(tmp_path, f"{number}/4", ALL) for number in (1, 2, 3, 4)]
    code, text = merged(capfd, *folders, into=tmp_path / "all")
    assert (code, text.splitlines()[-1]) == (0, "40 of 40 planned cases are there")
    assert {path.name for path in (tmp_path / "all").iterdir()} >= {
        "results.jsonl",
        "report.html",
        "junit.xml",
    }
    whole = read_results([tmp_path / "all"])
    assert whole.plan == [item.id for item in ALL]
    assert [run["shard"] for run in whole.runs] == ["1/4", "2/4", "3/4", "4/4"]
    found = {item.id: item for item in whole.records}
    assert len(whole.records) == len(ALL)
    for item in ALL:
        found[item.id].written = ""
        assert found[item.id] == item


def test_a_lost_shard_is_named_with_its_cases(tmp_path: Path, capfd: Capture) -> None:
    folders = [shard_file(tmp_path, f"{number}/4", ALL) for number in (1, 2, 4)]
    code, text = merged(capfd, *folders, into=tmp_path / "all")
    lost = [item.id for item in ALL if Shard.parse("3/4").holds(artifact_of(item.id))]
    assert lost
    assert code == 1
    lines = text.splitlines()
    assert "lost: shard 3/4 has no results" in lines
    assert [line for line in lines if line.startswith("missing: ")] == [
        f"missing: {case} (shard 3/4)" for case in lost
    ]


def test_a_killed_shard_lacks_cases(tmp_path: Path, capfd: Capture) -> None:
    whole = shard_file(tmp_path, "1/2", ALL)
    first = next(item for item in ALL if Shard.parse("2/2").holds(artifact_of(item.id)))
    killed = shard_file(tmp_path, "2/2", [item for item in ALL if item is not first])
    code, text = merged(capfd, whole, killed, into=tmp_path / "all")
    assert code == 1
    assert f"missing: {first.id} (shard 2/2)" in text
    assert "lost:" not in text


def test_a_shard_given_twice_is_double(tmp_path: Path, capfd: Capture) -> None:
    one, two = (shard_file(tmp_path, text, ALL) for text in ("1/2", "2/2"))
    code, text = merged(capfd, one, two, one, into=tmp_path / "all")
    assert code == 1
    double = [item.id for item in ALL if Shard.parse("1/2").holds(artifact_of(item.id))]
    for case in double:
        assert f"double: {case} is in more than one of the results" in text
    assert len(read_results([tmp_path / "all"]).records) == len(ALL)


def test_an_unexpected_failure_fails_the_merge(tmp_path: Path, capfd: Capture) -> None:
    wrong = [record(sample=item.sample, target=item.target) for item in ALL]
    wrong[5].verdict, wrong[5].unexpected = Verdict.FAIL, True
    folders = [shard_file(tmp_path, text, wrong) for text in ("1/2", "2/2")]
    code, text = merged(capfd, *folders, into=tmp_path / "all")
    assert code == 1
    assert "40 of 40 planned cases are there" in text


def test_shards_on_other_devices_are_told(tmp_path: Path, capfd: Capture) -> None:
    one, two = shard_file(tmp_path, "1/2", ALL), shard_file(tmp_path, "2/2", ALL, device="another")
    _, text = merged(capfd, one, two, into=tmp_path / "all")
    assert "device of shard 1/2: llvmpipe" in text
    assert "device of shard 2/2: another" in text


def test_what_cannot_be_merged(tmp_path: Path, capfd: Capture) -> None:
    one = shard_file(tmp_path, "1/1", ALL)
    assert merged(capfd, one, into=one)[0] == 2
    code, text = merged(capfd, tmp_path / "absent", into=tmp_path / "all")
    assert code == 2
    assert "cannot read results from" in text
    (tmp_path / "file").write_text("")
    code, text = merged(capfd, one, into=tmp_path / "file")
    assert code == 2
    assert len(text.splitlines()) == 1


def test_a_case_that_could_not_be_run_is_not_missing() -> None:
    part = Results(plan=["a-reference]", "b-reference]"], not_run=[NotRun("a-reference]", "no package")])
    assert gaps([part], merge([part])) == Gaps([], ["b-reference]"], [])
