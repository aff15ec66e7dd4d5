"""Looks for inputs that a reader takes badly: ``python -m tests.fuzz.campaign --minutes 10``.

Formats take turns in processes of their own, each with a limit to its memory. What is found is shrunk, kept
in ``corpus/`` and replayed by the tests. Exit status: 0 nothing was found, 1 something was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import hypothesis
from hypothesis.configuration import set_hypothesis_home_dir

from tests.fuzz.formats import CORPUS, FORMATS, Format
from tests.fuzz.mutations import Input
from vgf_conformance.untrusted import Malformed
from vgf_conformance.vocabulary import UserError

#: What one input may take: seconds, and bytes beyond so many times its own.
SECONDS = 5.0
FREE_BYTES = 96 << 20
TIMES_OVER = 64
#: Bytes that a process may take.
PROCESS_BYTES = 6 << 30
#: Seconds of a format's turn, and for shrinking what is found.
TURN = 8.0
SHRINKING = 10.0
_INPUTS = 200
#: Bytes of files that have no content but zeros: one that no reader takes, and a line without an end.
_LENGTHS = {"sparse": 5 << 30, "line": 200 << 20}


class Fault(Exception):
    """A reader that takes an input badly: anything but a refusal or success."""


class Executed:
    """Notices code that is compiled, executed, unpickled or started while something is read."""

    def __init__(self) -> None:
        self._watching = False
        self._seen: list[str] = []
        sys.addaudithook(self._hear)

    @contextmanager
    def noticed(self) -> Iterator[list[str]]:
        """Gives what is noticed within."""
        self._watching, self._seen = True, []
        try:
            yield self._seen
        finally:
            self._watching = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._watching and (event in _STARTS or (event in _RUNS and _is_text(event, arguments))):
            self._watching = False
            # Modules that are imported late execute what is their own.
            if not _importing():
                self._seen.append(event)
            self._watching = True


_STARTS = {"pickle.find_class", "marshal.loads", "os.system", "os.posix_spawn", "subprocess.Popen"}
_RUNS = {"compile", "exec"}


def _is_text(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether it is a text that is compiled, or executed: those of a file have its name."""
    name = arguments[1] if event == "compile" else arguments[0].co_filename
    return str(name).startswith("<")


def _importing() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and "importlib._bootstrap" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


EXECUTED = Executed()


class Slow(BaseException):
    """Raised within a reader that takes too long; readers that catch all errors do not catch this one."""


@dataclass(frozen=True)
class Finding:
    """An input and what a reader did with it."""

    input: Input
    what: str


def place(made: Input, path: Path) -> None:
    """Put ``made`` at ``path``: its content in a file, or what lies there instead of one."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    if made.place == "pipe":
        os.mkfifo(path)
    elif made.place == "folder":
        path.mkdir()
    elif made.place in ("link", "endless"):
        path.symlink_to("/dev/zero" if made.place == "endless" else path.with_name("elsewhere"))
    else:
        path.write_bytes(made.content)
        if made.place in _LENGTHS:
            os.truncate(path, _LENGTHS[made.place])


def judge(form: Format, made: Input, path: Path) -> None:
    """Let ``form`` read ``made`` at ``path``; raises Fault, or Slow."""
    place(made, path)
    with _within(SECONDS), _traced() as peak, EXECUTED.noticed() as executed:
        try:
            form.read(path)
        except (UserError, Malformed) as error:
            if "MemoryError" in str(error):
                raise Fault(f"takes all memory there is: {error}") from error
        except MemoryError as error:
            raise Fault("takes all memory there is") from error
        except Exception as error:
            raise Fault(f"raises {type(error).__name__}: {error}") from error
        finally:
            taken = peak()
    if executed and not form.runs:
        raise Fault(f"executes what it reads ({executed[0]})")
    if taken > FREE_BYTES + TIMES_OVER * len(made.content):
        raise Fault(f"takes {taken >> 20} MiB of memory for {len(made.content)} bytes")


@contextmanager
def _traced() -> Iterator[Callable[[], int]]:
    """Gives what tells the most memory that was taken within, as Python's and numpy's allocators know it."""
    # Only here: it makes all else several times slower.
    tracemalloc.start(1)
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise Slow(f"takes more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def explore(form: Format, path: Path, seconds: float, start: int) -> tuple[int, Finding | None]:
    """Let ``form`` read damaged inputs at ``path`` for so long: how many, and what was found, shrunk."""
    inputs, end = form.damaged(form.seeds()), time.monotonic() + seconds
    count, found = len(form.places), _misplaced(form, path)
    while found is None and time.monotonic() < end:
        tried, found = _round(form, path, inputs, end, start)
        count, start = count + tried, start + 1
    return count, found


def _misplaced(form: Format, path: Path) -> Finding | None:
    """What is found where something else than a file lies at ``path``."""
    for made in (Input(b"", place) for place in form.places):
        try:
            judge(form, made, path)
        except (Fault, Slow) as error:
            return Finding(made, str(error))
    return None


def _round(form: Format, path: Path, inputs: Any, end: float, number: int) -> tuple[int, Finding | None]:
    found: list[Finding] = []
    count, stop = 0, end

    @hypothesis.seed(number)
    @hypothesis.settings(
        max_examples=_INPUTS,
        deadline=None,
        database=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
    )
    @hypothesis.given(inputs)
    def attempt(made: Input) -> None:
        nonlocal count, stop
        if time.monotonic() > stop:
            return
        count += 1
        try:
            judge(form, made, path)
        except (Fault, Slow) as error:
            if not found:
                stop = time.monotonic() + SHRINKING
            found.append(Finding(made, str(error)))
            raise

    try:
        attempt()
    except Exception:
        # What hypothesis makes of it; the last that failed is the smallest that it came to.
        if not found:
            raise
    except Slow:
        # Not shrunk: each attempt takes seconds.
        pass
    return count, found[-1] if found else None


def keep(name: str, made: Input) -> Path:
    """Put ``made`` into the corpus of the format ``name``."""
    digest = hashlib.sha256(made.content + made.place.encode()).hexdigest()[:16]
    kept = CORPUS / name / f"{digest}.{made.place}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(made.content)
    return kept


def kept_input(path: Path) -> Input:
    """What ``keep`` put there."""
    return Input(path.read_bytes(), path.suffix[1:])


def one(name: str, seconds: float, start: int, folder: Path) -> int:
    """One format's turn, in a process of its own; prints what came of it as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (PROCESS_BYTES, PROCESS_BYTES))
    # What hypothesis learns of Unicode and of the sources takes seconds: turns share it.
    set_hypothesis_home_dir(str(folder.parent / "hypothesis"))
    form = FORMATS[name]
    count, found = explore(form, folder / f"input{form.suffix}", seconds, start)
    what = "" if found is None else f"{found.what}; kept as {keep(name, found.input)}"
    print(json.dumps({"count": count, "what": what}))
    return 0 if found is None else 1


