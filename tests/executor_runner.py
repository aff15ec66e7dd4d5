"""A stand-in for ExecuTorch's executor_runner: its flags and files, and one way to fail.

It executes no program: each output is what MODE says of the input of the same number. It knows the flags
that the real one has for this, and like the real one refuses any other and an input that is not there.
"""

from __future__ import annotations

import array
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Names what the runner does; the first is the default.
MODE = "VGF_CONFORMANCE_TEST_RUNNER"
MODES = (
    "copy",
    "abs",
    "short",
    "silent",
    "crash",
    "hang",
    "refuse",
    "drift",
    "endless",
    "link",
    "talk",
    "log",
)


def main(arguments: list[str]) -> int:
    flags = dict(item.removeprefix("--").split("=", 1) for item in arguments)
    model, inputs, output = flags.pop("model_path"), flags.pop("inputs"), flags.pop("output_file")
    mode = os.environ.get(MODE, "copy")
    print("executor_runner: last words", flush=True)
    if mode == "log":
        for _ in range(3000):
            print("I 00:00:00.000001 executorch:method.cpp:1] " + "working " * 100)
        print("E 00:00:00.000012 executorch:VGFSetup.cpp:1497] Failed to create VGF header decoder")
        print("E 00:00:00.000013 executorch:VGFBackend.cpp:538] Failed to process VGF blob.")
        print("E 00:00:00.000014 executorch:method.cpp:128] Init failed for backend VgfBackend: 0x1")
        return 1
    if flags or mode == "refuse" or not Path(model).read_bytes():
        return 1
    if mode == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if mode == "hang":
        subprocess.Popen(["sleep", "3600"])
        time.sleep(3600)
    if mode == "talk":
        print("on and on\n" * 1_000_000 + "the end", flush=True)
        return 1
    for number, name in enumerate(inputs.split(",")):
        content = Path(name).read_bytes()
        if mode != "silent" and content:
            _write(mode, Path(f"{output}-{number}.bin"), content)
    return 0


def _write(mode: str, path: Path, content: bytes) -> None:
    if mode == "link":
        path.symlink_to("/dev/zero")
        return
    path.write_bytes(_made(mode, content))
    if mode == "endless":
        os.truncate(path, 1 << 40)


def _made(mode: str, content: bytes) -> bytes:
    if mode == "short":
        return content[:-1]
    if mode == "abs":
        return array.array("f", map(abs, array.array("f", content))).tobytes()
    if mode == "drift":
        runs = Path("runs")
        runs.write_bytes(runs.read_bytes() + b"." if runs.exists() else b"")
        return bytes([content[0] ^ runs.stat().st_size]) + content[1:]
    return content


def install(folder: Path, name: str = "executor_runner") -> Path:
    """Write a program into ``folder`` that is this one; returns its path."""
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{Path(__file__).resolve()}" "$@"\n')
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
