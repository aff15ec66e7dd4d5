"""What is printed and reported: no control characters, on any encoding, whoever reads it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.results.records import record
from vgf_conformance import terminal
from vgf_conformance.cli import main
from vgf_conformance.report import write_reports
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Comparison, DelegateFacts, FirstWrong, NotRun, Record
from vgf_conformance.results.store import ResultsWriter
from vgf_conformance.vocabulary import Stage, UserError, Verdict

Capture = pytest.CaptureFixture[str]

#: A title for the terminal, a cleared screen, a word from right to left, a line of one's own.
NASTY = "\x1b]0;PWN\x07\x1b[2J\u202e"
SHOWN = r"\x1b]0;PWN\x07\x1b[2J\u202e"
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")


def nasty_record(sample: str, verdict: Verdict = Verdict.FAIL) -> Record:
    return record(
        case=f"add{NASTY}",
        sample=sample + NASTY,
        profile="FP" + NASTY,
        scheme="none" + NASTY,
        target="emulation" + NASTY,
        verdict=verdict,
        stage=Stage.RUN,
        unexpected=True,
        message=f"message {NASTY}\nsecond {NASTY}",
        expectation_note=NASTY,
        operator="op" + NASTY,
        driver=NASTY,
        dtypes=[NASTY],
        tier=NASTY,
        comparisons=[Comparison(NASTY, Stage.RUN, 0, False, NASTY, None, 0.5, NASTY, NASTY, [1], NASTY)],
        delegates=[DelegateFacts(NASTY, 1, {NASTY: 1}, 1, 1, {NASTY: {NASTY: 1}})],
        first_wrong=FirstWrong(Stage.RUN, NASTY, NASTY, 0, NASTY, NASTY, NASTY, NASTY, [NASTY]),
        about={NASTY: NASTY},
        notes=[NASTY, f"memory leak: {NASTY}"],
        artifact=NASTY,
        repro=NASTY,
        log=NASTY,
    )


def nasty_results(folder: Path, device: str, *records: Record) -> Path:
    described = {
        "driver": {"device": device + NASTY, "driver": NASTY},
        "versions": {NASTY: NASTY},
        "notes": ["# HEAD", "1. ONE", "> " + NASTY],
        "targets": [NASTY],
        NASTY: {NASTY: NASTY},
        "shard": "1/2",
    }
    with ResultsWriter(folder, described) as writer:
        writer.append_plan([f"missing::{NASTY}[a-b]", *(item.id for item in records)])
        writer.append_not_run(NotRun(f"not::run[{NASTY}]", NASTY))
        for item in records:
            writer.append(item)
    return folder


def harmless(text: str) -> bool:
    return not _HARMFUL.search(text)


def test_visible_keeps_what_can_be_shown() -> None:
    assert terminal.visible("ünï ✗ – 日本\n\tx") == "ünï ✗ – 日本\n\tx"  # noqa: RUF001
    assert terminal.visible(NASTY + "\r\x00\udc80\u2028") == SHOWN + r"\r\x00\udc80\u2028"


def test_reports_show_no_control_characters(tmp_path: Path) -> None:
    folder = nasty_results(tmp_path / "in", "lvp", nasty_record("a"), nasty_record("b", Verdict.CRASH))
    assert main(["report", str(folder), "-o", str(tmp_path / "out")]) == 0
    pages = {path.name: path.read_text("utf-8") for path in (tmp_path / "out").iterdir()}
    assert len(pages) == 4
    for name, page in pages.items():
        assert harmless(page), name
        assert "PWN" in page


def test_commands_print_no_control_characters(tmp_path: Path, capfd: Capture) -> None:
    folders = [
        nasty_results(tmp_path / name, name, *(nasty_record(sample) for sample in samples))
        for name, samples in {"one": "ab", "two": "bc", "same": "a"}.items()
    ]
    page = tmp_path / f"page{NASTY}.md"
    one, two, _ = map(str, folders)
    absent = str(tmp_path / NASTY)
    for command, status in (
        (["merge", one, two, "-o", str(tmp_path / f"all{NASTY}")], 1),
        (["compare", one, two, "-o", str(page)], 1),
        (["compare", two, two, "-o", str(page)], 0),
        (["report", absent, "-o", absent], 2),
        (["report", one, "-o", str(tmp_path / f"all{NASTY}" / "reports")], 0),
        (["merge", absent + "x", "-o", absent], 2),
        (["compare", absent + "x", one], 2),
        (["extract", absent, "-o", absent], 2),
        (["pack", "verify", absent + ".zip"], 2),
        (["check", absent + ".py"], 2),
    ):
        assert main(command) == status, command
        said = capfd.readouterr()
        assert harmless(said.out + said.err), command
        assert "PWN" in said.out + said.err or status == 0
        if page.exists():
            assert harmless(page.read_text("utf-8"))


def test_keys_in_refusals_show_no_control_characters(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "results.jsonl"
    for line in (
        {"type": "run", "schema": 4, "versions": {NASTY: 3}},
        {"type": NASTY},
        {"type": "run", "schema": 4, "shard": NASTY},
        {**record().to_json(), NASTY: 1},
    ):
        path.write_text('{"type":"run","schema":4}\n' + json.dumps(line, ensure_ascii=False) + "\n", "utf-8")
        assert main(["report", str(path), "-o", str(tmp_path / "out")]) == 2
        said = capfd.readouterr().err
        assert harmless(said)
        assert "PWN" in said


@pytest.mark.parametrize(
    "note", ["# HEAD", "## HEAD", "> HEAD", "- HEAD", "+ HEAD", "1. HEAD", "12) HEAD", "---"]
)
def test_a_note_is_no_markup(note: str, tmp_path: Path) -> None:
    results = Results(runs=[{"notes": [note]}], records=[record(notes=[note], verdict=Verdict.FAIL)])
    write_reports(results, tmp_path)
    lines = (tmp_path / "matrix.md").read_text("utf-8").splitlines()
    shown = [line for line in lines if line.replace("\\", "") == f"- {note}"]
    assert len(shown) == 2
    assert all(re.match(r"- \d*\\[#>+=.)-]", line) for line in shown)


@pytest.fixture(scope="module")
def page_with_names_of_javascript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ("constructor", "__proto__", "toString", "hasOwnProperty")
    counts = dict.fromkeys(names, 1)
    delegate = DelegateFacts(
        "d", 1, counts, 1, 1, {"A": {"constructor": 1}, "ADD": {"int8": 1}, **dict.fromkeys(names, counts)}
    )
    items = [
        record(
            sample=name,
            operator=name,
            delegates=[delegate],
            about=dict.fromkeys(names, "x"),
            driver=name,
            seconds=dict.fromkeys(names, 1.0),
            scheme=name,
            profile=name,
            target=name,
        )
        for name in names
    ]
    runs = [{"type": "run", "schema": 4, **dict.fromkeys(names, "x"), "driver": dict.fromkeys(names, NASTY)}]
    folder = tmp_path_factory.mktemp("page")
    write_reports(Results(runs=runs, records=items), folder)
    return folder / "report.html"


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_the_page_is_drawn_with_any_names_in_it(page_with_names_of_javascript: Path) -> None:
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    drawn = subprocess.run(
        [*command, "--dump-dom", page_with_names_of_javascript.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    body = drawn.partition('<main id="main">')[2].partition("</main>")[0]
    for name in ("constructor", "__proto__", "toString", "hasOwnProperty"):
        assert f">{name}</th>" in body.replace("<wbr>", "")
    assert "4 of 4 cases" in body


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_page_looks_names_up_in_its_own_data_alone(page_with_names_of_javascript: Path) -> None:
    page = page_with_names_of_javascript.read_text("utf-8")
    text = page.partition('id="data">')[2].partition("</script>")[0]
    parse = re.search(r"const DATA = JSON.parse.*?;\n", page, re.S)
    assert parse
    program = f"""
        const document = {{getElementById: () => ({{textContent: {json.dumps(text)}}})}};
        {parse[0]}
        console.log(JSON.stringify([DATA.tosa.ADD.constructor, DATA.tosa.ADD.__proto__,
            DATA.tosa.__proto__.constructor, DATA.environment.__proto__, DATA.environment.valueOf]));
    """
    ran = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == [None, None, [4, 4], "x", None]


def command_line(*arguments: object, **streams: object) -> subprocess.CompletedProcess[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONIOENCODING": "ascii",
    }
    return subprocess.run(  # type: ignore[call-overload]
        [sys.executable, "-m", "vgf_conformance.cli", *map(str, arguments)], env=environment, **streams
    )


@pytest.fixture
def closed() -> int:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_a_closed_pipe_costs_no_report_and_no_exit_status(closed: int, tmp_path: Path) -> None:
    folder = nasty_results(tmp_path / "in", "lvp", record())
    for command, status in (("report", 0), ("merge", 1)):
        out = tmp_path / command
        ran = command_line(command, folder, "-o", out, stdout=closed, stderr=subprocess.PIPE)
        assert (ran.returncode, ran.stderr) == (status, b"")
        assert (out / "report.html").stat().st_size
    page = tmp_path / "page.md"
    ran = command_line("compare", folder, folder, "-o", page, stdout=closed, stderr=closed)
    assert ran.returncode == 0
    assert page.stat().st_size
    os.close(closed)


def test_any_encoding_of_the_terminal_will_do(tmp_path: Path) -> None:
    folder = nasty_results(tmp_path / "in", "lvp – ünï", record(message="– ünï ✗"))  # noqa: RUF001
    for command, status in (
        (["report", folder, "-o", tmp_path / "– out"], 0),  # noqa: RUF001
        (["merge", folder, "-o", tmp_path / "out"], 1),
        (["compare", folder, folder], 0),
        (["report", tmp_path / "– absent", "-o", tmp_path], 2),  # noqa: RUF001
    ):
        ran = command_line(*command, capture_output=True)
        assert ran.returncode == status, ran
        assert (ran.stdout + ran.stderr).isascii()
        assert b"Traceback" not in ran.stderr


def test_a_full_standard_output_is_bad_input(tmp_path: Path) -> None:
    folder = nasty_results(tmp_path / "in", "lvp", record())
    with Path("/dev/full").open("wb") as full:
        ran = command_line("report", folder, "-o", tmp_path / "out", stdout=full, stderr=subprocess.PIPE)
    assert ran.returncode == 2
    assert ran.stderr == b"vgf-conformance: cannot write to standard output: No space left on device\n"
    assert (tmp_path / "out" / "report.html").exists()


def test_a_process_without_standard_streams_prints_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    terminal.say("x")
    terminal.complain("x")


def test_a_stream_without_a_descriptor_may_break_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        error: OSError = BrokenPipeError()

        def write(self, text: str) -> int:
            raise self.error

    monkeypatch.setattr(sys, "stdout", Broken())
    terminal.say("x")
    terminal.Enduring(sys.stdout).write("x")
    Broken.error = OSError(28, "No space left on device")
    with pytest.raises(UserError, match="No space left"):
        terminal.say("x")
