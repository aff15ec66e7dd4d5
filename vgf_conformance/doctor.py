"""What this machine has, what is missing, and what to do about it.

Nothing is believed that can be tried: the converter is launched, the reference
model and every Vulkan driver run a small graph, each in a process of its own.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from vgf_conformance.formats.convert import find_converter
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.launch import import_command, python_environment, signal_name
from vgf_conformance.targets import vulkan
from vgf_conformance.targets.asking import NO_DEVICE, ask, why_no_device
from vgf_conformance.targets.base import Target, TargetFailure
from vgf_conformance.targets.process import emulation_target, reference_target
from vgf_conformance.targets.runtime import backend_fault
from vgf_conformance.targets.runtime_choice import LIBRARY, RuntimeChoice
from vgf_conformance.terminal import one_line
from vgf_conformance.vocabulary import UserError

#: What runs artifacts, and the version that the harness is made for.
BASE_PINS = {
    "ai-ml-sdk-scenario-runner": "0.11.0",
    "ai-ml-sdk-vgf-library": "0.11.0",
    "ai-ml-emulation-layer-for-vulkan": "0.11.0",
    "vulkan": "1.3.275.1",
    "ml_dtypes": "0.5.1",
}

#: What makes artifacts and expected outputs. The wheel of executorch 1.5.1 does not say that it is built for
#: torch 2.13.0.
LOWERING_PINS = {
    "torch": "2.13.0",
    "executorch": "1.5.1",
    "torchao": "0.18",
    "ai-ml-sdk-model-converter": "0.11.0",
    "tosa-tools": "2026.5.0",
}

PINS = {**BASE_PINS, **LOWERING_PINS}

#: The lowest Vulkan version on which the emulation layers run.
VULKAN = (1, 3)
EXTENSIONS = ("VK_ARM_tensors", "VK_ARM_data_graph")

_REFERENCE = ("tosa-tools", "reference model")
_EMULATION = (
    "ai-ml-sdk-scenario-runner",
    "ai-ml-sdk-vgf-library",
    "ml_dtypes",
    "vulkan",
    "emulation layers",
    "Vulkan loader",
    "Vulkan drivers",
)
_LOWERING = (*LOWERING_PINS, "model converter", "lowering stack")

#: What each ability rests on, causes before effects, and which of these decide: a target that
#: ran a graph is usable whatever the versions, but lowering was only imported.
_ABILITIES = {
    "reference": (_REFERENCE, ("reference model",)),
    "emulation": (_EMULATION, ("Vulkan drivers",)),
    "lowering": (_LOWERING, _LOWERING),
    "runtime": (("executorch", "ExecuTorch runtime"), ("ExecuTorch runtime",)),
}

_SECONDS = 60.0

#: Packages that nobody has who does not lower: others may be here for another reason.
_TELLTALE = ("executorch", "torchao", "ai-ml-sdk-model-converter")

_ABSENT = "not installed"
_FOR_MODELS = "for models of your own: python -m pip install 'vgf-conformance[lowering]', see README"

_PIP = "python -m pip install "
_INSTALL_VULKAN = "apt-get install -y libvulkan1 mesa-vulkan-drivers"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and what to do where that is not ``ok``.

    What is ``optional`` nobody has to fix; what is found says how to.
    """

    subject: str
    ok: bool
    found: str
    advice: str = ""
    optional: bool = False


@dataclass(frozen=True)
class DriverCheck:
    """One Vulkan driver: its devices, as the probe describes them, and whether emulation ran on it.

    ``present`` is False where the driver's hardware is absent, which is no fault.
    ``reason`` says why it is not usable, or what it lacks where it is.
    """

    name: str
    manifest: str
    present: bool
    usable: bool
    reason: str = ""
    devices: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """All that was found; ``abilities`` are the targets and lowering, each usable or not."""

    python: Check
    packages: tuple[Check, ...]
    programs: tuple[Check, ...]
    drivers: tuple[DriverCheck, ...]
    abilities: tuple[Check, ...]

    @property
    def packs(self) -> Check | None:
        """Whether packs can be run here, which is all that a driver's vendor needs; or why not."""
        emulation = next((ability for ability in self.abilities if ability.subject == "emulation"), None)
        if emulation is None:
            return None
        names = [driver.name for driver in self.drivers if driver.usable]
        if emulation.ok:
            return Check("packs", True, f"Packs can be run here, on {', '.join(names)}")
        why = emulation.found.removeprefix("not usable: ")
        return Check("packs", False, f"Packs cannot be run here: {why}", emulation.advice)

    @property
    def healthy(self) -> bool:
        """Whether every target that is installed works; the reference model is installed with lowering."""
        left_out = {"lowering"}
        if any(check.subject == "tosa-tools" and check.found.startswith(_ABSENT) for check in self.packages):
            left_out.add("reference")
        return all(
            ability.ok or ability.optional for ability in self.abilities if ability.subject not in left_out
        )

    @property
    def exit_code(self) -> int:
        """What a command that shows this diagnosis ends with."""
        return 0 if self.healthy else 1