def _turn(name: str, seconds: float, start: int, parent: str) -> tuple[int, str]:
    """``one`` in a process: how many inputs, and what was found, also where the process did not survive."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=parent) as folder:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.campaign",
            "--one",
            name,
            folder,
            str(seconds),
            str(start),
        ]
        made = Path(folder) / f"input{FORMATS[name].suffix}"
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
        except subprocess.TimeoutExpired:
            return 0, f"hangs; kept as {_copied(name, made)}"
        if done.returncode == 1 and not done.stdout.strip():
            raise RuntimeError(f"the turn of {name} failed, whatever its reader does:\n{done.stderr}")
        if done.returncode not in (0, 1):
            # Killed, or a crash of what Python calls: the input is what it read last.
            return 0, f"ends the process ({done.returncode}); kept as {_copied(name, made)}"
        answer = json.loads(done.stdout.splitlines()[-1])
        return answer["count"], answer["what"]


def _copied(name: str, made: Path) -> Path:
    kept = CORPUS / name / f"{hashlib.sha256(str(time.time()).encode()).hexdigest()[:16]}.file"
    kept.parent.mkdir(parents=True, exist_ok=True)
    if made.is_file():
        shutil.copy(made, kept)
    return kept


def campaign(names: Sequence[str], seconds: float, workers: int) -> bool:
    """Let the formats ``names`` take turns for so long; whether nothing was found."""
    end, counts = time.monotonic() + seconds, dict.fromkeys(names, 0)
    found: set[str] = set()
    # Another run tries other inputs.
    start = int(time.time())

    def turn(name: str) -> None:
        left = end - time.monotonic()
        if left > 1 and name not in found:
            began = time.monotonic()
            count, what = _turn(name, min(TURN, left), start, parent)
            counts[name] += count
            if what:
                found.add(name)
                print(
                    f"{name}: after {time.monotonic() - begun:.0f} s: {what} ({began - begun:.0f} s)",
                    flush=True,
                )

    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as parent, ThreadPoolExecutor(workers) as pool:
        while time.monotonic() + 1 < end and found != set(names):
            list(pool.map(turn, names))
            start += 1000
    print(", ".join(f"{name}: {count}" for name, count in counts.items()), "inputs")
    print(f"{len(found)} of {len(names)} formats with something to fix" if found else "nothing was found")
    return not found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="nox -s fuzz --", description="Damages what is read from outside.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to look (default: 10)")
    parser.add_argument("--format", action="append", choices=sorted(FORMATS), help="only this (repeatable)")
    parser.add_argument("--workers", type=int, default=2, help="processes at once (default: 2)")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.one:
        name, folder, seconds, start = parsed.one
        return one(name, float(seconds), int(start), Path(folder))
    return 0 if campaign(parsed.format or list(FORMATS), 60 * parsed.minutes, parsed.workers) else 1


if __name__ == "__main__":
    sys.exit(main())
