"""What is asked for and what is there, before any program is executed."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from tests import executor_runner
from vgf_conformance.formats.pte import Executable
from vgf_conformance.targets import capabilities, runtime, vulkan
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.environment import environment
from vgf_conformance.targets.logs import runtime_says
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.runtime import InProcess, RuntimeTarget, backend_fault
from vgf_conformance.targets.runtime_choice import LIBRARY, RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import UserError, Verdict

RUNTIME = ("reference", "runtime")


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIBRARY, raising=False)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "libvgf.so"
    path.write_text("not a library")
    return path


def test_options_and_environment_name_a_library(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert RuntimeChoice.of(None, None, RUNTIME) == RuntimeChoice()
    assert RuntimeChoice.of(str(library), None, RUNTIME) == RuntimeChoice(library=library)
    monkeypatch.setenv(LIBRARY, str(library))
    assert RuntimeChoice.of(None, None, RUNTIME) == RuntimeChoice(library=library)
    assert RuntimeChoice.of(None, None, ("reference",)) == RuntimeChoice()
    runner = executor_runner.install(library.parent)
    assert RuntimeChoice.of(None, str(runner), RUNTIME) == RuntimeChoice(runner=runner)


def test_a_choice_says_how_to_make_it_again(library: Path) -> None:
    made = RuntimeChoice(library=library)
    assert RuntimeChoice.of(made.options[1], None, RUNTIME) == made
    assert made.options[0] == "--runtime-library"
    assert str(made) == "the installed executorch with libvgf.so"
    assert RuntimeChoice(runner=library).options == ["--executor-runner", str(library)]
    assert RuntimeChoice().options == []


@pytest.mark.parametrize(
    ("options", "targets", "message"),
    [
        (("{here}/libvgf.so", "{here}/libvgf.so"), RUNTIME, "exclude each other"),
        (("{here}/libvgf.so", None), ("emulation",), "--runtime-library is for --target runtime"),
        ((None, "{here}/libvgf.so"), ("emulation",), "--executor-runner is for --target runtime"),
        (("{here}/absent.so", None), RUNTIME, "the runtime library {here}/absent.so does not exist"),
        ((None, "{here}/absent"), RUNTIME, "the executor runner {here}/absent does not exist"),
        ((None, "{here}"), RUNTIME, "the executor runner {here} does not exist"),
        ((None, "{here}/libvgf.so"), RUNTIME, "libvgf.so is not executable: chmod +x it"),
    ],
)
def test_bad_choices(
    options: tuple[str | None, str | None], targets: tuple[str, ...], message: str, library: Path
) -> None:
    here = str(library.parent)
    named = [option and option.format(here=here) for option in options]
    with pytest.raises(UserError) as caught:
        RuntimeChoice.of(named[0], named[1], targets)
    assert message.format(here=here) in str(caught.value)


def fault(library: Path | None, backend: str = "VgfBackend") -> str:
    return backend_fault(library, vulkan.choose_driver("lavapipe"), tuple(vulkan.LAYERS), backend)


def test_the_wheel_has_no_vgf_backend(tmp_path: Path) -> None:
    """And says so to whoever opens the target, before a case runs."""
    with pytest.raises(UserError) as caught:
        open_targets(RUNTIME, DriverChoice("lavapipe"), tmp_path)
    message = str(caught.value)
    assert message.startswith(
        "the runtime of the installed executorch does not register VgfBackend (there are "
    )
    assert "XnnpackBackend" in message
    assert "--runtime-library FILE" in message
    assert "--executor-runner FILE" in message
    assert fault(None) == message


def test_a_library_that_is_none(library: Path) -> None:
    assert fault(library).startswith(f"the runtime library {library} cannot be loaded: ")
    assert "invalid ELF header" in fault(library) or "file too short" in fault(library)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -SEGV $$", "ended the process that loaded it by SIGSEGV"),
        ("echo 'out of luck' >&2; exit 3", "could not be asked: out of luck"),
        ("sleep 60", "did not load within 0.5 s"),
        ("kill -40 $$", "ended the process that loaded it by signal 40"),
        (
            "printf '[%.0s' $(seq 9999); echo; echo '{\"registered\": 5}'; exit 4",
            "could not be asked: exit status 4",
        ),
        (
            """echo '{"fault": "", "registered": ["B", "A"], "available": false}'; echo noise""",
            "does not register VgfBackend (there are B, A): build it with the VGF backend",
        ),
        (
            """echo '{"fault": "", "registered": ["VgfBackend"], "available": false}'""",
            "registers VgfBackend, which says that it is not available on ",
        ),
    ],
)
def test_what_becomes_of_the_process_that_loads_it(
    script: str, words: str, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = library.parent / "python"
    interpreter.write_text(f"#!/bin/sh\n{script}\n")
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    if "sleep" in script:
        monkeypatch.setattr(runtime, "_SECONDS", 0.5)
    assert fault(library).startswith(f"the runtime library {library} {words}")


def test_a_library_that_says_much(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than is read: the answer is at the end."""
    script = """
head -c 5000000 /dev/zero
echo
echo '{"fault": "", "registered": ["VgfBackend"], "available": true}'
"""
    interpreter = library.parent / "python"
    interpreter.write_text(f"#!/bin/sh\n{script}")
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    assert fault(library) == ""


