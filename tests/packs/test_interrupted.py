"""A run of a pack that is ended, or whose disk is full, keeps what it has and can be gone on with."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.packs.test_isolation import COUNT, numbered
from vgf_conformance.packs.pack import open_pack
from vgf_conformance.results.store import read_results

#: Ids that contain this: enough to be in the middle for some time.
WORDS = "sample1"
CASES = sum(f"sample{number}".startswith(WORDS) for number in range(COUNT))


@pytest.fixture
def many(small: Path, tmp_path: Path) -> Path:
    return numbered(small, tmp_path)


def start(pack: Path, results: Path, *options: str, bytes_at_most: int = 0) -> subprocess.Popen[str]:
    """Start ``pack run`` on the real layers; no file of it may grow beyond ``bytes_at_most``."""

    def limit() -> None:
        if bytes_at_most:
            resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_at_most, bytes_at_most))

    # Not measured for coverage, whose own file may be as large as the limit.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-m", "vgf_conformance.cli", "pack", "run", str(pack), "-o", str(results)]
    return subprocess.Popen(
        [*command, "-k", WORDS, *options],
        env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit,
    )


def cases(results: Path) -> int:
    """How many cases are written whole."""
    try:
        return (results / "results.jsonl").read_text().count('{"type":"case"')
    except FileNotFoundError:
        return 0


def go_on(pack: Path, results: Path) -> None:
    done = start(pack, results, "--resume")
    _, errors = done.communicate()
    assert (done.returncode, errors) == (0, "")
    found = read_results([results])
    assert found.warnings == []
    with open_pack(pack) as opened:
        wanted = [case.id_on("emulation") for case in opened.chosen([WORDS])]
    assert [record.id for record in found.records] == wanted
    assert len(found.runs) == 2


def test_sigterm_keeps_what_was_found(many: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run = start(many, results)
    while not cases(results) and run.poll() is None:
        time.sleep(0.02)
    run.send_signal(signal.SIGTERM)
    _, errors = run.communicate()
    assert (run.returncode, errors) == (130, "vgf-conformance: interrupted\n")
    assert 0 < cases(results) < CASES
    go_on(many, results)


def test_a_full_disk_keeps_what_was_found(many: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run = start(many, results, bytes_at_most=16 << 10)
    _, errors = run.communicate()
    assert run.returncode == 2
    assert errors.startswith(f"vgf-conformance: cannot write results to {results / 'results.jsonl'}: ")
    assert len(errors.splitlines()) == 1
    assert 0 < cases(results) < CASES
    go_on(many, results)
