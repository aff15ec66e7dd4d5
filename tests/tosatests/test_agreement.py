"""Our comparison against the verifier on planted results: a sample, and judges that are wrong on purpose."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vgf_conformance.comparison import bounds
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.targets.process import reference_target
from vgf_conformance.tosatests.agreement import Agreement, agreement, main, report
from vgf_conformance.tosatests.declare import TosaTests, listed, tosa_tests
from vgf_conformance.tosatests.evaluate import TosaEvaluator
from vgf_conformance.tosatests.explained import EXPLAINED, Difference

SUITES = Path(__file__).parents[2] / "suites" / "tosa"


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TosaEvaluator]:
    made = TosaEvaluator({"reference": reference_target()}, Cache(tmp_path_factory.mktemp("cache")))
    yield made
    made.close()


def compared(evaluator: TosaEvaluator, tests: TosaTests) -> Agreement:
    total = Agreement()
    for test in tests.choose(listed(tests)):
        total.add(agreement(evaluator.prepared(tests, test), tests, test))
    return total


def test_the_judges_agree_on_a_sample(capfd: pytest.CaptureFixture[str]) -> None:
    files = [str(SUITES / f"test_{name}.py") for name in ("arithmetic", "logic", "reduce")]
    assert main([*files, "--every", "60"]) == 0
    out, err = capfd.readouterr()
    assert "0 unexplained" in out
    assert int(out.splitlines()[-1].split()[0]) > 150
    # What the verifier says of each refusal is not shown.
    assert "Verifier" not in err


@pytest.mark.parametrize(
    ("factor", "said"), [(1.5, "passes by our comparison"), (0.7, "fails by our comparison")]
)
def test_a_wrong_limit_is_found_out(
    evaluator: TosaEvaluator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    said: str,
) -> None:
    tests = tosa_tests("EXP", ["fp32"], each=1, special=0)
    right = compared(evaluator, tests)
    assert report(right, EXPLAINED, complete=False) == 0
    assert right.checks > 20
    monkeypatch.setitem(bounds.UNARY, "EXP", lambda *call: factor * bounds.exp(*call))
    wrong = compared(evaluator, tests)
    assert report(wrong, EXPLAINED, complete=False) == 1
    assert all(found.what.endswith(f"end at {place(found)}") for found in wrong.differences)
    assert said in capsys.readouterr().out


def place(found: Difference) -> str:
    return found.what.rpartition(" ")[2]


def test_a_wrong_limit_on_the_mean_is_found_out(
    evaluator: TosaEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = tosa_tests("MATMUL", ["fp16"], each=1, special=0, sizes=(11, 20))
    assert report(compared(evaluator, tests), EXPLAINED, complete=False) == 0
    monkeypatch.setattr(bounds, "DOT_PRODUCT_VARIANCE", 3.2)
    differences = compared(evaluator, tests).differences
    assert "all outside the mean square" in {found.what for found in differences}


FOUND = Difference(
    operator="COS",
    test="fp32-cos",
    dtype="float32",
    what="inside the low end at 0",
    output=0,
    ours=True,
    value=1 - 0.9 * 2.0**-11,
    exact=1.0,
    error=2.0**-11,
    attributes={},
    compliance={"mode": "ABS_ERROR"},
)


def explained(**change: Any) -> bool:
    found = dataclasses.replace(FOUND, **change)
    return any(item.covers(found) for item in EXPLAINED)


def test_an_explanation_covers_no_more_than_it_says() -> None:
    # The verifier's bound is 2^-11.5 = 0.7071 * 2^-11.
    assert explained()
    assert not explained(value=1 - 0.7 * 2.0**-11)
    assert not explained(ours=False)
    assert not explained(operator="EXP")
    assert not explained(dtype="float16")
    assert not explained(compliance={"mode": "ULP"})


def test_a_number_that_no_rounding_gives() -> None:
    change: dict[str, Any] = {"operator": "CEIL", "ours": False, "error": 0.0, "compliance": {"mode": "ULP"}}
    assert explained(value=float(np.nextafter(np.float32(1), np.float32(0))), **change)
    assert not explained(value=1.0, **change)


def test_a_stale_explanation_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    total = Agreement(checks=1, combinations={("COS", "fp32", "cos"), ("SIN", "fp32", "sin")})
    assert report(total, EXPLAINED, complete=False) == 0
    assert report(total, EXPLAINED, complete=True) == 1
    assert capsys.readouterr().out.count("stale: nothing is explained by") == 1
    total.differences.append(FOUND)
    assert report(total, EXPLAINED, complete=True) == 0
    assert (
        "explained: 1 of COS by 'half of an odd number of fraction bits', ours right"
        in capsys.readouterr().out
    )
