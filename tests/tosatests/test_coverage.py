"""Nothing that tosa-tools' generator has is left out of suites/tosa without a reason that holds."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from vgf_conformance.formats.convert import Refusal, convert
from vgf_conformance.tosatests.collect import Declared, declared_tests
from vgf_conformance.tosatests.declare import EXTENSIONS, FLOATS, NotCovered
from vgf_conformance.tosatests.generate import Generator, Options, operators

FOLDER = Path(__file__).parents[2] / "suites" / "tosa"

#: What has no test at the generator's default shapes.
UNTESTED = {"CONV2D_BLOCK_SCALED", "MATMUL_T_BLOCK_SCALED"}


def modules() -> list[ModuleType]:
    return [importlib.import_module(f"suites.tosa.{path.stem}") for path in sorted(FOLDER.glob("test_*.py"))]


@pytest.fixture(scope="module")
def declared() -> list[Declared]:
    return [item for module in modules() for item in declared_tests(module, f"tosa/{module.__name__}")]


def not_covered() -> list[str]:
    values = [value for module in modules() for value in vars(module).values()]
    return [name for value in values if isinstance(value, NotCovered) for name in value.operators]


def test_every_operator_is_declared_or_left_out_with_a_reason(declared: list[Declared]) -> None:
    covered, left_out = {item.tests.operator for item in declared}, not_covered()
    assert not covered & set(left_out)
    assert len(left_out) == len(set(left_out))
    assert operators() - covered - set(left_out) == set()


def test_every_extension_is_taken_or_left_out_with_a_reason() -> None:
    values = [value for module in modules() for value in vars(module).values()]
    left_out = [name for value in values if isinstance(value, NotCovered) for name in value.extensions]
    assert not EXTENSIONS & set(left_out)
    offered = {
        name
        for operator in ("ADD", "CAST", "COND_IF", "CONST", "NEGATE", "CAST_TO_BLOCK_SCALED", "RESCALE")
        for item in Generator(Options(operator)).listed()
        for name in item.extensions
    }
    assert offered - EXTENSIONS - set(left_out) == set()


def test_there_are_enough_tests(declared: list[Declared]) -> None:
    assert len({item.tests.operator for item in declared}) >= 50
    assert sum(len(item.chosen) for item in declared) >= 500


def test_the_smoke_tier_is_small(declared: list[Declared]) -> None:
    smoke = [test for item in declared for test in item.chosen if test.tier == "smoke"]
    assert 15 <= len(smoke) <= 25


@pytest.mark.parametrize(
    "operator",
    ["AVG_POOL2D", "CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "MATMUL", "REDUCE_SUM", "TRANSPOSE_CONV2D"],
)
def test_dot_products_have_their_data_sets(operator: str, declared: list[Declared]) -> None:
    # "s0" to "s5" in a name: TOSA's data sets, which the generator makes for a thousand results or more.
    tests = [test for item in declared if item.tests.operator == operator for test in item.chosen]
    sets = {test.dtypes for test in tests if test.listed.name[-3:-1] == "_s" and not test.listed.special}
    assert sets >= set(FLOATS)


@pytest.mark.parametrize("operator", sorted(set(not_covered()) & operators() - UNTESTED))
def test_what_is_left_out_cannot_be_converted(operator: str) -> None:
    maker = Generator(Options(operator, version="1.1.0"))
    test = maker.write(maker.listed()[-1].name)
    with pytest.raises(Refusal, match="refuses the graph"):
        convert(test.tosa)


@pytest.mark.parametrize("operator", sorted(UNTESTED))
def test_what_has_no_tests_has_none(operator: str) -> None:
    assert Generator(Options(operator, version="1.1.0")).listed() == []
