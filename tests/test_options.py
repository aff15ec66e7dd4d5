"""Options that cannot be meant: one message, exit status 2, nothing that a terminal would act on."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from vgf_conformance import cli, plugin
from vgf_conformance.options import seconds, seed, some_path, some_text
from vgf_conformance.terminal import visible

#: Sets a title, clears the screen, turns the rest of a line round.
CONTROLS = "\x1b]0;PWN\x07\x1b[2J\u202e\udcff"


def usage_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line of what a command says before it ends with exit status 2."""
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    said = capsys.readouterr()
    assert not said.out
    assert "Traceback" not in said.err
    assert visible(said.err) == said.err
    return said.err.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("capabilities", "--driver", ""),
        ("capabilities", "--driver", " "),
        ("capabilities", "--expect-driver", ""),
        ("check", "model.py", "--runtime-library", ""),
        ("check", "model.py", "--executor-runner", ""),
        ("check", ""),
        ("reduce", "model.py", "--profile", ""),
        ("reduce", "model.py", "--target", ""),
        ("bisect", "model.py", "--scheme", ""),
        ("qualify", "pack.zip", "-o", "out", "--product", ""),
        ("pack", "run", "pack.zip", "-o", ""),
        ("pack", "run", "pack.zip", "-o", "out", "--shard", ""),
        ("pack", "verify", "pack.zip", "--outputs", ""),
        ("submission", "verify", "sub", "--pack", "pack.zip", "--mandatory", ""),
        ("report", "", "-o", "out"),
        ("merge", "run", "", "-o", "out"),
        ("compare", "old", ""),
        ("extract", "", "-o", "out"),
    ],
)
def test_an_empty_value_is_a_mistake(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert "is empty: give a value, or leave it out" in usage_error(capsys, *arguments)


@pytest.mark.parametrize("command", ["check", "bisect", "reduce"])
@pytest.mark.parametrize("value", ["18446744073709551616", "-9223372036854775809", "1e3", "", "9" * 5000])
def test_a_seed_that_pytorch_does_not_take(
    command: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = usage_error(capsys, command, "model.py", f"--seed={value}")
    assert "argument --seed: " in said
    assert len(said) < 300


@pytest.mark.parametrize("option", ["--time-limit", "--budget"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1", "1e300", "1000001", "soon", CONTROLS])
def test_a_time_without_an_end(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = usage_error(capsys, "reduce", "model.py", f"{option}={value}")
    assert f"argument {option}: " in said
    assert "is not a time: give seconds, more than 0 and at most 1000000" in said


@pytest.mark.parametrize("value", ["", "nan", "inf", "1e999", "twenty", "2\u202e0", "20 dB"])
def test_no_number_of_decibels(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = usage_error(capsys, "check", "model.py", "--min-sqnr", value)
    assert "is not a number of decibels, such as 20" in said


def test_values_that_are_fine() -> None:
    assert [seed(str(value)) for value in (0, -1, 2**64 - 1, -(2**63))] == [0, -1, 2**64 - 1, -(2**63)]
    assert (seconds("0.5"), seconds("1e6")) == (0.5, 1e6)
    assert (some_text("a"), some_path("a/b")) == ("a", Path("a/b"))


def test_readers_say_what_they_want() -> None:
    for reader in (seed, seconds, some_text, some_path):
        with pytest.raises(ArgumentTypeError):
            reader("")


@pytest.mark.parametrize(
    "shard", ["1/0", "0/1", "2/1", "1/99999", "1/" + "9" * 5000, "-1/4", "1/4\n", CONTROLS]
)
def test_a_shard_that_is_none(shard: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pack", "run", "absent.zip", "-o", str(tmp_path / "out"), f"--shard={shard}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("vgf-conformance: unknown shard")
    assert visible(said) == said


@pytest.mark.parametrize(
    "arguments", [(CONTROLS,), ("capabilities", f"--{CONTROLS}"), ("capabilities", "--layers", CONTROLS)]
)
def test_what_a_usage_error_quotes_is_visible(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\\x1b" in usage_error(capsys, *arguments)


def test_a_quoted_line_break_makes_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    said = usage_error(capsys, "capabilities", "--x\nvgf-conformance: all pass")
    assert said.endswith("--x vgf-conformance: all pass")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            FileNotFoundError(2, "No such file or directory", "a\x1b.json"),
            "a\\x1b.json: No such file or directory",
        ),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "there is not enough memory for this: free some, or give less at once"),
        (
            RecursionError("maximum recursion depth exceeded"),
            "what was given is nested too deeply to be worked on (or else this is a fault of the harness)",
        ),
    ],
)
def test_what_nobody_put_into_words(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(parsed: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(cli, "_doctor", fails)
    assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().err == f"vgf-conformance: {message}\n"


@pytest.mark.parametrize(
    "option", ["--seed=18446744073709551616", "--driver=", "--shard=", "--time-limit=nan"]
)
def test_pytest_refuses_the_same(option: str) -> None:
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    with pytest.raises(pytest.UsageError, match=f"argument {option.partition('=')[0]}: "):
        parser.parse([option])