def examine() -> Diagnosis:
    """Look at this machine; takes some seconds, and raises nothing for what it finds."""
    with (
        tempfile.TemporaryDirectory(prefix="vgf-conformance-doctor-") as folder,
        ThreadPoolExecutor() as pool,
    ):
        lowers = any(map(_installed, _TELLTALE))
        refers = lowers or _installed("tosa-tools")
        # Slowest first: importing the lowering stack takes longer than all else together.
        importing = pool.submit(_check_import if lowers else partial(_not_installed, "lowering stack"))
        found, refusal = _find_drivers()
        folders = [Path(folder, str(number)) for number in range(len(found))]
        examining = pool.map(_check_driver, found, folders)
        converter = pool.submit(_check_converter if lowers else partial(_not_installed, "model converter"))
        reference = pool.submit(_check_reference if refers else partial(_not_installed, "reference model"))
        loader = pool.submit(_check_loader)
        packages = tuple(_check_package(name, name in BASE_PINS or lowers) for name in PINS)
        layers = _check_layers(Path(folder, "layers"))
        drivers = tuple(examining)
        tried = (reference.result(), layers, loader.result(), converter.result(), importing.result())
    # By itself: it imports as much as lowering does, and two such imports at once take each other's time.
    programs = (*tried, _check_runtime())
    checks = (*packages, *programs, _check_drivers(drivers, refusal))
    return Diagnosis(_check_python(), packages, programs, drivers, _abilities(checks))


def render(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as text for a terminal."""
    sections = {
        "Python": [_line(diagnosis.python)],
        "Packages": map(_line, diagnosis.packages),
        "Programs": map(_line, diagnosis.programs),
        "Vulkan drivers": map(_driver_line, diagnosis.drivers)
        if diagnosis.drivers
        else [("✗", "none found")],
        "What can be used here": map(_line, diagnosis.abilities),
    }
    text = "\n\n".join(f"{title}\n{_table(lines)}" for title, lines in sections.items())
    if diagnosis.packs:
        text += f"\n\n{one_line(diagnosis.packs.found)}"
    cures = "\n".join(f"  {cure}" for cure in _cures(diagnosis))
    return f"{text}\n\nTo fix\n{cures}" if cures else text


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as plain data that JSON can hold, with ``healthy`` and ``packs``."""
    packs = {"packs": asdict(diagnosis.packs)} if diagnosis.packs else {}
    return {"healthy": diagnosis.healthy, **packs, **asdict(diagnosis)}


def _check_python() -> Check:
    return Check(
        "Python",
        (3, 10) <= sys.version_info[:2] <= (3, 13),
        f"{platform.python_version()} ({platform.machine()}, glibc {_glibc()})",
        "the packages have wheels for Python 3.10 to 3.13: make the environment with one of these",
    )


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _not_installed(subject: str) -> Check:
    """What nobody has asked for."""
    return Check(subject, False, _ABSENT, optional=True)


def _check_package(name: str, wanted: bool) -> Check:
    pin = PINS[name]
    if not wanted and not _installed(name):
        return _not_installed(name)
    advice = _pip(_requirement(name))
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, f"{_ABSENT} ({pin} is wanted)", advice)
    # A local version (2.13.0+cpu) is the same release, built for something.
    release = found.partition("+")[0]
    if release == pin or release.startswith(f"{pin}."):
        return Check(name, True, found)
    return Check(name, False, f"{found} ({pin} is wanted)", advice)


def _requirement(name: str) -> str:
    pin = PINS[name]
    return f"'{name}=={pin}.*'" if pin.count(".") == 1 else f"{name}=={pin}"


def _check_converter() -> Check:
    """Launch the model converter that executorch would launch."""
    subject = "model converter"
    advice = _pip(_requirement("ai-ml-sdk-model-converter"))
    if os.environ.get("MODEL_CONVERTER_PATH"):
        advice = "unset MODEL_CONVERTER_PATH, or name a model converter that works here"
    program = find_converter()
    if program is None:
        return Check(subject, False, "model-converter is not on PATH", advice)
    answer = _launch([program, "--version"])
    if isinstance(answer, str):
        return Check(subject, False, f"{program}: {answer}", advice)
    version = re.search(r"\d+\.\d+\.\d+", answer.stdout)
    return Check(subject, True, f"{version[0] if version else 'starts'} ({program})")


def _check_import() -> Check:
    """Import what lowers: a package of the right version may still be broken."""
    answer = _launch(import_command("executorch.backends.arm.vgf"))
    if isinstance(answer, str):
        return Check("lowering stack", False, answer, _pip(*map(_requirement, LOWERING_PINS)))
    return Check("lowering stack", True, "torch and executorch's VGF backend import")


