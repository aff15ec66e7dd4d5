"""The doctor on this machine as it is, and on the same machine broken in one way at a time."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest

from vgf_conformance import doctor
from vgf_conformance.doctor import Check, Diagnosis, DriverCheck, examine, render, to_json
from vgf_conformance.targets import vulkan
from vgf_conformance.targets.process import ProcessTarget, reference_target
from vgf_conformance.targets.runtime_choice import LIBRARY

ROOT = Path(__file__).parent.parent
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lavapipe alone, and an empty stand-in for executorch: its import is most of the doctor's time."""
    monkeypatch.setenv("VK_DRIVER_FILES", str(vulkan.choose_driver("lavapipe").manifest))
    for module in ("backends/arm/vgf", "runtime"):
        package = tmp_path_factory.getbasetemp() / "stand-in" / "executorch" / module
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
    stand_in = tmp_path_factory.getbasetemp() / "stand-in"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(stand_in), *filter(None, sys.path)]))
    # Lowering in this process names its converter there.
    monkeypatch.delenv("MODEL_CONVERTER_PATH", raising=False)


def named(checks: tuple[Check, ...], subject: str) -> Check:
    """Return the check of ``subject``."""
    return next(check for check in checks if check.subject == subject)


def write_converter(folder: Path, script: str) -> None:
    """Write a program called model-converter."""
    program = folder / "model-converter"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_this_machine_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything real: converter, reference model, layers, lavapipe, lowering stack, runtime.

    The wheel's runtime lacks the VGF backend, which is told and is no fault.
    """
    monkeypatch.delenv(LIBRARY, raising=False)
    diagnosis = examine()
    assert diagnosis.healthy, render(diagnosis)
    assert diagnosis.exit_code == 0
    *usable, runtime = diagnosis.abilities
    assert [ability.subject for ability in usable] == ["reference", "emulation", "lowering"]
    assert all(ability.ok for ability in usable), render(diagnosis)
    assert (runtime.subject, runtime.ok, runtime.optional) == ("runtime", False, True)
    found = named(diagnosis.programs, "ExecuTorch runtime").found
    assert "does not register VgfBackend" in found
    assert "--runtime-library FILE" in found
    assert f"  -  ExecuTorch runtime  {found}\n" in render(diagnosis)
    assert all(not driver.present or driver.usable for driver in diagnosis.drivers if "lvp" in driver.name)
    assert "To fix" not in render(diagnosis)


def test_pins_are_those_of_the_package() -> None:
    """The doctor wants what pyproject.toml installs."""
    settings = (ROOT / "pyproject.toml").read_text()
    for name, pin in doctor.PINS.items():
        assert re.search(rf'"{name}(==|>=){re.escape(pin)}[",]', settings), name


def test_a_runtime_library_that_is_named_has_to_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libvgf.so"
    monkeypatch.setenv(LIBRARY, str(library))
    absent = doctor._check_runtime()
    assert (absent.ok, absent.optional) == (False, False)
    assert absent.found.startswith(f"the runtime library {library} does not exist")
    assert absent.advice.startswith(f"unset {LIBRARY}, or name a library")
    library.write_text("not a library")
    assert "file too short" in doctor._check_runtime().found


def test_without_executorch_there_is_no_runtime_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIBRARY, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check = doctor._check_runtime()
    assert (check.ok, check.optional, check.found) == (False, True, "executorch is not installed")


@pytest.mark.usefixtures("quick")
def test_a_converter_for_a_newer_glibc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which glibc is needed and which is here; targets stay usable."""
    write_converter(tmp_path, 'echo "/lib/libc.so.6: version \\`GLIBC_2.38\' not found" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.36"))
    diagnosis = examine()
    converter = named(diagnosis.programs, "model converter")
    assert not converter.ok
    assert converter.found.endswith("needs glibc 2.38, this machine has 2.36")
    assert diagnosis.healthy
    assert not named(diagnosis.abilities, "lowering").ok
    assert converter.advice == "python -m pip install ai-ml-sdk-model-converter==0.11.0"


@pytest.mark.usefixtures("quick")
def test_a_converter_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MODEL_CONVERTER_PATH goes first, as it does in executorch."""
    write_converter(tmp_path, "echo 9.8.7")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(tmp_path / "model-converter"))
    converter = named(examine().programs, "model converter")
    assert converter.found == f"9.8.7 ({tmp_path / 'model-converter'})"


@pytest.mark.usefixtures("quick")
def test_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not healthy, and the cure takes back the override that hides the drivers."""
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    diagnosis = examine()
    assert diagnosis.drivers == ()
    assert (diagnosis.healthy, diagnosis.exit_code) == (False, 1)
    text = render(diagnosis)
    assert "none found" in text
    assert "unset VK_DRIVER_FILES" in text


@pytest.mark.usefixtures("quick")
def test_drivers_that_are_not_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken manifest is a fault; a library that is no driver finds no device and is none."""
    broken = tmp_path / "broken_icd.json"
    broken.write_text("{}")
    other = tmp_path / "other_icd.json"
    other.write_text(
        json.dumps(
            {"file_format_version": "1.0.0", "ICD": {"library_path": "libm.so.6", "api_version": "1.3.0"}}
        )
    )
    monkeypatch.setenv("VK_DRIVER_FILES", f"{broken}{os.pathsep}{other}")
    faulty, absent = examine().drivers
    assert (faulty.present, faulty.usable) == (True, False)
    assert "is no ICD manifest" in faulty.reason
    assert (absent.present, absent.usable, absent.reason) == (False, False, "no device")


@pytest.mark.skipif(not SWIFTSHADER.exists(), reason="SwiftShader (package chromium) is not installed")
@pytest.mark.usefixtures("quick")
def test_a_driver_that_kills_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """SwiftShader dies of SIGILL on a graph pipeline; the doctor lives and says so."""
    monkeypatch.setenv("VK_DRIVER_FILES", str(SWIFTSHADER))
    (driver,) = examine().drivers
    assert not driver.usable
    assert "SIGILL" in driver.reason
    assert "lacks shaderInt16" in driver.reason


@pytest.mark.usefixtures("quick")
def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are fixed by one command."""

    def missing(name: str) -> str:
        if name in ("torch", "torchao"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.1" if name == "executorch" else doctor.PINS[name]

    monkeypatch.setattr(importlib.metadata, "version", missing)
    diagnosis = examine()
    assert named(diagnosis.packages, "executorch").found == "0.1 (1.5.1 is wanted)"
    lowering = named(diagnosis.abilities, "lowering")
    assert "torch: not installed" in lowering.found
    # The runtime lacks the backend whatever its version: nobody has to fix that.
    assert named(diagnosis.abilities, "runtime").optional
    assert diagnosis.healthy
    assert "\n  python -m pip install torch==2.13.0 executorch==1.5.1 'torchao==0.18.*'" in render(diagnosis)


@pytest.mark.usefixtures("quick")
def test_missing_emulation_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference model stays usable, and drivers are not blamed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    diagnosis = examine()
    assert named(diagnosis.abilities, "reference").ok
    emulation = named(diagnosis.abilities, "emulation")
    assert "emulation layers: the ML emulation layers are not installed" in emulation.found
    assert emulation.advice == "python -m pip install ai-ml-emulation-layer-for-vulkan==0.11.0"


def test_wrong_numbers_are_a_fault() -> None:
    """A target that gives the negative of what it should is not usable."""
    fault = doctor._fault(ProcessTarget("reference", "tests.fakes:Negates", time_limit=60))
    assert fault == "wrong numbers: |[-1.5  2.   0.  -3. ]| gave [-1.5 -2.  -0.  -3. ]"
    assert doctor._fault(reference_target(60)) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed with SIGSEGV"),
        ("raise OSError('no such thing')", "OSError: no such thing"),
        ("raise SystemExit(7)", "ended with exit status 7"),
    ],
)
def test_a_process_that_fails_is_put_into_words(code: str, words: str) -> None:
    """Whatever becomes of it, one line says so."""
    assert doctor._launch([sys.executable, "-c", code]) == words


