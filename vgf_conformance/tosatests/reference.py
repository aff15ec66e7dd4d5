"""The reference model in fp64, with its bounds: what tosa-tools' verifier judges against."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.tosatests import toolkit
from vgf_conformance.tosatests.generate import Generated

_TIME_LIMIT = 120.0


class ReferenceFailure(Exception):
    """The reference model gives no exact result; the message says why."""


@dataclass(frozen=True)
class Exact:
    """One output in fp64 (integers as they are), and its bounds where its rule has some."""

    value: NDArray[Any]
    bounds: NDArray[Any] | None


def exact_results(test: Generated) -> dict[str, Exact]:
    """Run ``test`` in the reference model's precise mode; results by output name.

    Raises ReferenceFailure where the run is unpredictable or the graph is invalid.
    """
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        home = Path(folder)
        description = test.description
        for name, content in test.files.items():
            (home / name).write_bytes(content)
        (home / "desc.json").write_text(json.dumps(description), "utf-8")
        _run(home / "desc.json")
        return {
            name: Exact(np.load(home / file), _optional(home / f"bounds_{file}"))
            for name, file in zip(description["ofm_name"], description["ofm_file"], strict=True)
        }


def _run(description: Path) -> None:
    command = [
        str(toolkit.reference_program()),
        f"--test_desc={description}",
        f"--operator_fbs={toolkit.operator_schema()}",
        "--precise_mode=1",
    ]
    # It starts gdb, found through PATH, for a backtrace of an invalid graph: that takes 8 to 17 s.
    environment = {**os.environ, "PATH": ""}
    try:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=_TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise ReferenceFailure(f"no answer within {_TIME_LIMIT:g} s") from None
    if done.returncode:
        ending = {1: "UNPREDICTABLE", 2: "ERROR"}.get(done.returncode, f"with exit status {done.returncode}")
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise ReferenceFailure(f"the fp64 run ends {ending}: {words[-1] if words else 'it does not say why'}")


def _optional(path: Path) -> NDArray[Any] | None:
    return np.load(path) if path.exists() else None
