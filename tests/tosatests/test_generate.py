"""Listing, choosing and writing of TOSA's tests."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from vgf_conformance.tosatests import collect
from vgf_conformance.tosatests.collect import declared_tests, declares_tosa_tests
from vgf_conformance.tosatests.declare import TosaTests, not_covered, tosa_tests
from vgf_conformance.tosatests.generate import Generator, Options
from vgf_conformance.vocabulary import UserError

#: What another process says of the same options: names, and the bytes of one test.
ELSEWHERE = """
import hashlib, json
from vgf_conformance.tosatests.generate import Generator, Options

maker = Generator(Options("MUL"))
names = [item.name for item in maker.listed()]
for name in reversed(names):
    files = maker.write(name).files
print(json.dumps([names, hashlib.sha256(b"".join(files[key] for key in sorted(files))).hexdigest()]))
"""


def digest(files: dict[str, bytes]) -> str:
    return hashlib.sha256(b"".join(files[key] for key in sorted(files))).hexdigest()


def test_another_process_in_another_order_makes_the_same_tests() -> None:
    maker = Generator(Options("MUL"))
    names = [item.name for item in maker.listed()]
    answer = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], check=True, capture_output=True, env={"PYTHONHASHSEED": "5"}
    )
    assert json.loads(answer.stdout) == [names, digest(maker.write(names[0]).files)]


def test_a_seed_changes_the_data_and_nothing_else() -> None:
    maker = Generator(Options("ADD"))
    name = next(item.name for item in maker.listed() if item.rank == 3 and item.dtypes == ("fp32",))
    first, again, other = maker.write(name), maker.write(name), maker.write(name, seed=1)
    assert first.files == again.files
    assert first.name == other.name and first.tosa == other.tosa
    assert not np.array_equal(first.inputs["input-0"], other.inputs["input-0"])


def test_makers_do_not_disturb_each_other() -> None:
    # tosa-tools' class rewrites its own table of operators: of kernels, for one.
    small = Generator(Options("CONV2D", shapes=((1, 4, 4, 2),), kernels=((1, 1),)))
    large = Generator(Options("CONV2D", shapes=((1, 4, 4, 2),), kernels=((3, 2),)))
    assert {item.name[:10] for item in small.listed()} == {"conv2d_1x1"}
    assert {item.name[:10] for item in large.listed()} == {"conv2d_3x2"}


def choose(tests: TosaTests) -> list[Any]:
    return tests.choose(Generator(tests.options).listed())


def test_each_combination_of_types_gets_its_share() -> None:
    tests = choose(tosa_tests("ADD", ["fp16", "int32"], each=2, special=1, smoke=["int32"]))
    assert sorted((test.dtypes, test.listed.special) for test in tests) == [
        *[("fp16", False)] * 2,
        ("fp16", True),
        *[("int32", False)] * 2,
        ("int32", True),
    ]
    assert [test.dtypes for test in tests if test.tier == "smoke"] == ["int32"]
    assert len({test.name for test in tests}) == len(tests)


def test_names_and_profiles_are_queries() -> None:
    tests = choose(
        tosa_tests("CONV2D", ["int8xint4", "bf16"], shapes=[(1, 6, 5, 2)], kernels=[(2, 2)], special=0)
    )
    assert {(test.dtypes, test.profile) for test in tests} == {("int8xint4", "INT+int4")}
    (first,) = choose(tosa_tests("EXP", ["bf16"], each=1, special=0))
    assert first.name.startswith("bf16-exp_") and first.profile == "FP+bf16"
    both = choose(tosa_tests("IDENTITY", ["fp32", "bool"], each=1, special=0))
    assert {(test.dtypes, test.profile) for test in both} == {("fp32", "FP"), ("bool", "INT")}


def test_dynamic_and_fp8_tests_are_left_out() -> None:
    extensions = {
        name
        for test in choose(tosa_tests("NEGATE", ["fp32", "int8"], each=99))
        for name in test.listed.extensions
    }
    assert not extensions
    with pytest.raises(ValueError, match="no test of ABS with fp8e4m3"):
        choose(tosa_tests("ABS", ["fp8e4m3"]))


def suite(**declarations: Any) -> ModuleType:
    module = ModuleType("test_made_up")
    vars(module).update(declarations)
    return module


def test_an_unknown_operator_names_the_declaration() -> None:
    with pytest.raises(
        UserError, match=r"test_made_up\.py: mine: the generator knows no TOSA operator FROBNICATE"
    ):
        declared_tests(suite(mine=tosa_tests("FROBNICATE", ["fp32"])), "tosa/test_made_up.py")


def test_an_unknown_data_type_names_the_declaration() -> None:
    with pytest.raises(UserError, match="mine: the generator has no test of ADD with fp64"):
        declared_tests(suite(mine=tosa_tests("ADD", ["fp32", "fp64"])), "tosa/test_made_up.py")


def test_what_is_not_covered_makes_a_tosa_suite_too() -> None:
    module = suite(left_out=not_covered("cannot be converted", "WHILE_LOOP"))
    assert declares_tosa_tests(module) and not declared_tests(module, "tosa/test_made_up.py")
    assert not declares_tosa_tests(suite(other=1))


def test_listing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    module = suite(negate=tosa_tests("NEGATE", ["int8"]))
    first = declared_tests(module, "tosa/test_made_up.py")

    def fail(tests: TosaTests) -> None:
        raise AssertionError("asked the generator again")

    monkeypatch.setattr(collect, "listed", fail)
    assert declared_tests(module, "tosa/test_made_up.py") == first


def test_missing_tosa_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"has no libtosa_reference_generate_lib.so beside its package"):
        Generator(Options("ADD"))

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    with pytest.raises(UserError, match="tosa-tools is not installed: python -m pip install"):
        Generator(Options("ADD"))
