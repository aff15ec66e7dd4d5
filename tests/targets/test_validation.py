"""The validation layer: found or asked for, put next to the driver, and heard."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from tests.results.records import record
from tests.targets.test_capabilities import absolute
from vgf_conformance.report import summary_table
from vgf_conformance.results.merge import Results
from vgf_conformance.targets import validation, vulkan
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.capabilities import platform, platforms
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.targets.validation import find_layer, messages
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import UserError, Verdict

#: As the layer of SDK 1.3.239 writes it, and one of 1.4.
OLD = (
    "VUID-VkShaderModuleCreateInfo-pCode-01091(ERROR / SPEC): msgNum: -1480880714 - Validation Error: "
    "[ VUID-VkShaderModuleCreateInfo-pCode-01091 ] Object 0: handle = 0x561df2786290, type = "
    "VK_OBJECT_TYPE_DEVICE; | MessageID = 0xa7bb8db6 | vkCreateShaderModule(): The SPIR-V Capability (Int64) "
    "was declared, but none of the requirements were met to use it. The Vulkan spec states: If pCode\n"
    "    Objects: 1\n        [0] 0x561df2786290, type: 3, name: NULL\n"
)
NEW = (
    "Validation Error: [ VUID-VkShaderModuleCreateInfo-pCode-08740 ] | MessageID = 0x6e224e9\n"
    "vkCreateShaderModule(): SPIR-V Capability Int64 was declared, but that needs shaderInt64.\n"
    "The Vulkan spec states: If pCode is a pointer to SPIR-V code\n\n"
)


def test_messages_of_both_formats_are_told_once_with_their_number() -> None:
    assert messages(f"a driver's word\n{OLD}{NEW}more\n{NEW}") == [
        "validation: VUID-VkShaderModuleCreateInfo-pCode-08740: vkCreateShaderModule(): SPIR-V Capability "
        "Int64 was declared, but that needs shaderInt64. (2 times)",
        "validation: VUID-VkShaderModuleCreateInfo-pCode-01091: vkCreateShaderModule(): The SPIR-V "
        "Capability (Int64) was declared, but none of the requirements were met to use it. (1 times)",
    ]
    assert messages("Validation Layer Info - Logging validation error to stdout\n") == []


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the layer's manifest, named by the loader's variable."""
    folder = tmp_path / "layers"
    folder.mkdir()
    (folder / "VkLayer_khronos_validation.json").write_text("{}")
    monkeypatch.setenv("VK_LAYER_PATH", os.pathsep.join(["/no/such", str(folder)]))
    return folder


def test_the_layer_is_next_to_the_driver(layer: Path, tmp_path: Path) -> None:
    found = platform("emulation", DriverChoice("lavapipe", validation=True))
    assert found.validation == layer
    variables = vulkan.layered_environment(found.driver, found.layers, tmp_path / "here", found.validation)
    assert variables["VK_INSTANCE_LAYERS"].endswith(f":{validation.LAYER}")
    assert variables["VK_LAYER_PATH"].endswith(f":{layer}")
    settings = Path(variables["VK_LAYER_SETTINGS_PATH"]).read_text()
    assert "log_filename = stdout" in settings
    assert platform("emulation", DriverChoice("lavapipe")).validation is None


def test_a_missing_layer_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_LAYER_PATH", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(validation, "_FOLDERS", (str(tmp_path),))
    with pytest.raises(UserError, match="apt-get install -y vulkan-validationlayers"):
        find_layer()
    with pytest.raises(UserError, match="vulkan-validationlayers"):
        platform("vulkan", DriverChoice("lavapipe", validation=True))


def test_validation_without_a_driver_is_refused() -> None:
    with pytest.raises(UserError, match="--validation is for the targets emulation and vulkan"):
        platforms(["reference"], DriverChoice(validation=True))


def test_what_is_said_belongs_to_the_call_in_which_it_is_said() -> None:
    """The second call has another number, and the message once more."""
    target = ProcessTarget("emulation", "tests.fakes:Complains")
    values = [np.zeros(4, np.float32)]
    try:
        for number in (1, 2):
            target.load([dataclasses.replace(absolute(), name=f"abs {number}")])
            (said,) = target.run(0, values).validation
            assert said == f"validation: VUID-fake: delegate {number} is wrong (2 times)"
    finally:
        target.close()


def test_what_is_said_before_a_crash_stands_above_the_last_words() -> None:
    target = ProcessTarget("emulation", "tests.fakes:DiesComplaining")
    target.load([dataclasses.replace(absolute(), name="abs 7")])
    with pytest.raises(TargetFailure) as caught:
        target.run(0, [np.zeros(4, np.float32)])
    assert caught.value.verdict is Verdict.CRASH
    assert caught.value.log.startswith("validation: VUID-fake: delegate 7 is wrong (1 times)\n")
    assert "a driver's own words" in caught.value.log


def test_a_summary_counts_what_was_said_and_names_leaks() -> None:
    noisy = record(case="noisy", notes=["validation: a (3 times)", "validation: b (1 times)"])
    leaking = record(case="leaking", notes=["memory leak: the worker grows", "validation: a (1 times)"])
    text = summary_table(Results(records=[noisy, leaking, record()]))
    assert "validation layer: 3 messages, in 2 cases" in text
    assert f"memory leak: the worker grows ({leaking.id})" in text
    assert "validation layer" not in summary_table(Results(records=[record()]))
