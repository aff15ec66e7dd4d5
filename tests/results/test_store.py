from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.full_disk import full_disk
from tests.results.records import record
from vgf_conformance import files
from vgf_conformance.report.merged import merge_files
from vgf_conformance.results import store
from vgf_conformance.results.record import SCHEMA_VERSION, NotRun
from vgf_conformance.results.store import ResultsWriter, read_results, set_aside, write_results
from vgf_conformance.vocabulary import UserError, Verdict

Capture = pytest.CaptureFixture[str]

RUN = json.dumps({"type": "run", "schema": SCHEMA_VERSION}) + "\n"


def case_line(sample: str) -> str:
    return json.dumps(record(sample=sample).to_json()) + "\n"


def test_written_records_are_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "on the way"
    with ResultsWriter(folder, {"host": "lab", "versions": {"torch": "2.9"}}) as writer:
        writer.append(record(sample="a"))
        writer.append(record(sample="b", verdict=Verdict.CRASH, log="\udc80 \x00 ünï"))
    assert writer.path == folder / "results.jsonl"
    for path in (folder, writer.path):
        results = read_results([path])
        assert [item.sample for item in results.records] == ["a", "b"]
        # Half of a surrogate pair has no encoding.
        assert results.records[1].log == "\\udc80 \x00 ünï"
        assert results.records[0].written
        assert results.runs[0]["host"] == "lab"
        assert results.runs[0]["started"]
        assert results.warnings == []


def test_a_case_that_was_not_run_is_read_back_until_it_has_a_record(tmp_path: Path) -> None:
    lacking = NotRun(record(sample="a").id, "weights 1.0 is not installed: pip install weights==1.0")
    with ResultsWriter(tmp_path, {}) as writer:
        writer.append_not_run(lacking)
        writer.append_not_run(lacking)
        writer.append(record(sample="b"))
    results = read_results([tmp_path])
    assert results.not_run == [lacking]
    assert [item.sample for item in results.records] == ["b"]
    with ResultsWriter(tmp_path, {}) as writer:
        writer.append(record(sample="a"))
    assert read_results([tmp_path]).not_run == []


def test_a_file_of_schema_2_is_read(tmp_path: Path) -> None:
    document = record().to_json()
    for name in ("task", "about", "pte_bytes"):
        del document[name]
    path = tmp_path / "results.jsonl"
    path.write_text('{"type":"run","schema":2}\n' + json.dumps(document) + "\n")
    assert read_results([path]).records == [record()]


def test_each_record_is_on_disk_before_the_writer_closes(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, {})
    writer.append(record())
    assert len(read_results([tmp_path]).records) == 1
    writer.close()
    writer.close()


def test_each_record_is_fsynced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with ResultsWriter(tmp_path, {}) as writer:
        writer.append(record(sample="a"))
        writer.append(record(sample="b"))
    assert len(synced) == 3


def test_a_killed_writer_leaves_what_it_wrote(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import os, pathlib, sys, time
        from tests.results.records import record
        from vgf_conformance.results.store import ResultsWriter
        writer = ResultsWriter(pathlib.Path(sys.argv[1]), {})
        writer.append(record(sample="whole"))
        os.write(writer._file, b'{"type":"case","id":"half')
        print("ready", flush=True)
        time.sleep(60)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
    torn = read_results([tmp_path])
    assert [item.sample for item in torn.records] == ["whole"]
    assert len(torn.warnings) == 1
    assert "results.jsonl:3: the last line is torn" in torn.warnings[0]

    with ResultsWriter(tmp_path, {}) as writer:
        writer.append(record(sample="resumed"))
    mended = read_results([tmp_path])
    assert [item.sample for item in mended.records] == ["whole", "resumed"]
    assert len(mended.runs) == 2
    assert mended.warnings == []


@pytest.mark.parametrize("cut", range(1, len(RUN) + 1))
def test_a_file_cut_anywhere_in_its_first_line_is_continued(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(RUN[:cut])
    with ResultsWriter(path, {}) as writer:
        writer.append(record())
    results = read_results([path])
    assert (len(results.records), results.warnings) == (1, [])


def test_a_whole_last_line_without_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(RUN + case_line("a").rstrip())
    assert [item.sample for item in read_results([path]).records] == ["a"]
    with ResultsWriter(path, {}) as writer:
        writer.append(record(sample="b"))
    assert [item.sample for item in read_results([path]).records] == ["a", "b"]


def test_a_file_of_something_else_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "shopping.txt"
    path.write_text("milk\n")
    with pytest.raises(UserError, match=r"shopping\.txt:1: not JSON"):
        ResultsWriter(path, {})
    assert path.read_text() == "milk\n"


def test_a_full_disk_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(UserError, match=r"No space left on device.*Free space"):
        ResultsWriter(tmp_path, {})


def test_what_was_written_before_the_disk_filled_stays_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write
    with ResultsWriter(tmp_path, {}) as writer:
        writer.append(record(sample="before"))

        def half_a_line_then_full(file: int, data: memoryview) -> int:
            if len(data) < 100:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real_write(file, data[:-50])

        monkeypatch.setattr(os, "write", half_a_line_then_full)
        with pytest.raises(UserError, match="No space left"):
            writer.append(record(sample="lost"))
        monkeypatch.undo()
        writer.append(record(sample="after"))
    results = read_results([tmp_path])
    assert [item.sample for item in results.records] == ["before", "after"]
    assert results.warnings == []


def test_a_read_only_folder_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):  # root may write anywhere

        def refuse(*_: object) -> int:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UserError, match=r"cannot write .*locked/results\.jsonl.*choose another folder"):
        ResultsWriter(folder, {})