def _check_runtime() -> Check:
    """Ask the installed runtime for the VGF backend, which only a library of the user's own brings."""
    subject = "ExecuTorch runtime"
    named = os.environ.get(LIBRARY, "")
    if not named and importlib.util.find_spec("executorch") is None:
        return Check(subject, False, "executorch is not installed", optional=True)
    try:
        choice = RuntimeChoice.of(named, None, ("runtime",))
        fault = backend_fault(choice.library, vulkan.choose_driver(None), tuple(vulkan.LAYERS))
    except UserError as error:
        fault = str(error)
    if not fault:
        return Check(subject, True, f"has the VGF backend ({named})")
    advice = f"unset {LIBRARY}, or name a library that registers the VGF backend" if named else ""
    return Check(subject, False, fault, advice, optional=not named)


def _check_reference() -> Check:
    fault = _fault(reference_target(_SECONDS))
    if fault:
        return Check("reference model", False, fault, _pip(_requirement("tosa-tools")))
    return Check("reference model", True, "runs a graph")


def _check_layers(folder: Path) -> Check:
    anything = vulkan.Driver("", Path(os.devnull))
    try:
        vulkan.emulation_environment(anything, folder)
    except UserError as error:
        found, _, advice = str(error).partition(": ")
        return Check("emulation layers", False, found, advice)
    return Check("emulation layers", True, "installed")


def _check_loader() -> Check:
    """Ask the loader alone, by a manifest that gives it no driver."""
    answer = ask(vulkan.driver_environment(vulkan.Driver("", Path(os.devnull))), _SECONDS)
    if isinstance(answer, str):
        return Check("Vulkan loader", False, answer, _pip(_requirement("vulkan")))
    if answer["loader"] is None:
        return Check("Vulkan loader", False, answer["error"], _INSTALL_VULKAN)
    return Check("Vulkan loader", True, answer["loader"])


def _find_drivers() -> tuple[list[vulkan.Driver], str]:
    """The drivers, or why they are not looked at."""
    try:
        return vulkan.find_drivers(), ""
    except UserError as error:
        return [], str(error)


def _check_driver(driver: vulkan.Driver, folder: Path) -> DriverCheck:
    """Describe one driver and run a graph on it through the emulation layers."""
    fault = vulkan.manifest_fault(driver.manifest)
    if fault:
        return _unusable(driver, f"its manifest {fault}")
    try:
        variables = vulkan.emulation_environment(driver, folder)
    except UserError as error:
        return _unusable(driver, str(error).partition(": ")[0])
    answer = ask(variables, _SECONDS)
    if isinstance(answer, str):
        return _unusable(driver, answer)
    if answer["error"]:
        return _without_device(driver, answer, variables)
    devices = answer["devices"]
    # What a driver lacks explains a crash, but only a run shows whether it matters.
    lacking = [name for name, has in devices[0]["features"].items() if not has]
    lacks = f"lacks {', '.join(lacking)}" if lacking else ""
    fault = _below(devices[0]) or _fault(emulation_target(driver, folder, _SECONDS))
    reason = "; ".join(filter(None, (fault, lacks)))
    return DriverCheck(driver.name, str(driver.manifest), True, fault is None, reason, tuple(devices))


def _without_device(
    driver: vulkan.Driver, answer: Mapping[str, Any], variables: Mapping[str, str]
) -> DriverCheck:
    """A driver without a device: a fault where its library cannot be loaded, else its hardware is absent."""
    error = answer["error"]
    why = why_no_device(driver, variables) if answer["loader"] else ""
    if error not in NO_DEVICE or answer["unloadable"]:
        return _unusable(driver, why or error)
    reason = f"no device; {why}" if why else "no device"
    return DriverCheck(driver.name, str(driver.manifest), present=False, usable=False, reason=reason)


def _check_drivers(drivers: Sequence[DriverCheck], refusal: str) -> Check:
    usable = any(driver.usable for driver in drivers)
    none = "emulation runs on none of them" if drivers else "there are none"
    found = refusal or ("emulation runs" if usable else none)
    overrides = [name for name in vulkan.OVERRIDES if os.environ.get(name)]
    advice = f"unset {' '.join(overrides)} (it hides the other drivers)" if overrides else _INSTALL_VULKAN
    return Check("Vulkan drivers", usable, found, advice)


def _unusable(driver: vulkan.Driver, reason: str) -> DriverCheck:
    return DriverCheck(driver.name, str(driver.manifest), present=True, usable=False, reason=reason)


