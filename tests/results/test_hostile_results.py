"""Results that strangers made: each is refused with file and line, or shown by every command."""

from __future__ import annotations

import copy
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.results.test_record_schema import full_record
from vgf_conformance.cli import main
from vgf_conformance.comparison.drivers import compare_drivers, side
from vgf_conformance.report import compare_table, summary_table, write_reports
from vgf_conformance.report.drivers import drivers_page, drivers_text
from vgf_conformance.report.failure import failure_text
from vgf_conformance.results.compare import compare_runs
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import SCHEMA_VERSION
from vgf_conformance.results.store import (
    LINE_LIMIT,
    ResultsWriter,
    parse_line,
    read_results,
    set_aside,
    write_results,
)
from vgf_conformance.vocabulary import UserError

Capture = pytest.CaptureFixture[str]

RUN: dict[str, Any] = {
    "type": "run",
    "schema": SCHEMA_VERSION,
    "started": "2026-05-11T08:30:00+00:00",
    "versions": {"torch": "2.13.0"},
    "targets": ["emulation"],
    "driver": {"device": "llvmpipe", "driver": "Mesa 25"},
    "device": {"name": "llvmpipe", "vendor_id": 65541},
    "layers": {"emulation": "emulation layers: graph and tensor"},
    "notes": ["not run: much"],
    "shard": "1/2",
    "seed": 0,
}
CASE = {**full_record().to_json(), "kind": "model", "unexpected": True, "target": "emulation"}
PLAN = {"type": "plan", "cases": [CASE["id"]]}
CLAIMS = {
    "type": "claims",
    "claims": [
        {"operator": "add", "profile": "FP", "dtype": "int8", "mode": "none", "source": "registry"},
        {"operator": "aten.add.Tensor", "profile": "FP", "dtype": "", "mode": "", "source": "documentation"},
    ],
}
NOT_RUN = {"type": "not_run", "id": "x::y[z]", "reason": "lacks a package"}

#: As JSON text: what no honest writer puts anywhere, and what one may.
VALUES = [
    *("null", "true", "-1", "1.0", "1.5", "1e308", "-1e308", "NaN", "9" * 400, "9007199254740993"),
    *('""', '"inf\\n"', '"2/1"', '"\\ud800"', '"\\u0000\\u001b]0;PWN\\u0007\\u202e"', '"a\\nb"'),
    *("[]", "[[]]", "{}", '{"a": {"b": []}}', '{"constructor": 1}', '["x"]', "[1]", '{"__proto__": "x"}'),
]
MARK = "@HERE@"


def places(document: Any) -> Iterator[tuple[Any, ...]]:
    """The path of every value of a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in items:
        yield (name,)
        if isinstance(value, (dict, list)):
            yield from ((name, *rest) for rest in places(value))


def with_value(document: dict[str, Any], place: tuple[Any, ...], value: str) -> str:
    """The document's JSON with the value at ``place`` replaced by a JSON text."""
    changed = copy.deepcopy(document)
    inner: Any = changed
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = MARK
    return json.dumps(changed).replace(f'"{MARK}"', value)


def file_of(folder: Path, *lines: str | dict[str, Any]) -> Path:
    path = folder / "results.jsonl"
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return path


def show(results: Results, folder: Path) -> None:
    """All that is made of results."""
    write_reports(results, folder)
    summary_table(results)
    compare_table(compare_runs(results, results))
    for item in results.records:
        failure_text(item)
    try:
        sides = [side(results, lambda output: None) for _ in range(2)]
        compared = compare_drivers(*sides)
    except UserError:
        return
    drivers_text(compared)
    drivers_page(compared)


