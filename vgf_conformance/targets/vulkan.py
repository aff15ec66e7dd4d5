"""Vulkan drivers of this machine, and the environment in which a worker uses one.

Nothing here loads Vulkan: a driver that crashes must take a worker with it, not
the process that asks.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vgf_conformance.targets.validation import LAYER as VALIDATION_LAYER
from vgf_conformance.targets.validation import write_settings
from vgf_conformance.terminal import one_line
from vgf_conformance.untrusted import BadFile, absolute, is_folder, read_json
from vgf_conformance.vocabulary import VULKAN_TARGETS, UserError

#: The emulation layers from the application down, with the extension that each stands in for: the graph
#: layer calls into the tensor layer.
LAYERS = {"Graph": "VK_ARM_data_graph", "Tensor": "VK_ARM_tensors"}

#: The loader's own override variables; the second is for loaders before 1.3.207.
OVERRIDES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")

#: Names that people use for a driver whose manifest is called something else.
_ALIASES = {"lavapipe": "lvp", "swiftshader": "vk_swiftshader"}

_DEFAULT = "lavapipe"

_REINSTALL = "python -m pip install --force-reinstall --no-deps ai-ml-emulation-layer-for-vulkan==0.11.0"

_INSTALL_LAVAPIPE = "install one: apt-get install -y libvulkan1 mesa-vulkan-drivers"


#: How many drivers are looked at, and how many are named in one message.
MOST = 100
_SHOWN = 20


@dataclass(frozen=True)
class Driver:
    """A Vulkan driver: the name (printable) and the path of its ICD manifest."""

    name: str
    manifest: Path

    @classmethod
    def at(cls, manifest: Path) -> Driver:
        """Return the driver of a manifest, named after it without the architecture (``lvp_icd``)."""
        return cls(one_line(manifest.name.split(".")[0], 100), manifest)


@dataclass(frozen=True)
class DriverChoice:
    """What was asked of the Vulkan driver.

    ``name`` is a driver's name or manifest, None for the default. ``layers`` (of LAYER_CHOICES) says which
    emulation layers the target ``vulkan`` puts over it, ``expect`` what the name of its device or driver has
    to contain, and ``validation`` whether the Vulkan validation layer watches the driver.
    """

    name: str | None = None
    layers: str = "auto"
    expect: str = ""
    validation: bool = False

    def options(self, target: str) -> list[str]:
        """The options that make the same choice again for ``target`` alone."""
        if target not in VULKAN_TARGETS:
            return []
        layered = target != "emulation" and self.layers != "auto"
        return [
            *(["--driver", self.name] if self.name else []),
            *(["--layers", self.layers] if layered else []),
            *(["--expect-driver", self.expect] if self.expect else []),
            *(["--validation"] if self.validation else []),
        ]


def find_drivers() -> list[Driver]:
    """Return the drivers that the Vulkan loader would see, in its order and without repeats.

    A manifest is listed whether or not it is sound: see :func:`manifest_fault`. Raises UserError where there
    are more than MOST.
    """
    override = _override()
    manifests = dict.fromkeys(_listed(override) if override else _installed())
    if len(manifests) > MOST:
        raise UserError(_too_many("all folders together hold"))
    return [Driver.at(manifest) for manifest in manifests]


def choose_driver(text: str | None) -> Driver:
    """Return the driver that ``text`` names: a manifest's path, a name or the start of one.

    Without ``text`` it is the first driver of the loader's override variables
    where one is set, else lavapipe. Raises UserError where there is no such
    driver, where the name fits several, or where the manifest is unsound.
    """
    if text and (os.sep in text or text.endswith(".json")):
        driver = Driver.at(absolute(text))
    else:
        driver = _named(text)
    fault = manifest_fault(driver.manifest)
    if fault:
        raise UserError(f"{driver.manifest} {fault}: give the path of a Vulkan driver's ICD manifest (.json)")
    return driver


def manifest_fault(manifest: Path) -> str | None:
    """Return what makes ``manifest`` useless to the loader, None where it is sound."""
    try:
        library = library_of(manifest)
    except BadFile as error:
        return error.why if error.why.startswith(("is ", "cannot ", "does ")) else f"is {error.why}"
    # A bare file name is left to the dynamic linker's search path.
    return _library_fault(library) if "/" in library else None


def library_of(manifest: Path) -> str:
    """The driver's library, as the dynamic linker is given it; raises BadFile."""
    try:
        content = read_json(manifest, links=True)
    except BadFile as error:
        raise BadFile(manifest, "does not exist") if error.why == "no such file" else error from None
    icd = content.get("ICD") if isinstance(content, dict) else None
    library = icd.get("library_path") if isinstance(icd, dict) else None
    if not isinstance(library, str) or not library:
        raise BadFile(manifest, "is no ICD manifest (it has no ICD.library_path)")
    return str(manifest.parent / library) if "/" in library else library


def _library_fault(library: str) -> str | None:
    shown = one_line(library, 200)
    try:
        if stat.S_ISREG(Path(library).stat().st_mode):
            return None
    except (FileNotFoundError, NotADirectoryError):
        return f"names a library that does not exist ({shown})"
    except (OSError, ValueError) as error:
        return f"names a library that cannot be opened ({shown}: {getattr(error, 'strerror', error)})"
    return f"names a library that is no file ({shown})"


