"""Asks Vulkan drivers which devices they have, and where one has none, what its library lacks.

In processes of their own, by :mod:`vgf_conformance.targets.probe`: a driver may crash.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vgf_conformance.launch import python_command, python_environment, signal_name
from vgf_conformance.targets.programs import run
from vgf_conformance.targets.vulkan import Driver, library_of
from vgf_conformance.terminal import one_line
from vgf_conformance.untrusted import parse_json
from vgf_conformance.vocabulary import UserError

#: Seconds in which a driver must have said what it is.
SECONDS = 60.0

#: What Vulkan answers where a driver is installed but its hardware is absent.
NO_DEVICE = ("no device", "VkErrorIncompatibleDriver", "VkErrorInitializationFailed")

#: Has the loader name manifests that it skips, and the dynamic linker the libraries that it looks for.
_TALKATIVE = {"VK_LOADER_DEBUG": "error,warn", "LD_DEBUG": "libs"}

_LINKER = re.compile(r"\s*\d+:\t(?P<said>.*)")
_SOUGHT = re.compile(r"find library=(?P<name>\S+)")
_TRIED = re.compile(r"\s*trying file=(?P<path>.+)")
_INITIALISED = re.compile(r"calling init: (?P<path>.+)")
_MISSING = re.compile(r"(?P<name>[^\s/:]+): cannot open shared object file")

#: How a line of the loader's begins, before its version 1.3.243 and since.
_LOADER = re.compile(
    r"(?:\[Vulkan Loader\] )?(?:ERROR|WARNING|INFO|DEBUG|DRIVER|LAYER|PERF)[A-Z |]*:\s+(?:\w+: )?"
)

#: How many libraries are named that were looked for in vain.
_MOST = 5


def ask(variables: Mapping[str, str], seconds: float = SECONDS) -> dict[str, Any] | str:
    """What the probe answers under ``variables``; in words what became of it where it does not."""
    answer, _ = _asked(python_environment(variables), seconds)
    return answer


def why_no_device(driver: Driver, variables: Mapping[str, str]) -> str:
    """What keeps ``driver`` from a device, with what to do; empty where its hardware is just not here.

    ``variables`` are those under which it was asked in vain.
    """
    environment = python_environment({**variables, **_TALKATIVE})
    environment.pop("LD_DEBUG_OUTPUT", None)
    answer, said = _asked(environment, SECONDS)
    if isinstance(answer, str):
        return answer
    try:
        library = Path(library_of(driver.manifest)).name
    except UserError as error:
        return str(error)
    if answer["unloadable"]:
        return _unloadable(library, answer["unloadable"])
    if absent := _not_found(said, library):
        return f"it looks for {', '.join(absent)}, which is not installed here{_packages(absent)}"
    return next(_complaints(said, driver.manifest), "")


def _asked(environment: Mapping[str, str], seconds: float) -> tuple[dict[str, Any] | str, str]:
    """The probe's answer, or what became of it, and what it wrote to standard error."""
    done = run(python_command("vgf_conformance.targets.probe"), environment, seconds)
    if done is None:
        return f"did not say within {seconds:g} s which devices it has", ""
    if done.status == 0:
        return _answer(done.out), done.err
    if done.status < 0:
        return f"ended the process that asked it by {signal_name(done.status)}", done.err
    words = done.err.strip().splitlines()
    why = one_line(words[-1]) if words else f"exit status {done.status}"
    return f"could not be asked: {why}", done.err


def _answer(output: str) -> dict[str, Any] | str:
    """What the probe printed; a driver may write to standard output as well."""
    for line in reversed(output.splitlines()):
        with contextlib.suppress(ValueError):
            answer = parse_json(line.encode())
            if isinstance(answer, dict) and "devices" in answer:
                return answer
    return "could not be asked: no answer among what it wrote to standard output"


def _unloadable(library: str, why: str) -> str:
    missing = _MISSING.search(why)
    absent = [missing["name"]] if missing else []
    if absent == [library]:
        return f"{one_line(why)}: install the driver, or name its library by its path"
    return f"{library} cannot be loaded: {one_line(why)}{_packages(absent)}"


def _not_found(said: str, library: str) -> list[str]:
    """The libraries that were looked for in vain once ``library`` was loaded, as the dynamic linker tells."""
    found: dict[str, bool] = {}
    sought, loaded = "", False
    for match in filter(None, map(_LINKER.fullmatch, said.splitlines())):
        if start := _INITIALISED.fullmatch(match["said"]):
            loaded = loaded or Path(start["path"]).name == library
        elif search := _SOUGHT.match(match["said"]):
            sought = search["name"] if loaded else ""
        elif sought and (tried := _TRIED.fullmatch(match["said"])):
            found[sought] = found.get(sought, False) or Path(tried["path"]).exists()
    return [name for name, there in found.items() if not there][:_MOST]


def _packages(libraries: list[str]) -> str:
    """Where Debian's rules of naming say that the libraries are."""
    packages = [*filter(None, map(_package, libraries))]
    return f": install it (on Debian and Ubuntu apt-get install -y {' '.join(packages)})" if packages else ""


def _package(library: str) -> str:
    named = re.fullmatch(r"(lib[A-Za-z0-9_+.-]+)\.so\.(\d+)", library)
    if named is None:
        return ""
    base = named[1].lower().replace("_", "-")
    return f"{base}{'-' if base[-1].isdigit() else ''}{named[2]}"


def _complaints(said: str, manifest: Path) -> Iterator[str]:
    """What the driver itself says, and the loader of its manifest."""
    for line in said.splitlines():
        if not line.strip() or _LINKER.fullmatch(line):
            continue
        loader = _LOADER.match(line)
        if loader is None or str(manifest) in line:
            yield one_line(line[loader.end() if loader else 0 :])