@pytest.mark.parametrize(
    "kind", [RUN, CASE, PLAN, CLAIMS, NOT_RUN], ids=["run", "case", "plan", "claims", "not_run"]
)
def test_every_value_of_every_field_is_refused_or_shown(kind: dict[str, Any], tmp_path: Path) -> None:
    others = [item for item in (PLAN, CLAIMS, NOT_RUN, CASE) if item is not kind]
    refused = 0
    for value in VALUES:
        accepted = []
        for place in places(kind):
            line = with_value(kind, place, value)
            try:
                parse_line(line.encode(), tmp_path / "results.jsonl", 7)
                accepted.append(line)
            except UserError as error:
                refused += 1
                assert "results.jsonl:7: " in str(error)
                assert len(str(error)) < 1000
        results = read_results([file_of(tmp_path, RUN, *accepted, *others)])
        show(results, tmp_path / "out")
        write_results(tmp_path / "merged.jsonl", [results])
    assert refused > 30


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["[" * 100_000], ":2: not JSON: nested deeper"),
        (
            [json.dumps({"type": "run", "schema": 4, "more": {}}).replace("{}", "[" * 70 + "]" * 70)],
            ":2: nested deeper",
        ),
        (['{"type":"case","id":' + "9" * 400], ":2: not JSON: an integer of 400 digits"),
        (
            [json.dumps({**CASE, "seconds": {"run": 1e12}})],
            r":2: \$\.seconds\.run: .* greater than the maximum",
        ),
        ([json.dumps({**CASE, "pte_bytes": 1 << 63})], r":2: \$\.pte_bytes"),
        ([json.dumps({**CASE, "worker_bytes": -1})], r":2: \$\.worker_bytes: -1 is less than the minimum"),
        ([json.dumps({**CASE, "id": "a\nall pass"})], r":2: \$\.id"),
        ([json.dumps({**CASE, "log": "\ud800"})], ":2: not text: half of a surrogate pair"),
        ([json.dumps({**RUN, "driver": [1]})], r":2: \$\.driver"),
        ([json.dumps({**RUN, "driver": {"device": 3}})], r":2: \$\.driver\.device"),
        ([json.dumps({**RUN, "notes": "one"})], r":2: \$\.notes"),
        ([json.dumps({**RUN, "shard": "4/2"})], r":2: \$\.shard: unknown shard"),
        ([json.dumps({**RUN, "shard": 1})], r":2: \$\.shard"),
        ([json.dumps({**RUN, "schema": 99.0})], ":2: schema 99"),
        ([json.dumps({**CASE, "histogram": [1] * 5})], ":2: .*histogram"),
        ([json.dumps({**PLAN, "cases": ["x"] * 1_000_001})], r":2: \$\.cases: .* is too long"),
        ([json.dumps({**CASE, "notes": [3] * 300_000})], r":2: \$\.notes: "),
        ([json.dumps({**CASE, "x" * 100_000: 1})], ":2: "),
        ([" " * (LINE_LIMIT + 1)], "line 2 is too long"),
    ],
)
def test_what_is_refused_is_refused_by_every_command(
    lines: list[str], why: str, tmp_path: Path, capfd: Capture
) -> None:
    good = file_of(tmp_path, RUN, CASE).rename(tmp_path / "good.jsonl")
    bad = file_of(tmp_path, RUN, *lines)
    start = time.process_time()
    for command in (
        ["report", bad, "-o", tmp_path / "out"],
        ["merge", good, bad, "-o", tmp_path / "out"],
        ["compare", good, bad],
        ["compare", bad, good],
    ):
        assert main([str(word) for word in command]) == 2
        said = capfd.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1
        assert re.search(why, said.err), said.err[:1000]
        assert len(said.err) < 1000
    with pytest.raises(UserError, match=why):
        read_results([bad])
    assert time.process_time() - start < 5
    assert not (tmp_path / "out").exists()


def test_megabytes_of_newlines_are_refused_at_the_first(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(json.dumps(RUN).encode() + b"\n" * 3_000_000)
    start = time.process_time()
    with pytest.raises(UserError, match=r"results\.jsonl:2: not JSON: the line is empty"):
        read_results([path])
    assert time.process_time() - start < 1


@pytest.fixture(params=["pipe", "socket", "link", "loop", "device", "name", "sparse", "dangling"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The path of a results file that is none."""
    path = tmp_path / "odd" / "results.jsonl"
    path.parent.mkdir()
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif request.param == "link":
        path.symlink_to(file_of(tmp_path, RUN, CASE))
    elif request.param == "loop":
        path.symlink_to(path)
    elif request.param == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    elif request.param == "device":
        return Path("/dev/zero")
    elif request.param == "name":
        return tmp_path / ("n" * 5000)
    else:
        with path.open("wb") as file:
            file.truncate(5 << 30)
    return path


def test_what_is_no_regular_file_is_not_waited_for(odd: Path, tmp_path: Path, capfd: Capture) -> None:
    good = file_of(tmp_path, RUN, CASE)
    start = time.process_time()
    for command in (
        ["report", odd, "-o", tmp_path / "out"],
        ["merge", good, odd, "-o", tmp_path / "out"],
        ["compare", good, odd],
    ):
        assert main([str(word) for word in command]) == 2
        said = capfd.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1
        assert odd.name[:100] in said.err
    assert time.process_time() - start < 5


@pytest.mark.parametrize("odd", ["pipe", "link", "loop", "dangling"], indirect=True)
def test_results_are_only_written_to_a_regular_file(odd: Path, tmp_path: Path, capfd: Capture) -> None:
    good = file_of(tmp_path, RUN, CASE)
    content = good.read_bytes()
    assert main(["merge", str(good), "-o", str(odd.parent)]) == 2
    assert "not a regular file" in capfd.readouterr().err
    with pytest.raises(UserError, match="not a regular file"):
        ResultsWriter(odd, {})
    with pytest.raises(UserError, match="not a regular file"):
        set_aside(odd)
    assert good.read_bytes() == content
