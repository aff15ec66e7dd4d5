"""Passes that no case reaches, and the reasons for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.results import records
from vgf_conformance.evaluation.unreached import backend_passes, load_reasons, main, reached_passes, report
from vgf_conformance.results.record import Record
from vgf_conformance.results.store import ResultsWriter
from vgf_conformance.vocabulary import UserError

ROOT = Path(__file__).parents[2]


def record(*passes: str) -> Record:
    return records.record(passes=list(passes))


def test_every_pass_is_reached_or_has_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert report({"One", "Two"}, {"One"}, {"Two": "nothing needs it"}) == 0
    assert capsys.readouterr().out == (
        "2 passes of the backend, 1 change a graph of these cases\n  Two: nothing needs it\n"
    )


def test_a_pass_without_a_case_or_a_reason_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert report({"One", "Two"}, {"One"}, {}) == 1
    assert "Two: no case reaches it, and no reason is given" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("passes", "why"), [({"One"}, "a case reaches it"), ({"Two"}, "the backend does not run it")]
)
def test_a_reason_that_does_not_hold_fails(
    passes: set[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(passes, passes, {"One": "nothing needs it"}) == 1
    assert f"One: has a reason, but {why}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unreached = 1", "has to be an array of tables"),
        ('[[unreached]]\nreason = "none"', "entry 1: an entry has a list of passes and a reason"),
        ('[[unreached]]\npasses = ["One", "One"]\nreason = "none"', "entry 1: One is named twice"),
    ],
)
def test_a_malformed_file_of_reasons(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "unreached.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        load_reasons(tmp_path / "unreached.toml")


def test_results_that_do_not_say_are_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="none of 1 records says which passes"):
        reached_passes([record()])
    (tmp_path / "unreached.toml").write_text("")
    with ResultsWriter(tmp_path / "results.jsonl", {}) as writer:
        writer.append(record())
    assert main([str(tmp_path), "--reasons", str(tmp_path / "unreached.toml")]) == 2
    assert "none of 1 records says which passes" in capsys.readouterr().err


def test_the_reasons_on_file_name_passes_that_the_backend_runs() -> None:
    passes = backend_passes()
    assert {"FoldAndAnnotateQParamsPass", "DecomposeGluPass", "ConstantFoldingPass"} <= passes
    assert load_reasons(ROOT / "golden" / "unreached.toml").keys() <= passes