def executes(runner: str) -> InProcess:
    """A target of the runtime whose worker runs ``runner`` in its place."""
    made = InProcess(None, {}, 60)
    made.worker._runner = f"tests.fakes:{runner}"
    return made


PROGRAM = Executable(b"program", "forward", (), ())


def test_a_crash_says_that_it_is_the_runtimes() -> None:
    with pytest.raises(TargetFailure) as caught:
        executes("RuntimeThatCrashes").execute(PROGRAM, [])
    assert caught.value.verdict is Verdict.CRASH
    assert caught.value.message == "the worker of the ExecuTorch runtime was ended by SIGSEGV"


def test_an_error_comes_with_the_logs_own_lines() -> None:
    """Those of this request, in the form of the wheel's log."""
    target = executes("RuntimeThatRefuses")
    try:
        for number in (1, 2):
            with pytest.raises(TargetFailure) as caught:
                target.execute(dataclasses.replace(PROGRAM, method=f"forward{number}"), [])
            assert caught.value.message == (
                "the ExecuTorch runtime: error: 0x:12 (its log ends: "
                f"[VGFSetup.cpp:1497] no decoder for forward{number}; [method.cpp:128] Init failed: 0x12)"
            )
    finally:
        target.close()


def test_a_log_is_quoted_within_bounds() -> None:
    lines = [f"[{'f' * 50}.cpp:{number}] {'word ' * 1000}" for number in range(50)]
    assert len(runtime_says("\n".join(lines))) < 700
    assert runtime_says("[" * 100_000) == runtime_says("no line of its own") == ""


def test_a_library_that_registers_it_is_taken(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"fault": "", "registered": ["VgfBackend"], "available": True}
    monkeypatch.setattr(runtime, "_asked", lambda *arguments: answer)
    assert fault(library) == ""


def test_the_target_has_the_driver_and_the_layers_of_its_peer(tmp_path: Path) -> None:
    choice = RuntimeChoice(runner=executor_runner.install(tmp_path))
    opened = open_targets(("emulation", "runtime"), DriverChoice("lavapipe"), tmp_path, runtime=choice)
    target = opened["runtime"]
    assert isinstance(target, RuntimeTarget)
    assert target.peer is opened["emulation"]
    assert target.driver == opened["emulation"].driver
    described = environment(("reference", "runtime"), DriverChoice("lavapipe"), choice)
    assert described["runtime"] == "the stand-alone executor_runner"
    assert described["layers"] == {"runtime": "emulation layers: graph and tensor"}
    assert described["driver"]["manifest"] == target.driver


def test_layers_may_be_chosen_as_for_a_driver_of_its_own(tmp_path: Path) -> None:
    """Without layers its peer is the target vulkan."""
    choice = RuntimeChoice(runner=executor_runner.install(tmp_path))
    target = open_targets(["runtime"], DriverChoice("lavapipe", "none"), tmp_path, runtime=choice)["runtime"]
    assert isinstance(target, RuntimeTarget)
    assert target.peer.name == "vulkan"
    assert target.driver == "lvp_icd, no emulation layers"
    assert capabilities.platforms(["runtime"], DriverChoice("lavapipe", "none"))["runtime"].layers == ()
