"""ICD manifests and libraries that are not what they should be; and what keeps a driver from a device."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from vgf_conformance import cli, doctor
from vgf_conformance.targets import vulkan
from vgf_conformance.targets.asking import _not_found, _package, why_no_device
from vgf_conformance.targets.vulkan import Driver, choose_driver, find_drivers, manifest_fault
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import UserError

CONTROLS = "\x1b]0;PWN\x07\x1b[2J\u202e"


def manifest(folder: Path, library: str, name: str = "mine.json") -> Path:
    path = folder / name
    content = {"file_format_version": "1.0.0", "ICD": {"library_path": library, "api_version": "1.3.0"}}
    path.write_text(json.dumps(content))
    return path


def brackets(path: Path) -> None:
    path.write_text("[" * 200_000)


def objects(path: Path) -> None:
    path.write_text('{"ICD":' * 100_000)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 5 << 30)


def surrogate(path: Path) -> None:
    path.write_text('{"ICD": {"library_path": "lib\\udcff.so"}}')


def digits(path: Path) -> None:
    path.write_text('{"ICD": {"library_path": "liba.so", "x": %s}}' % ("9" * 5000))


def binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe{}")


def folder(path: Path) -> None:
    path.mkdir()


BROKEN = {
    brackets: "is not JSON: nested deeper than 64 levels",
    objects: "is not JSON: nested deeper than 64 levels",
    pipe: "is a pipe, not a regular file",
    loop: "cannot be read: Too many levels of symbolic links",
    device: "is a device, not a regular file",
    huge: "is too large: 5368709120 bytes",
    surrogate: "is not text: half of a surrogate pair",
    digits: "is not JSON: an integer of 5000 digits",
    binary: "is not UTF-8",
    folder: "is a folder, not a regular file",
}


@pytest.mark.parametrize("breaks", BROKEN)
def test_a_broken_manifest(
    breaks: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message for --driver, at once; listed as unusable by the doctor."""
    path = tmp_path / "broken_icd.json"
    breaks(path)  # type: ignore[operator]
    why = BROKEN[breaks]  # type: ignore[index]
    before = time.monotonic()
    assert cli.main(["capabilities", "--driver", str(path)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"vgf-conformance: {path} {why}")
    assert said.err.count("\n") == 1
    monkeypatch.setenv("VK_DRIVER_FILES", str(path.parent))
    (driver,) = find_drivers()
    found = doctor._check_driver(driver, tmp_path / "layers")
    assert (found.present, found.usable) == (True, False)
    assert found.reason.startswith(f"its manifest {why}")
    assert time.monotonic() - before < 5


@pytest.mark.parametrize("name", ["x" * 5000 + ".json", "/".join(["x" * 200] * 30) + "/a.json", "a\0.json"])
def test_a_name_that_the_system_refuses(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    with pytest.raises(UserError, match="give the path of a Vulkan driver's ICD manifest"):
        choose_driver(str(path))
    if "\0" not in name:
        monkeypatch.setenv("VK_DRIVER_FILES", str(path))
        (driver,) = find_drivers()
        assert manifest_fault(driver.manifest)
        assert len(driver.name) < 120


def test_a_home_that_nobody_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capabilities", "--driver", "~nobody-of-this-name/icd.json"]) == 2
    assert "there is no such user" in capsys.readouterr().err


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
    assert choose_driver("lavapipe").name == "lvp_icd"


def test_a_file_name_that_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver's name goes into records, which hold text."""
    path = tmp_path / os.fsdecode(b"\xff\x1b_icd.json")
    path.write_text("{}")
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    (driver,) = find_drivers()
    assert driver.name == "\\udcff\\x1b_icd"
    with pytest.raises(UserError, match="is no ICD manifest"):
        choose_driver(None)


def test_more_manifests_than_anybody_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(vulkan.MOST + 1):
        (tmp_path / f"{number}.json").touch()
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    assert cli.main(["capabilities"]) == 2
    assert f"{tmp_path} holds more than 100 manifests of Vulkan drivers" in capsys.readouterr().err
    assert doctor._find_drivers()[1].startswith(f"{tmp_path} holds more than 100")
    (tmp_path / "0.json").unlink()
    with pytest.raises(UserError, match=r"no Vulkan driver is called 'mali'.* and 80 more"):
        choose_driver("mali")


@pytest.mark.parametrize(
    ("library", "fault"),
    [
        ("./absent.so", "names a library that does not exist"),
        ("./pipe.so", "names a library that is no file"),
        ("./loop.so", "names a library that cannot be opened"),
        (f"./{'x' * 5000}.so", "names a library that cannot be opened"),
        ("./", "names a library that is no file"),
    ],
)
def test_a_library_that_is_none(library: str, fault: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.so")
    loop(tmp_path / "loop.so")
    found = manifest_fault(manifest(tmp_path, library))
    assert found is not None
    assert found.startswith(fault)
    assert len(found) < 400


def test_a_library_path_with_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = manifest(tmp_path, f"./{CONTROLS}\nvgf-conformance: fine.so")
    assert cli.main(["capabilities", "--driver", str(path)]) == 2
    said = capsys.readouterr().err
    assert visible(said) == said
    assert said.count("\n") == 1


def why(path: Path, folder: Path) -> str:
    driver = Driver.at(path)
    return why_no_device(driver, vulkan.driver_environment(driver))


def test_a_library_that_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libmine.so").write_text("no library")
    path = manifest(tmp_path, "./libmine.so")
    assert "libmine.so cannot be loaded: " in why(path, tmp_path)
    assert "file too short" in why(path, tmp_path)
    found = doctor._check_driver(Driver.at(path), tmp_path)
    assert (found.present, found.usable) == (True, False)
    assert found.reason.startswith("libmine.so cannot be loaded: ")


def test_a_library_that_nobody_has(tmp_path: Path) -> None:
    assert why(manifest(tmp_path, "libnowhere.so.3"), tmp_path) == (
        "libnowhere.so.3: cannot open shared object file: No such file or directory: install the driver, or "
        "name its library by its path"
    )


def test_a_manifest_that_the_loader_skips(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"file_format_version": "1.0.0", "ICD": {"library_path": "libm.so.6"}}')
    assert "does not have an 'api_version' field" in why(path, tmp_path)


LINKED = "extern int absent(void); int here(void) { return absent(); }"

#: As NVIDIA's driver does where libEGL is missing: it loads, and takes part in nothing.
OPENED = """
#include <dlfcn.h>
int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned *version) {
    return dlopen("libAbsent.so.1", RTLD_NOW) ? 0 : -3;
}
void *vk_icdGetInstanceProcAddr(void *instance, const char *name) { return 0; }
"""

#: What the dynamic linker tells of such a driver, in short.
TOLD = """
     1:\tfind library=libbefore.so.1 [0]; searching
     1:\t  trying file=/no/such/libbefore.so.1
     1:\tcalling init: /opt/./libmine.so
     1:\tfind library=libAbsent.so.1 [0]; searching
     1:\t search path=/no/such
     1:\t  trying file=/no/such/libAbsent.so.1
     1:\tfind library=libc.so.6 [0]; searching
     1:\t  trying file=/no/such/libc.so.6
     1:\t  trying file=/dev/null
"""


def test_what_the_dynamic_linker_tells() -> None:
    assert _not_found(TOLD, "libmine.so") == ["libAbsent.so.1"]
    assert _not_found(TOLD, "libother.so") == []


def test_a_library_that_lacks_another(tmp_path: Path) -> None:
    """Built where there is a compiler; what is parsed is tested without one, above."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc)")
    (tmp_path / "absent.c").write_text("int absent(void) { return 1; }")
    (tmp_path / "linked.c").write_text(LINKED)
    (tmp_path / "opened.c").write_text(OPENED)
    build = [compiler, "-shared", "-fPIC"]
    for arguments in (
        ["-Wl,-soname,libAbsent.so.1", "-o", "libAbsent.so", "absent.c"],
        ["-o", "liblinked.so", "linked.c", "-L.", "-lAbsent"],
        ["-o", "libopened.so", "opened.c", "-ldl"],
    ):
        subprocess.run([*build, *arguments], cwd=tmp_path, check=True)
    advice = "install it (on Debian and Ubuntu apt-get install -y libabsent1)"
    linked = manifest(tmp_path, "./liblinked.so", "linked.json")
    assert why(linked, tmp_path) == (
        "liblinked.so cannot be loaded: libAbsent.so.1: cannot open shared object file: No such file or "
        f"directory: {advice}"
    )
    opened = manifest(tmp_path, "./libopened.so", "opened.json")
    reason = f"it looks for libAbsent.so.1, which is not installed here: {advice}"
    assert why(opened, tmp_path) == reason
    found = doctor._check_driver(Driver.at(opened), tmp_path)
    assert (found.present, found.usable, found.reason) == (False, False, f"no device; {reason}")


def test_packages_are_named_as_debian_names_them() -> None:
    named = (
        "libEGL.so.1",
        "libX11.so.6",
        "libstdc++.so.6",
        "libGL_x.so.0",
        "libdriver.so.580.1",
        "other.so.1",
    )
    assert [*map(_package, named)] == ["libegl1", "libx11-6", "libstdc++6", "libgl-x0", "", ""]
