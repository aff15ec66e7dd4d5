"""What is asked for and what is there, before any program is executed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import executor_runner
from vgf_conformance.targets import capabilities, runtime, vulkan
from vgf_conformance.targets.environment import environment
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.runtime import RuntimeTarget, backend_fault
from vgf_conformance.targets.runtime_choice import LIBRARY, RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import UserError

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


def test_the_wheel_has_no_vgf_backend() -> None:
    """And says so to whoever opens the target, before a case runs."""
    with pytest.raises(UserError) as caught:
        open_targets(RUNTIME, DriverChoice("lavapipe"), Path("unused"))
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
