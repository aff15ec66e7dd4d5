"""Further attempts to have a bad driver accepted: what stands beside records, and outputs of odd shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.qualification.tamper import Lines, cases, lines, reseal, runs, statement, write
from tests.qualification.test_tampered import (
    CAPABLE,
    LACKS_BF16,
    WHOLE,
    Tamper,
    loaded,
    npy,
    output,
    refused,
    reported,
    started,
    stated,
    together,
    told,
    whole,  # noqa: F401
    whole_once,  # noqa: F401
)
from vgf_conformance.packs.pack import Pack
from vgf_conformance.results.record import SCHEMA_VERSION

#: The version as a run line says it.
SCHEMA = f'"schema":{SCHEMA_VERSION}'


def text(name: str, change: Callable[[str], str]) -> Tamper:
    def tamper(shard: Path) -> None:
        for path in [shard / name] if name != "runs" else [shard / "run1.jsonl", shard / "run2.jsonl"]:
            path.write_text(change(path.read_text()))
        if name != "statement.json":
            reseal(shard)

    return tamper


def added(name: str) -> Tamper:
    def tamper(shard: Path) -> None:
        (shard / name).write_bytes(b"x")
        reseal(shard)

    return tamper


def folder_in_outputs(shard: Path) -> None:
    (shard / "outputs" / f"{'a' * 64}.npy").mkdir()


def last_run_line(**changes: Any) -> Tamper:
    return lambda shard: runs(
        shard,
        lambda documents: [*documents, {**documents[0], **changes, "started": documents[-1]["written"]}],
    )


def fail_then_pass(documents: Lines) -> Lines:
    (pair,) = (item for item in cases(documents) if item["case"] == "pair")
    first = {**pair, "verdict": "fail", "stage": "run", "finding": "wrong"}
    place = documents.index(pair)
    return [*documents[:place], first, *documents[place:]]


def ids(change: Callable[[str], str]) -> Tamper:
    def apply(documents: Lines) -> None:
        for document in cases(documents):
            if document["case"] == "pair":
                document["id"] = change(document["id"])

    return lambda shard: runs(shard, apply)


def upper_names(shard: Path) -> None:
    for path in list((shard / "outputs").iterdir()):
        path.rename(path.with_name(path.stem.upper() + ".npy"))
    reseal(shard)


def moved_outputs(shard: Path) -> None:
    """Outputs beside the folder of outputs."""
    for path in list((shard / "outputs").iterdir()):
        path.rename(shard / path.name)
    reseal(shard)


def time(written: str) -> Tamper:
    """The last record of both runs."""

    def change(documents: Lines) -> None:
        documents[-1]["written"] = written

    return lambda shard: runs(shard, change)


def second_only(name: str, **changes: Any) -> Tamper:
    def tamper(shard: Path) -> None:
        documents = lines(shard / "run2.jsonl")
        for document in cases(documents):
            if document["case"] == name:
                document.update(changes)
        write(shard / "run2.jsonl", documents)
        reseal(shard)

    return tamper


def swapped_runs(shard: Path) -> None:
    (shard / "run1.jsonl").rename(shard / "x")
    (shard / "run2.jsonl").rename(shard / "run1.jsonl")
    (shard / "x").rename(shard / "run2.jsonl")
    reseal(shard)


def no_bf16(report: dict[str, Any]) -> None:
    report["device"].update(formats=["float32", "int8"])


WRONG = "pass in the results, but by its outputs fail at run (wrong)"

AGAIN: dict[str, tuple[Tamper, str]] = {
    "an_empty_output": (output(lambda old: npy(np.zeros((0, 5), np.float32))), "output 0: shape [0, 5]"),
    "an_output_of_no_axis": (output(lambda old: npy(np.zeros((0,), np.float32))), "output 0: shape [0]"),
    "one_axis_more": (output(lambda old: npy(loaded(old)[None])), "output 0: shape [1, 3, 5]"),
    "flat": (output(lambda old: npy(loaded(old).ravel())), "output 0: shape [15]"),
    "one_row_for_all": (output(lambda old: npy(loaded(old)[:1])), "output 0: shape [1, 5]"),
    "other_byte_order": (output(lambda old: npy(loaded(old).astype(">f4"))), "holds >f4"),
    "all_zero": (output(lambda old: npy(np.zeros((3, 5), np.float32))), WRONG),
    "all_infinite": (output(lambda old: npy(np.full((3, 5), np.inf, np.float32))), WRONG),
    "all_minus_nan": (output(lambda old: npy(np.full((3, 5), -np.nan, np.float32))), WRONG),
    "as_bools": (output(lambda old: npy(loaded(old) > 0), "bool"), "output 0: bool, should be float32"),
    "a_fail_then_a_pass": (lambda shard: runs(shard, fail_then_pass), "there 2 times"),
    "an_id_with_a_blank": (ids(lambda name: name + " "), "no case of this shard"),
    "an_id_of_another_target": (
        ids(lambda name: name.replace("emulation", "vulkan")),
        "no case of this shard",
    ),
    "an_id_in_capitals": (ids(str.upper), "no case of this shard"),
    "an_id_with_a_mark": (ids(lambda name: name + "\u202e"), "no case of this shard"),
    "a_last_run_line_of_another_layers": (
        last_run_line(layers={"emulation": "no emulation layers"}),
        "run with another layers than the statement's",
    ),
    "a_last_run_line_of_another_pack": (
        last_run_line(pack={"sha256": "0" * 64}),
        "run with another pack than the statement's",
    ),
    "no_pack_in_the_run_lines": (started(pack={}), "run with another pack than the statement's"),
    "a_month_that_is_none": (time("2999-99-99T99:99:99.999+00:00"), "is no time"),
    "a_year_to_come": (time("2999-01-01T00:00:00.000+00:00"), "before the first run ended at 2999-01-01"),
    "upper_case_names": (upper_names, "no file of a submission"),
    "outputs_elsewhere": (moved_outputs, "no file of a submission"),
    "runs_swapped": (swapped_runs, "begun at"),
    "a_partial_file": (added(".partial-abc"), "no file of a submission"),
    "a_second_statement": (added("Statement.json"), "no file of a submission"),
    "a_folder_in_outputs": (folder_in_outputs, "is folder"),
    "a_pass_in_the_second_run_alone": (
        told("pair", verdict="fail", stage="run", finding="wrong"),
        "fail in the results, but by its outputs pass",
    ),
    "noisy_without_noise": (told("pair", finding="noisy"), "pass in the results, but by its outputs pass"),
    "a_pass_at_a_stage": (told("pair", stage="run"), "no case ends as"),
    "a_failure_without_a_finding": (told("pair", verdict="fail", stage="run"), "no case ends as"),
    "capability_in_the_second_run": (
        second_only("narrow", **CAPABLE, message=LACKS_BF16, outputs=[]),
        "the two runs gave other outputs",
    ),
    "capability_with_all_outputs": (
        together(told("narrow", **CAPABLE, message=LACKS_BF16), reported(no_bf16)),
        "with outputs of 1 of 1 calls",
    ),
    "a_schema_of_text": (
        text("runs", lambda old: old.replace(SCHEMA, '"schema": "6"', 1)),
        "is not of type 'integer'",
    ),
    "a_schema_of_one_half": (
        text("runs", lambda old: old.replace(SCHEMA, f"{SCHEMA}.5", 1)),
        f"schema {SCHEMA_VERSION}.5, but this version",
    ),
    "a_later_schema": (
        text("statement.json", lambda old: old.replace('"schema": 1', '"schema": 2', 1)),
        "schema 2, but this version reads up to 1",
    ),
    "a_true_schema": (
        text("statement.json", lambda old: old.replace('"schema": 1', '"schema": true', 1)),
        "",
    ),
    "no_versions": (together(started(versions={}), stated(versions={})), "statement.json: $.versions"),
    "nul_in_a_record": (
        text("runs", lambda old: old.replace("fake", "fa\\u0000ke")),
        "run with another product than the statement's",
    ),
    "null_bytes_after_the_records": (text("runs", lambda old: old + "\0"), "torn"),
    "a_list_of_no_files": (stated(files={}), "the statement does not list it"),
    "files_out_of_the_folder": (
        lambda shard: statement(
            shard,
            files={
                **json.loads((shard / "statement.json").read_text())["files"],
                "../waivers.toml": "0" * 64,
            },
        ),
        "",
    ),
}


@pytest.mark.parametrize("name", AGAIN)
def test_it_is_refused(name: str, whole: Path, pack: Pack) -> None:  # noqa: F811
    tamper, words = AGAIN[name]
    tamper(whole / WHOLE)
    refused(whole, pack, words)