def test_a_file_in_the_way_of_the_folder_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write results"):
        ResultsWriter(tmp_path / "file" / "results.jsonl", {})


def test_a_record_that_the_schema_refuses_never_reaches_the_file(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, {}) as writer, pytest.raises(ValueError, match="seconds"):
        writer.append(record(seconds={"run": float("nan")}))
    assert read_results([tmp_path]).records == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (RUN + "{oops}\n" + case_line("a"), r":2: not JSON"),
        (RUN + "\n" + case_line("a"), r":2: not JSON"),
        (RUN + '{"type":"case","id":"x"}\n', r":2: \$: 'case' is a required property"),
        (RUN + case_line("a").replace('"pass"', '"maybe"'), r":2: \$\.verdict: 'maybe' is not one of"),
        (RUN + '"text"\n', r":2: a line has to be a JSON object"),
        (case_line("a"), r":1: a results file begins with a run line"),
        ('{"type":"run","schema":99}\n', r":1: schema 99, but this version reads up to"),
        ('{"type":"run","schema":"one"}\n', r":1: \$\.schema"),
        (RUN + b"\xff\xfe".decode("latin-1") + "\n", r":2: not UTF-8"),
    ],
)
def test_a_malformed_line_names_file_line_and_fault(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(content, "latin-1")
    with pytest.raises(UserError, match=r"results\.jsonl" + complaint):
        read_results([path])


def test_a_missing_file_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere/results\.jsonl: no such file"):
        read_results([tmp_path / "nowhere"])


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.touch()
    assert read_results([path]).records == []


def test_of_doubled_ids_the_last_wins(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, {}) as writer:
        writer.append(record(verdict=Verdict.CRASH))
        writer.append(record())
    results = read_results([tmp_path])
    assert [item.verdict for item in results.records] == [Verdict.PASS]
    assert len(results.warnings) == 1
    assert "results.jsonl:3" in results.warnings[0]
    assert results.records[0].id in results.warnings[0]


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, {}) as first:
        first.append(record())
        with pytest.raises(UserError, match="another run is writing"):
            ResultsWriter(tmp_path, {})
        with pytest.raises(UserError, match="another run is writing"):
            set_aside(first.path)
    set_aside(first.path)
    assert [path.name for path in tmp_path.iterdir()] == ["results.previous.jsonl"]


def samples(path: Path) -> list[str]:
    return [item.sample for item in read_results([path]).records]


def test_a_merge_leaves_the_results_of_a_running_run_alone(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path / "running", {}) as writer, ResultsWriter(tmp_path / "good", {}) as good:
        writer.append(record(sample="before"))
        good.append(record(sample="other"))
        with pytest.raises(UserError, match="another run is writing"):
            merge_files([good.path], tmp_path / "running")
        writer.append(record(sample="after"))
    assert samples(tmp_path / "running") == ["before", "after"]
    assert [path.name for path in (tmp_path / "running").iterdir()] == ["results.jsonl"]


