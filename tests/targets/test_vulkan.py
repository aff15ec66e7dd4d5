"""Finding and choosing Vulkan drivers, the emulation environment, and the probe."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vgf_conformance.targets import probe, vulkan
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import UserError


def write_manifest(folder: Path, name: str) -> Path:
    """Write a sound ICD manifest with a library beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "libdriver.so").touch()
    manifest = folder / name
    manifest.write_text(json.dumps({"ICD": {"library_path": "./libdriver.so", "api_version": "1.3.0"}}))
    return manifest


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of installed manifests, the only one besides /etc that is searched."""
    for name in vulkan.OVERRIDES:
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path))
    return tmp_path / "vulkan/icd.d"


def test_installed_drivers_are_found_and_named_without_the_architecture(installed: Path) -> None:
    """Names come from file names."""
    write_manifest(installed, "lvp_icd.x86_64.json")
    write_manifest(installed, "nvidia_icd.json")
    names = [driver.name for driver in vulkan.find_drivers() if installed in driver.manifest.parents]
    assert names == ["lvp_icd", "nvidia_icd"]


@pytest.mark.parametrize("variable", vulkan.OVERRIDES)
def test_an_override_lists_files_and_folders(
    variable: str, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The override hides what is installed, and repeats count once."""
    write_manifest(installed, "lvp_icd.json")
    one = write_manifest(tmp_path / "one", "a_icd.json")
    two = write_manifest(tmp_path / "two", "b_icd.json")
    monkeypatch.setenv(variable, os.pathsep.join(map(str, (one, two.parent, one))))
    assert vulkan.find_drivers() == [vulkan.Driver("a_icd", one), vulkan.Driver("b_icd", two)]
    assert vulkan.choose_driver(None).name == "a_icd"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (None, "lvp_icd"),
        ("lavapipe", "lvp_icd"),
        ("lvp", "lvp_icd"),
        ("swiftshader", "vk_swiftshader_icd"),
        ("intel", "intel_icd"),
        ("intel_h", "intel_hasvk_icd"),
    ],
)
def test_a_driver_is_chosen_by_name(text: str | None, chosen: str, installed: Path) -> None:
    """A whole name goes before one that it only begins."""
    for name in ("intel_hasvk_icd", "intel_icd", "lvp_icd", "vk_swiftshader_icd"):
        write_manifest(installed, f"{name}.x86_64.json")
    assert vulkan.choose_driver(text).name == chosen


def test_a_driver_is_chosen_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path becomes absolute: workers may start elsewhere."""
    manifest = write_manifest(tmp_path, "mine.json")
    monkeypatch.chdir(tmp_path)
    assert vulkan.choose_driver("mine.json") == vulkan.Driver("mine", manifest)


def test_an_unknown_or_ambiguous_name_lists_the_choice(installed: Path) -> None:
    """The message holds the names to choose from."""
    write_manifest(installed, "amd_one.json")
    write_manifest(installed, "amd_two.json")
    with pytest.raises(UserError, match=r"'mali'.*amd_one, amd_two"):
        vulkan.choose_driver("mali")
    with pytest.raises(UserError, match=r"'amd' fits several.*amd_one, amd_two"):
        vulkan.choose_driver("amd")
    with pytest.raises(UserError, match="apt-get install"):
        vulkan.choose_driver(None)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "does not exist"),
        ("not json", "is not JSON"),
        ("[]", "is no ICD manifest"),
        ('{"layer": {}}', "is no ICD manifest"),
        ('{"ICD": {"library_path": "./absent.so"}}', "names a library that does not exist"),
    ],
)
def test_an_unsound_manifest_is_explained(content: str | None, fault: str, tmp_path: Path) -> None:
    """The message names the file and what is wrong with it."""
    manifest = tmp_path / "broken.json"
    if content is not None:
        manifest.write_text(content)
    with pytest.raises(UserError, match=rf"broken.json {fault}"):
        vulkan.choose_driver(str(manifest))


def test_no_driver_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to get one."""
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    with pytest.raises(UserError, match=r"no Vulkan driver found.*mesa-vulkan-drivers"):
        vulkan.choose_driver("lavapipe")


def test_the_graph_layer_comes_above_the_tensor_layer(tmp_path: Path) -> None:
    """One folder for each manifest, in the order that old loaders take for the layers' order."""
    driver = vulkan.Driver("any", tmp_path / "any.json")
    environment = vulkan.emulation_environment(driver, tmp_path)
    assert environment["VK_INSTANCE_LAYERS"] == "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"
    assert environment["VK_DRIVER_FILES"] == environment["VK_ICD_FILENAMES"] == str(driver.manifest)
    folders = environment["VK_LAYER_PATH"].split(os.pathsep)
    assert [Path(folder).name for folder in folders] == ["graph", "tensor"]
    for folder in folders:
        (manifest,) = Path(folder).glob("*.json")
        library = Path(json.loads(manifest.read_text())["layer"]["library_path"])
        assert library.is_absolute()
        assert library.is_file()


def test_missing_emulation_layers_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the package nor its libraries are taken for granted."""
    driver = vulkan.Driver("any", tmp_path / "any.json")
    empty = importlib.machinery.ModuleSpec("emulation_layer", None, is_package=True)
    empty.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: empty)
    with pytest.raises(UserError, match=r"VkLayer_Graph.json is missing.*--force-reinstall"):
        vulkan.emulation_environment(driver, tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install ai-ml-emulation-layer-for-vulkan"):
        vulkan.emulation_environment(driver, tmp_path)


def test_the_probe_sees_the_emulated_extensions(tmp_path: Path) -> None:
    """The real loader, layers and lavapipe."""
    environment = vulkan.emulation_environment(vulkan.choose_driver("lavapipe"), tmp_path)
    process = subprocess.run(
        [sys.executable, "-m", "vgf_conformance.targets.probe"],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    answer = json.loads(process.stdout)
    (device,) = answer["devices"]
    assert answer["error"] is None
    assert device["driver"] == "llvmpipe"
    assert device["features"]["shaderInt64"]
    assert {"VK_ARM_tensors", "VK_ARM_data_graph"} <= set(device["extensions"])


def test_the_probe_without_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer, not a traceback."""
    monkeypatch.setattr(probe, "vk", None)
    answer = probe.probe()
    assert answer["loader"] is None
    assert "libvulkan.so.1" in answer["error"]


def test_versions_are_unpacked() -> None:
    """Vulkan packs 7, 10 and 12 bits below the variant."""
    assert probe.version((1 << 22) | (3 << 12) | 239) == "1.3.239"


def test_a_choice_says_how_to_make_it_again_for_one_target() -> None:
    """Options that the other targets refuse are left out."""
    choice = DriverChoice("lavapipe", "none", "llvmpipe", validation=True)
    driver = ["--driver", "lavapipe"]
    watched = ["--expect-driver", "llvmpipe", "--validation"]
    assert choice.options("vulkan") == choice.options("runtime") == [*driver, "--layers", "none", *watched]
    assert choice.options("emulation") == [*driver, *watched]
    assert choice.options("reference") == DriverChoice().options("vulkan") == []
