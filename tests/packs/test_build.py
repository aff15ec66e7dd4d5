"""What goes into a pack, what is left out, and that nothing else does."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from tests.packs.helpers import call, members, refused
from vgf_conformance.packs.build import build_pack
from vgf_conformance.packs.pack import Pack
from vgf_conformance.targets.environment import package_versions

Capture = pytest.CaptureFixture[str]


def test_two_builds_are_the_same_bytes_without_anything_kept_from_the_first(
    suite: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VGF_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    build_pack([suite.parent], "smoke", tmp_path / "again.zip", say=lambda text: None)
    assert (tmp_path / "again.zip").read_bytes() == small.read_bytes()


def test_building_leaves_no_suite_among_the_modules(small: Path) -> None:
    assert small.is_file()
    assert "suites.operators.test_small" not in sys.modules


def test_the_manifest_says_what_is_there(pack: Pack) -> None:
    manifest = pack.manifest
    assert manifest.versions == package_versions()
    assert manifest.tosa_versions == ("1.0.0",)
    assert [case.id for case in manifest.cases] == [
        "suites/operators/test_small.py::absolute[rank1-INT-a8w8-pc]",
        "suites/operators/test_small.py::pair[rank2-FP-none]",
        "suites/operators/test_small.py::narrow[row-FP+bf16-none]",
    ]
    absolute, pair, narrow = manifest.cases
    assert [output.rule for case in manifest.cases for call in case.calls for output in call.outputs] == [
        "exact",
        "tosa-1.0.2 propagated",
        "tosa-1.0.2 propagated",
        "tosa-1.0.2 ADD",
    ]
    assert absolute.calls[0].inputs[0].dtype == "int8"
    assert absolute.calls[0].outputs[0].exact is None
    assert [output.exact is not None for output in pair.calls[0].outputs] == [True, True]
    assert (pair.known_failure, narrow.known_failure) == ("the layers are off", "")
    assert narrow.dtypes == ("bfloat16",)


def test_what_is_left_out_is_listed_with_its_reason(pack: Pack) -> None:
    assert {item.id.partition("::")[2]: item.reason for item in pack.manifest.left_out} == {
        "sort[rank1-FP-none]": "nothing is delegated",
        "negative[rank1-FP-none]": "the suite expects it to fail at lower: lowered wrongly",
    }


def test_a_call_has_the_reference_models_outputs_and_those_in_fp64(pack: Pack) -> None:
    pair = pack.load(pack.manifest.cases[1].calls[0])
    assert pair.exact is not None
    (given,) = pair.inputs
    np.testing.assert_allclose(pair.exact[0], np.exp(given.astype(np.float64)), rtol=1e-12)
    np.testing.assert_allclose(pair.expected[0], np.exp(given), rtol=1e-6)
    assert pair.expected[0].dtype == np.float32


def test_narrow_floats_are_integers_in_the_file_and_floats_when_read(pack: Pack) -> None:
    (call,) = pack.manifest.cases[2].calls
    assert b"'<u2'" in pack.content(call.inputs[0].member)
    assert pack.load(call).inputs[0].dtype.name == "bfloat16"


def test_equal_contents_are_stored_once_and_times_are_fixed(small: Path) -> None:
    contents = members(small)
    assert len(set(contents.values())) == len(contents)
    with ZipFile(small) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_tosas_own_tests_are_left_out_as_a_file(suite: Path, tmp_path: Path) -> None:
    other = suite.with_name("test_tosa.py")
    other.write_text(
        "from vgf_conformance.tosatests.declare import tosa_tests\n"
        "add = tosa_tests('ADD', 'x', smoke=['fp32'])\n"
    )
    try:
        manifest = build_pack([suite.parent], "smoke", tmp_path / "pack.zip", say=lambda text: None)
    finally:
        other.unlink()
    assert "suites/operators/test_tosa.py" in {item.id for item in manifest.left_out}


def test_a_suite_that_cannot_be_packed_is_refused(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "pack.zip"
    refused(call(capfd, "build", tmp_path / "none.py", "-o", output), "no such file or folder")
    refused(call(capfd, "build", tmp_path, "-o", output), "no suite file in it")
    stray = tmp_path / "test_stray.py"
    stray.write_text("")
    refused(call(capfd, "build", stray, "-o", output), "does not lie in a folder called suites")
    broken = tmp_path / "suites" / "test_broken.py"
    broken.parent.mkdir()
    broken.write_text("import no_such_module_anywhere")
    refused(call(capfd, "build", broken, "-o", output), "ModuleNotFoundError")
    broken.write_text("")
    refused(call(capfd, "build", broken, "-o", output), "no case of", "can be packed in tier smoke")
    assert not output.exists()


def test_a_full_disk_leaves_the_pack_that_was_there(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **keywords: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    output = tmp_path / "pack.zip"
    output.write_bytes(b"earlier")
    monkeypatch.setattr(ZipFile, "writestr", full)
    answer = call(capfd, "build", suite, "-o", output)
    assert answer.code == 2
    assert answer.err.splitlines()[-1] == f"vgf-conformance: cannot write {output}: No space left on device"
    assert [path.name for path in tmp_path.iterdir()] == ["pack.zip"]
    assert output.read_bytes() == b"earlier"


def test_a_folder_or_device_is_not_replaced(suite: Path, tmp_path: Path, capfd: Capture) -> None:
    answer = call(capfd, "build", suite, "-o", "/dev/null")
    assert answer.code == 2
    assert answer.err.splitlines()[-1] == (
        "vgf-conformance: cannot write /dev/null: it is a device, not a regular file; name another"
    )
