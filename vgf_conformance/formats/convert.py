"""The model converter: a TOSA graph into a VGF."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from vgf_conformance.launch import python_environment, search_path, signal_name
from vgf_conformance.vocabulary import Finding, UserError, Verdict

_TIME_LIMIT = 300.0


class Refusal(Exception):
    """The converter made no VGF: with which verdict and finding that is recorded, and its last words."""

    def __init__(self, verdict: Verdict, finding: Finding, message: str, log: str) -> None:
        super().__init__(message)
        self.verdict, self.finding, self.message, self.log = verdict, finding, message, log


def beside_python() -> Path:
    """Where the converter of this environment lies, whether or not the environment is activated."""
    return Path(sys.executable).with_name("model-converter")


def find_converter() -> str | None:
    """The program that MODEL_CONVERTER_PATH names, or that is on PATH or beside Python; None without one.

    It is never looked for in the working directory, which PATH may mean.
    """
    if named := os.environ.get("MODEL_CONVERTER_PATH"):
        return named
    path = os.pathsep.join((search_path(), str(Path(sys.executable).parent)))
    return shutil.which("model-converter", path=path) or shutil.which("model_converter", path=path)


def converter() -> str:
    """As find_converter, but raises UserError where there is none."""
    found = find_converter()
    if found is None:
        raise UserError(
            "no model converter: python -m pip install ai-ml-sdk-model-converter==0.11.0, "
            "or name one in MODEL_CONVERTER_PATH"
        )
    return found


def identity() -> tuple[object, ...]:
    """What tells one build of the converter from another."""
    path = Path(converter())
    return (str(path), path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else (str(path),)


def convert(tosa: bytes) -> bytes:
    """The VGF of a TOSA graph; raises Refusal."""
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        source, target = Path(folder) / "test.tosa", Path(folder) / "test.vgf"
        source.write_bytes(tosa)
        command = [converter(), "--input", str(source), "--output", str(target)]
        try:
            done = subprocess.run(command, capture_output=True, env=python_environment(), timeout=_TIME_LIMIT)
        except subprocess.TimeoutExpired as error:
            message = f"the model converter gives no answer within {_TIME_LIMIT:g} s"
            raise Refusal(Verdict.TIMEOUT, Finding.HUNG, message, str(error)) from None
        except OSError as error:
            raise UserError(f"the model converter does not launch: {error}") from error
        log = (done.stdout + done.stderr).decode(errors="replace").replace(folder, "...")
        if done.returncode < 0:
            message = f"the model converter was ended by {signal_name(done.returncode)}"
            raise Refusal(Verdict.CRASH, Finding.CRASHED, message, log)
        if done.returncode or not target.exists():
            message = f"the model converter refuses the graph: {_reason(log)}"
            raise Refusal(Verdict.UNSUPPORTED, Finding.RAISED, message, log)
        return target.read_bytes()


def _reason(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if re.search(r"\berror\b", line, re.IGNORECASE)]
    return lines[0].removeprefix("<unknown>:0: error: ") if lines else "it does not say why"