def test_a_process_that_hangs_is_ended() -> None:
    """The time limit holds."""
    assert doctor._launch(["sleep", "60"], seconds=0.5) == "no answer within 0.5 s"


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    """The system's own words."""
    assert doctor._launch([str(tmp_path / "absent")]) == "does not start (No such file or directory)"


DEVICE = {
    "name": "Mali-G1",
    "api": "1.4.0",
    "driver": "mali",
    "driver_info": "",
    "driver_version": "50.0.0",
    "extensions": {"VK_ARM_tensors": 2},
    "features": {},
}


@pytest.mark.parametrize(
    ("device", "fault"),
    [
        ({**DEVICE, "api": "1.2.9"}, "Vulkan 1.2.9 is older than 1.3"),
        (DEVICE, "the emulation layers do not add VK_ARM_data_graph"),
        ({**DEVICE, "extensions": dict.fromkeys(doctor.EXTENSIONS, 1)}, None),
    ],
)
def test_what_a_device_falls_short_of(device: dict[str, object], fault: str | None) -> None:
    """Looked at before a graph is run."""
    assert doctor._below(device) == fault


def test_text_and_json_of_a_diagnosis() -> None:
    """Marks are aligned, an absent device is no fault, JSON holds everything."""
    diagnosis = Diagnosis(
        Check("Python", True, "3.12.0"),
        (Check("torch", False, "not installed", "python -m pip install torch==2.13.0"),),
        (),
        (
            DriverCheck("mali", "/mali.json", True, True, devices=(DEVICE, DEVICE)),
            DriverCheck("radeon", "/radeon.json", False, False, "no device"),
        ),
        (Check("reference", True, "usable"), Check("lowering", False, "not usable")),
    )
    text = render(diagnosis)
    assert "  ✓  mali    Mali-G1 and 1 more, mali 50.0.0, Vulkan 1.4.0: runs a graph\n" in text
    assert "  -  radeon  no device\n" in text
    assert text.endswith("To fix\n  python -m pip install torch==2.13.0")
    content = json.loads(json.dumps(to_json(diagnosis)))
    assert content["healthy"] is True
    assert content["drivers"][0]["devices"][0]["name"] == "Mali-G1"