def _below(device: Mapping[str, Any]) -> str | None:
    """Return what ``device`` falls short of, None where it is enough for the emulation layers."""
    if tuple(map(int, device["api"].split(".")))[:2] < VULKAN:
        return f"Vulkan {device['api']} is older than {'.'.join(map(str, VULKAN))}"
    missing = [name for name in EXTENSIONS if name not in device["extensions"]]
    return f"the emulation layers do not add {', '.join(missing)}" if missing else None


def _fault(target: Target) -> str | None:
    """Run a graph of one absolute value on ``target``; return what went wrong, None for nothing."""
    here = Path(vulkan.__file__).parent
    port = Port((4,), "float32", (0,))
    graph = (here / "abs.tosa").read_bytes(), (here / "abs.vgf").read_bytes()
    values = np.array([-1.5, 2.0, 0.0, -3.0], np.float32)
    try:
        target.load([Delegate("abs", *graph, (port,), (port,), nodes=1)])
        (output,) = target.run(0, [values]).arrays
    except TargetFailure as failure:
        # A worker that could not start has said why; after a signal the message tells more.
        words = failure.log.splitlines()[-1:] if "exit status" in failure.message else []
        return ": ".join([failure.message, *words])
    finally:
        target.close()
    return None if np.array_equal(output, np.abs(values)) else f"wrong numbers: |{values}| gave {output}"


def _launch(command: list[str], seconds: float = _SECONDS) -> subprocess.CompletedProcess[str] | str:
    """Run ``command``; return the finished process, or in words why it did not succeed."""
    try:
        process = subprocess.run(
            command,
            env=python_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except OSError as error:
        return f"does not start ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"
    return process if process.returncode == 0 else _explained(process)


def _explained(process: subprocess.CompletedProcess[str]) -> str:
    """Return in one line why a process failed."""
    glibc = re.search(r"GLIBC_([\d.]+)' not found", process.stderr)
    if glibc:
        return f"needs glibc {glibc[1]}, this machine has {_glibc()}"
    if process.returncode < 0:
        return f"crashed with {signal_name(process.returncode)}"
    words = process.stderr.strip().splitlines()
    return words[-1] if words else f"ended with exit status {process.returncode}"


def _glibc() -> str:
    return platform.libc_ver()[1] or "unknown"


def _abilities(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return what can be used; where something cannot, its first need that failed says why."""
    named = {check.subject: check for check in checks}
    return tuple(
        _ability(subject, [named[name] for name in needs], tried=[named[name] for name in tried])
        for subject, (needs, tried) in _ABILITIES.items()
    )


def _ability(subject: str, needs: Iterable[Check], tried: Sequence[Check]) -> Check:
    if all(check.ok for check in tried):
        return Check(subject, True, "usable")
    cause = next(need for need in needs if not need.ok)
    if not cause.optional:
        found = f"not usable: {cause.subject}: {cause.found}"
    elif cause.found == _ABSENT:
        found = f"{_ABSENT} ({_FOR_MODELS})" if subject == "lowering" else _ABSENT
    else:
        found = "not usable, as it comes"
    optional = all(check.optional for check in tried if not check.ok)
    return Check(subject, False, found, cause.advice, optional)


def _line(check: Check) -> tuple[str, str, str]:
    return ("✓" if check.ok else "-" if check.optional else "✗", check.subject, check.found)


def _driver_line(driver: DriverCheck) -> tuple[str, ...]:
    if not driver.devices:
        return ("✗" if driver.present else "-", driver.name, driver.reason)
    device = driver.devices[0]
    more = f" and {len(driver.devices) - 1} more" if len(driver.devices) > 1 else ""
    version = device["driver_info"] or f"{device['driver']} {device['driver_version']}"
    outcome = "runs a graph" if driver.usable else "not usable"
    described = f"{device['name']}{more}, {version}, Vulkan {device['api']}: {outcome}"
    return ("✓" if driver.usable else "✗", driver.name, f"{described}; {driver.reason}".removesuffix("; "))


def _table(lines: Iterable[tuple[str, ...]]) -> str:
    # A name with a line break must not pass for another line.
    cells = [[*map(one_line, line)] for line in lines]
    table = tabulate(cells, tablefmt="plain", disable_numparse=True)
    return "\n".join(f"  {line.rstrip()}" for line in table.splitlines())


def _cures(diagnosis: Diagnosis) -> list[str]:
    """Return what to do about all that is not well, with one command for all packages."""
    checks = (diagnosis.python, *diagnosis.packages, *diagnosis.programs, *diagnosis.abilities)
    cures = dict.fromkeys(check.advice for check in checks if not check.ok and check.advice)
    wanted = [word for cure in cures if cure.startswith(_PIP) for word in cure.removeprefix(_PIP).split()]
    commands = [_pip(*dict.fromkeys(wanted))] if wanted else []
    return commands + [cure for cure in cures if not cure.startswith(_PIP)]


def _pip(*requirements: str) -> str:
    return _PIP + " ".join(requirements)
