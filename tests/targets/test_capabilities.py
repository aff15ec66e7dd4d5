"""Which driver, layers and device a target gets; what a device says, and what is refused for want of it."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.comparison.build import GraphBuilder
from tests.targets.native import make_native
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.targets import capabilities, vulkan
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.capabilities import Platform, platform, platforms
from vgf_conformance.targets.capable import CapableTarget, lacking
from vgf_conformance.targets.environment import environment
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.process import ProcessTarget, vulkan_target
from vgf_conformance.targets.vulkan import LAYERS, DriverChoice
from vgf_conformance.vocabulary import Finding, UserError, Verdict

TARGETS = Path(capabilities.__file__).parent
VALUES = np.array([-1.5, 2.0, 0.0, -3.0], np.float32)


def absolute(dtype: str = "float32") -> Delegate:
    """ABS of four floats; ``dtype`` is what its ports say."""
    port = Port((4,), dtype, (0,))
    graph = (TARGETS / "abs.tosa").read_bytes(), (TARGETS / "abs.vgf").read_bytes()
    return Delegate("abs", *graph, (port,), (port,), nodes=1)


def run(choice: DriverChoice, folder: Path) -> tuple[str, list[float]]:
    """What the target vulkan says of its driver, and what it makes of ABS."""
    target = open_targets(["vulkan"], choice, folder)["vulkan"]
    try:
        target.load([absolute()])
        return target.driver, target.run(0, [VALUES]).arrays[0].tolist()
    finally:
        target.close()


def test_what_lavapipe_has_not_is_emulated(tmp_path: Path) -> None:
    found = platform("vulkan", DriverChoice("lavapipe"))
    assert found.layers == ("Graph", "Tensor")
    assert {"VK_ARM_tensors", "VK_ARM_data_graph"} <= set(found.device.extensions)
    driver, numbers = run(DriverChoice("lavapipe"), tmp_path)
    assert driver == "lvp_icd, emulation layers: graph and tensor"
    assert numbers == np.abs(VALUES).tolist()


def test_native_extensions_are_used_where_the_driver_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_native(["Graph", "Tensor"], tmp_path, monkeypatch)
    found = platform("vulkan", DriverChoice("lavapipe"))
    assert found.layers == ()
    assert found.device.tensor_features["dataGraph"]
    for layers in ("auto", "none"):
        driver, numbers = run(DriverChoice("lavapipe", layers), tmp_path)
        assert driver == "lvp_icd, no emulation layers"
        assert numbers == np.abs(VALUES).tolist()


def test_a_driver_with_tensors_alone_gets_the_graph_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_native(["Tensor"], tmp_path, monkeypatch)
    assert platform("vulkan", DriverChoice("lavapipe")).layers == ("Graph",)
    assert platform("vulkan", DriverChoice("lavapipe", "emulation")).layers == ("Graph", "Tensor")
    assert platform("emulation", DriverChoice("lavapipe")).layers == ("Graph", "Tensor")


def test_without_layers_a_driver_without_extensions_refuses_each_case(tmp_path: Path) -> None:
    with pytest.raises(TargetFailure) as caught:
        run(DriverChoice("lavapipe", "none"), tmp_path)
    assert (caught.value.verdict, caught.value.finding) == (Verdict.UNSUPPORTED, Finding.CAPABILITY)
    assert "lacks VK_ARM_data_graph and VK_ARM_tensors (with no emulation layers)" in caught.value.message


def test_layers_of_the_callers_own_have_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a driver would seem to have extensions of its own."""
    variables = vulkan.emulation_environment(vulkan.choose_driver("lavapipe"), tmp_path)
    for name in ("VK_LAYER_PATH", "VK_INSTANCE_LAYERS"):
        monkeypatch.setenv(name, variables[name])
    assert not set(LAYERS.values()) & set(
        platform("vulkan", DriverChoice("lavapipe", "none")).device.extensions
    )