def layered_environment(
    driver: Driver, layers: Iterable[str], folder: Path, validation: Path | None = None
) -> dict[str, str]:
    """Return the variables under which a process sees ``driver`` alone below ``layers``, some of LAYERS.

    ``validation`` is the folder of the validation layer where that is wanted, next to the driver.
    Writes the layers' manifests below ``folder``, which must outlive that
    process. Raises UserError where the emulation layers are not installed.
    """
    written = [_write_layer(layer, folder.absolute()) for layer in layers]
    settings = {}
    if validation is not None:
        written.append((str(validation), VALIDATION_LAYER))
        settings["VK_LAYER_SETTINGS_PATH"] = str(write_settings(folder.absolute()))
    return {
        **settings,
        # Older loaders ignore the order of the names and take that in which they
        # find the manifests: hence one folder for each, in the order wanted.
        "VK_LAYER_PATH": os.pathsep.join(path for path, _ in written),
        # Set even to nothing: no other layer than those named must have a part in the result.
        "VK_INSTANCE_LAYERS": os.pathsep.join(name for _, name in written),
        **driver_environment(driver),
    }


def emulation_environment(driver: Driver, folder: Path) -> dict[str, str]:
    """Return the variables under which a process runs both emulation layers over ``driver``; as above."""
    return layered_environment(driver, LAYERS, folder)


def driver_environment(driver: Driver) -> dict[str, str]:
    """Return the variables under which the Vulkan loader sees ``driver`` alone."""
    return dict.fromkeys(OVERRIDES, str(driver.manifest))


def _named(text: str | None) -> Driver:
    drivers = find_drivers()
    if not drivers:
        raise UserError(f"no Vulkan driver found: {_INSTALL_LAVAPIPE}")
    if text is None and _override():
        return drivers[0]
    name = text or _DEFAULT
    asked = one_line(text or _DEFAULT, 100)
    start = _ALIASES.get(name, name)
    exact = [driver for driver in drivers if driver.name in (start, f"{start}_icd")]
    found = exact[:1] or [driver for driver in drivers if driver.name.startswith(start)]
    known = _names(drivers)
    if not found:
        advice = f"; {_INSTALL_LAVAPIPE}" if name == _DEFAULT else ""
        raise UserError(f"no Vulkan driver is called {asked!r}: choose from {known}, or give a path{advice}")
    if len({driver.name for driver in found}) > 1:
        raise UserError(f"{asked!r} fits several Vulkan drivers: choose from {_names(found)}")
    return found[0]


def _names(drivers: Sequence[Driver]) -> str:
    more = f" and {len(drivers) - _SHOWN} more" if len(drivers) > _SHOWN else ""
    return ", ".join(driver.name for driver in drivers[:_SHOWN]) + more


def _override() -> str:
    return next(filter(None, map(os.environ.get, OVERRIDES)), "")


def _listed(override: str) -> Iterator[Path]:
    """The manifests in a list of files and folders, as the override variables hold."""
    for entry in filter(None, override.split(os.pathsep)):
        path = absolute(entry)
        yield from _manifests([path]) if _may_be_folder(path) else [path]


def _may_be_folder(path: Path) -> bool:
    try:
        return is_folder(path)
    except BadFile:
        # Whatever is wrong with it is told when it is read as a manifest.
        return False


def _installed() -> Iterator[Path]:
    """The manifests in the folders that the loader searches on Linux, in its order."""
    home = os.environ.get("HOME")
    bases = [
        os.environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else ""),
        *(os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
        "/etc",
        os.environ.get("XDG_DATA_HOME") or (f"{home}/.local/share" if home else ""),
        *(os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep),
    ]
    return _manifests(Path(base) / "vulkan/icd.d" for base in bases if base)


def _manifests(folders: Iterable[Path]) -> Iterator[Path]:
    """The manifests in each of ``folders``, sorted; raises UserError where one has more than MOST."""
    for folder in folders:
        found: list[Path] = []
        # A folder that is not there, or not ours to read, has none.
        with contextlib.suppress(OSError, ValueError):
            for path in folder.iterdir():
                if path.name.endswith(".json"):
                    found.append(path)
                if len(found) > MOST:
                    raise UserError(_too_many(f"{folder} holds"))
        yield from sorted(found)


def _too_many(who: str) -> str:
    return (
        f"{who} more than {MOST} manifests of Vulkan drivers: give the path of one to --driver, or a folder "
        f"with fewer to {OVERRIDES[0]}"
    )


def _write_layer(layer: str, folder: Path) -> tuple[str, str]:
    """Write one layer's manifest with an absolute library path; return its folder and its name."""
    deploy = _package_folder() / "deploy"
    source = deploy / "share/vulkan/explicit_layer.d" / f"VkLayer_{layer}.json"
    library = deploy / "lib" / f"libVkLayer_{layer}.so"
    for needed in (source, library):
        if not needed.is_file():
            raise UserError(f"the emulation layer's {needed.name} is missing ({needed}): {_REINSTALL}")
    manifest = json.loads(source.read_text(encoding="utf-8"))
    manifest["layer"]["library_path"] = str(library)
    target = folder / layer.lower()
    target.mkdir(parents=True, exist_ok=True)
    (target / source.name).write_text(json.dumps(manifest), encoding="utf-8")
    return str(target), manifest["layer"]["name"]


def _package_folder() -> Path:
    spec = importlib.util.find_spec("emulation_layer")
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            "the ML emulation layers are not installed: "
            "python -m pip install ai-ml-emulation-layer-for-vulkan==0.11.0"
        )
    return Path(spec.submodule_search_locations[0])