def test_a_merge_sets_finished_results_aside_and_says_so(tmp_path: Path, capsys: Capture) -> None:
    for name in ("old", "new", "newer"):
        with ResultsWriter(tmp_path / name, {}) as writer:
            writer.append(record(sample=name))
    assert merge_files([tmp_path / "new"], tmp_path / "old")
    said = capsys.readouterr().err
    assert "the results of an earlier run were set aside as results.previous.jsonl" in said
    assert "gone" not in said
    assert samples(tmp_path / "old") == ["new"]
    assert samples(tmp_path / "old" / "results.previous.jsonl") == ["old"]
    # The only records that are lost are told to be.
    assert merge_files([tmp_path / "newer"], tmp_path / "old")
    assert "(the results that were set aside there before are gone)" in capsys.readouterr().err
    assert samples(tmp_path / "old" / "results.previous.jsonl") == ["new"]
    assert samples(tmp_path / "old") == ["newer"]


def test_what_is_set_aside_can_be_merged_back(tmp_path: Path) -> None:
    for sample in ("first", "second"):
        set_aside(tmp_path / "results.jsonl")
        with ResultsWriter(tmp_path, {}) as writer:
            writer.append(record(sample=sample))
    merge_files([tmp_path / "results.previous.jsonl"], tmp_path)
    assert samples(tmp_path) == ["first"]
    assert samples(tmp_path / "results.previous.jsonl") == ["second"]


@pytest.mark.parametrize("link", [False, True])
def test_a_merge_does_not_replace_one_of_its_inputs(tmp_path: Path, link: bool) -> None:
    with ResultsWriter(tmp_path / "one", {}) as writer:
        writer.append(record())
    folder = tmp_path / "one"
    if link:
        folder = tmp_path / "two"
        folder.symlink_to(tmp_path / "one")
    with pytest.raises(UserError, match="is one of the results to merge: name another folder"):
        merge_files([tmp_path / "one"], folder)


def test_two_merges_do_not_write_one_file(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path / "in", {}) as writer:
        writer.append(record())
    parts = [read_results([tmp_path / "in"])]
    path = tmp_path / "out" / "results.jsonl"
    with store._holding(path), pytest.raises(UserError, match="another run is writing"):
        write_results(path, parts)
    # Nothing of it stays.
    assert list(path.parent.iterdir()) == []
    write_results(path, parts)
    assert [item.name for item in path.parent.iterdir()] == ["results.jsonl"]


def test_a_run_that_ended_before_its_first_record_displaces_nothing(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, {}) as writer:
        writer.append(record(sample="kept"))
    assert "set aside as results.previous.jsonl" in set_aside(writer.path)
    for _ in range(2):
        ResultsWriter(tmp_path, {}).close()
        assert set_aside(writer.path) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["results.previous.jsonl"]
    assert samples(tmp_path / "results.previous.jsonl") == ["kept"]


def test_a_file_that_is_no_results_is_set_aside_whole(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("milk\n")
    assert set_aside(path)
    assert (tmp_path / "results.previous.jsonl").read_text() == "milk\n"


def test_a_writer_that_waited_for_a_merge_writes_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be replaced between its opening and its locking."""
    with ResultsWriter(tmp_path / "in", {}) as other, ResultsWriter(tmp_path / "out", {}) as old:
        other.append(record(sample="merged"))
        old.append(record(sample="old"))
    parts = [read_results([tmp_path / "in"])]
    opened = files.appending

    def late(path: Path) -> int:
        descriptor = opened(path)
        monkeypatch.undo()
        write_results(path, parts)
        return descriptor

    monkeypatch.setattr(files, "appending", late)
    with ResultsWriter(tmp_path / "out", {}) as writer:
        writer.append(record(sample="late"))
    assert samples(tmp_path / "out") == ["merged", "late"]
    assert samples(tmp_path / "out" / "results.previous.jsonl") == ["old"]


def test_a_full_disk_costs_a_merge_nothing_that_was_there(tmp_path: Path) -> None:
    for name in ("old", "new"):
        with ResultsWriter(tmp_path / name, {}) as writer:
            writer.append(record(sample=name, log="x" * 10_000))
    with full_disk(5_000), pytest.raises(UserError, match="cannot write"):
        merge_files([tmp_path / "new"], tmp_path / "old")
    assert samples(tmp_path / "old") == ["old"]
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["results.jsonl"]


def test_text_that_is_no_text_never_reaches_the_file(tmp_path: Path) -> None:
    odd = "\udcff"
    with ResultsWriter(tmp_path, {"options": odd, "notes": [odd]}) as writer:
        writer.append_plan([f"x::y[{odd}]"])
        writer.append_not_run(NotRun("x", odd))
        writer.append(record(message=odd))
    results = read_results([tmp_path])
    assert results.runs[0]["options"] == results.records[0].message == "\\udcff"