def test_the_report_of_a_device() -> None:
    device = platform("emulation", DriverChoice("lavapipe")).device
    assert device.kind == "cpu"
    assert device.api.startswith("1.")
    assert device.features["shaderInt64"]
    assert device.limits["maxTensorDimensionCount"] >= 4
    assert {"bool", "int8", "float16", "bfloat16", "float32"} <= set(device.formats)
    operations = [item for queue in device.queues for item in queue["operations"]]
    (tosa,) = [item for item in operations if item["name"].startswith("TOSA")]
    assert tosa["profiles"] == {"Emulation Layer": ["conformant"]}
    assert any("data graph" in queue["does"] for queue in device.queues)


def test_an_identity_is_the_same_below_any_layers() -> None:
    own = platform("vulkan", DriverChoice("lavapipe", "none")).identity
    assert own == platform("emulation", DriverChoice("lavapipe")).identity
    assert own["vendor_id"] == 0x10005
    assert len(bytes.fromhex(own["device_uuid"])) == len(bytes.fromhex(own["driver_uuid"])) == 16


def test_another_driver_than_expected_is_refused() -> None:
    assert platform("emulation", DriverChoice("lavapipe", expect="LLVMpipe")).driver.name == "lvp_icd"
    assert platform("emulation", DriverChoice("lavapipe", expect="mesa")).driver.name == "lvp_icd"
    with pytest.raises(UserError, match=r"would be used is llvmpipe .*contains 'NVIDIA'.*--driver"):
        platform("emulation", DriverChoice("lavapipe", expect="NVIDIA"))


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver with a discrete GPU after two devices on the CPU, and what the probe says of it."""
    devices = [device("A", "cpu"), device("B", "cpu"), device("C", "discrete"), device("D", "discrete")]
    answer = {"loader": "1.3.0", "devices": devices, "error": None}
    monkeypatch.setattr(capabilities, "_probe", lambda driver, variables: answer)
    # What is remembered of the driver itself is of no use here, nor is this answer to others.
    monkeypatch.setattr(capabilities, "_platform", capabilities._platform.__wrapped__)


def device(name: str, kind: str) -> dict[str, object]:
    identity = {"vendor_id": 1, "device_id": 2, "driver_version": "1.0.0"}
    return {"name": name, "kind": kind, "api": "1.3.0", "extensions": {}, "limits": {}, **identity}


@pytest.mark.usefixtures("two_devices")
def test_of_several_devices_the_one_in_use_is_named() -> None:
    """The scenario runner's own choice: the first discrete GPU."""
    found = platform("emulation", DriverChoice("lavapipe"))
    assert (found.device.name, found.others) == ("C", ("A", "B", "D"))
    described = environment(["emulation"], DriverChoice("lavapipe"))
    assert described["driver"]["device"] == "C"
    assert described["unused devices"] == ["A", "B", "D"]
    with pytest.raises(UserError, match=r"is C \(and not A, B, D, which this driver has too\)"):
        platform("emulation", DriverChoice("lavapipe", expect="D"))


def test_the_environment_says_what_is_used() -> None:
    described = environment(["reference", "emulation", "vulkan"], DriverChoice("lavapipe", "none"))
    assert described["layers"] == {
        "emulation": "emulation layers: graph and tensor",
        "vulkan": "no emulation layers",
    }
    assert described["device"]["name"] == described["driver"]["device"]
    assert "driver" not in environment(["reference"], DriverChoice())


def write_driver(folder: Path, library: Path) -> str:
    path = folder / "mine.json"
    path.write_text(json.dumps({"ICD": {"library_path": str(library), "api_version": "1.3.0"}}))
    return str(path)


def test_a_driver_that_loads_no_device(tmp_path: Path) -> None:
    library = tmp_path / "libnothing.so"
    library.write_bytes(b"no library at all")
    with pytest.raises(UserError, match=r"mine.json loads no device \(VkErrorIncompatibleDriver\).*doctor"):
        platform("vulkan", DriverChoice(write_driver(tmp_path, library)))


def test_a_driver_that_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of the process that asks, it is told in one line."""
    driver = vulkan.Driver("mine", Path("mine.json"))
    module = tmp_path / "vulkan" / "__init__.py"
    module.parent.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    module.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(UserError, match=r"mine.json ended the process that asked it by SIGSEGV"):
        capabilities._probe(driver, {})
    module.write_text("raise ValueError('no such thing')")
    with pytest.raises(UserError, match=r"mine.json could not be asked: ValueError: no such thing"):
        capabilities._probe(driver, {})
    module.write_text("import atexit; atexit.register(print, 'a last word'); raise OSError('no loader')")
    assert "libvulkan.so.1" in capabilities._probe(driver, {})["error"]
    module.write_text("raise SystemExit(0)")
    with pytest.raises(UserError, match=r"mine.json could not be asked: no answer"):
        capabilities._probe(driver, {})
    module.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(capabilities, "_SECONDS", 0.5)
    with pytest.raises(UserError, match=r"mine.json did not say within 0.5 s"):
        capabilities._probe(driver, {})


def test_layers_are_for_the_target_that_has_a_choice() -> None:
    with pytest.raises(UserError, match="--layers none is for --target vulkan"):
        platforms(["reference", "emulation"], DriverChoice(layers="none"))


def test_a_driver_that_does_not_exist_is_an_error_even_where_nothing_runs_on_it() -> None:
    with pytest.raises(UserError, match="does not exist"):
        platforms(["reference"], DriverChoice("/no/such/driver.json"))


def changed(found: Platform, **fields: object) -> Platform:
    return dataclasses.replace(found, device=dataclasses.replace(found.device, **fields))  # type: ignore[arg-type]


def test_features_that_shaders_need_are_asked_for_where_there_are_shaders() -> None:
    emulated = platform("emulation", DriverChoice("lavapipe"))
    assert [*lacking(emulated, absolute())] == []
    lesser = changed(emulated, features={**emulated.device.features, "shaderInt64": False})
    assert [*lacking(lesser, absolute())] == [
        "shaderInt64, which the emulation layers' shaders need for any graph"
    ]
    # The driver's own graphs are not made of shaders.
    assert [*lacking(dataclasses.replace(lesser, layers=()), absolute())] == []
    half = changed(emulated, features={**emulated.device.features, "storageBuffer16BitAccess": False})
    assert [*lacking(half, absolute())] == []
    narrow = dataclasses.replace(absolute(), tosa=absolute_of("float16"))
    assert [*lacking(half, narrow)] == [
        "storageBuffer16BitAccess, which the emulation layers' shaders need for float16"
    ]


def absolute_of(dtype: str) -> bytes:
    build = GraphBuilder()
    return build.finish(build.operator("ABS", [build.input("x", [4], dtype)], [4], dtype))


def test_tensors_of_a_type_that_the_device_lacks() -> None:
    emulated = platform("emulation", DriverChoice("lavapipe"))
    native = dataclasses.replace(changed(emulated, formats=("float32", "int8")), layers=())
    assert [*lacking(native, absolute())] == []
    assert [*lacking(native, absolute("bfloat16"))] == ["tensors of bfloat16 in data graphs"]


def test_a_refused_case_never_reaches_the_driver(tmp_path: Path) -> None:
    """SwiftShader lacks these, and ends the process where a graph's pipelines are built."""
    found = platform("emulation", DriverChoice("lavapipe"))
    features = {**found.device.features, "shaderInt16": False, "shaderInt64": False}
    target = vulkan_target("emulation", changed(found, features=features), tmp_path)
    target.load([absolute()])
    with pytest.raises(TargetFailure) as caught:
        target.run(0, [VALUES])
    assert (caught.value.verdict, caught.value.finding) == (Verdict.UNSUPPORTED, Finding.CAPABILITY)
    assert "lacks shaderInt16 and shaderInt64, which" in caught.value.message
    assert isinstance(target, CapableTarget)
    assert isinstance(target.inner, ProcessTarget)
    assert target.inner._process is None


def test_the_environment_is_part_of_what_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = platform("vulkan", DriverChoice("lavapipe")).layers
    make_native(["Graph", "Tensor"], tmp_path, monkeypatch)
    assert platform("vulkan", DriverChoice("lavapipe")).layers != before
    assert os.environ["XDG_DATA_HOME"] == str(tmp_path / "Tensor")
