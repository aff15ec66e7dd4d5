from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

import jsonschema
import numpy
import pytest

from tests.results.records import record
from vgf_conformance.results.record import (
    Comparison,
    DelegateFacts,
    FirstWrong,
    Leftover,
    Metrics,
    NotRun,
    OutputDigest,
    Record,
    Score,
    Sensitivity,
    TaskResult,
)
from vgf_conformance.results.store import schema_refusal
from vgf_conformance.vocabulary import Finding, Stage, Verdict

SCHEMA = json.loads(resources.files("vgf_conformance.results").joinpath("schema.json").read_text("utf-8"))


def full_record() -> Record:
    metrics = Metrics(
        elements=16,
        differing=3,
        max_abs=0.402,
        max_ulp=float("inf"),
        sqnr_db=float("-inf"),
        worst_index=(0, 6),
        worst_actual=float("nan"),
        worst_expected=0.0,
    )
    return record(
        verdict=Verdict.FAIL,
        stage=Stage.LOWER,
        finding=Finding.WRONG,
        comparisons=[
            Comparison("reference/quantised", Stage.LOWER, 0, False, "exact", metrics, float("inf"), "d0"),
            Comparison("emulation/reference", Stage.RUN, 0, None, "reported", None),
        ],
        outputs=[[OutputDigest("bfloat16", "0" * 64)]],
        delegates=[DelegateFacts("d0", 12, {"CONV2D": 2}, 100, 200)],
        leftovers=[Leftover("aten.topk.default", "not supported")],
        first_wrong=FirstWrong(
            Stage.RUN, "d0", "CONV2D", 3, "aten.conv2d.default", "exact", "off", "folder", ["CONV2D 3"]
        ),
        sensitivity=Sensitivity(9, 2, 6, ["one element zeroed in output 0: within the tolerance"]),
        task=TaskResult(
            *("PSNR", "dB", 9, "95 %, bootstrap", 0.5, "seen"), [Score("eager", float("inf"), 1.0, 2.0)]
        ),
        about={"source": "here", "licence": "MIT", "weights": "none"},
        pte_bytes=17,
        seconds={"lower": 0.5},
        log="last words \\udc80 \u2028",
    )


def test_schema_is_a_valid_2020_12_schema() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("definition", "kind", "extra"),
    [
        ("case", Record, {"type"}),
        ("comparison", Comparison, set()),
        ("metrics", Metrics, set()),
        ("delegate", DelegateFacts, set()),
        ("output", OutputDigest, set()),
        ("leftover", Leftover, set()),
        ("first_wrong", FirstWrong, set()),
        ("sensitivity", Sensitivity, set()),
        ("task", TaskResult, set()),
        ("score", Score, set()),
        ("not_run", NotRun, {"type"}),
    ],
)
def test_schema_has_the_fields_of_the_dataclass(definition: str, kind: Any, extra: set[str]) -> None:
    fields = {field.name for field in dataclasses.fields(kind)}
    assert set(SCHEMA["$defs"][definition]["properties"]) == fields | extra


def test_schema_has_the_words_of_the_vocabulary() -> None:
    case = SCHEMA["$defs"]["case"]["properties"]
    assert case["verdict"]["enum"] == [verdict.value for verdict in Verdict]
    assert SCHEMA["$defs"]["stage"]["enum"] == [stage.value for stage in Stage]
    assert case["stage"]["enum"] == [*(stage.value for stage in Stage), None]
    assert case["finding"]["enum"] == [*(finding.value for finding in Finding), None]


def test_a_full_record_survives_json_and_the_schema() -> None:
    line = json.dumps(full_record().to_json(), allow_nan=False)
    document = json.loads(line)
    assert schema_refusal(document) is None
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    # nan != nan, but both sides print it alike
    assert repr(Record.from_json(document)) == repr(full_record())


def test_numpy_scalars_become_plain_numbers() -> None:
    metrics = Metrics(1, 1, max_abs=numpy.float32("inf"), max_lsb=numpy.float32(2))  # type: ignore[arg-type]
    document = record(comparisons=[Comparison("a/b", Stage.RUN, 0, True, "exact", metrics)]).to_json()
    assert document["comparisons"][0]["metrics"]["max_abs"] == "inf"
    assert json.dumps(document["comparisons"][0]["metrics"]["max_lsb"]) == "2.0"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"verdict": "xfail"}, "$.verdict"),
        ({"stage": "link"}, "$.stage"),
        ({"surprise": 1}, "surprise"),
        ({"seconds": {"lower": -1}}, "$.seconds.lower"),
        ({"comparisons": [{"pair": "a/b"}]}, "$.comparisons[0]"),
        ({"delegates": [{"name": "d"}]}, "$.delegates[0]"),
        ({"notes": "one"}, "$.notes"),
        ({"id": ""}, "$.id"),
    ],
)
def test_schema_refuses_and_says_where(change: dict[str, Any], where: str) -> None:
    refusal = schema_refusal({**full_record().to_json(), **change})
    assert refusal is not None
    assert where in refusal


def test_a_number_may_be_text_only_where_json_has_none() -> None:
    document = full_record().to_json()
    document["comparisons"][0]["headroom"] = "a lot"
    assert "headroom" in str(schema_refusal(document))


@pytest.mark.parametrize("line", [None, [], 3])
def test_a_line_that_is_no_object_is_refused(line: Any) -> None:
    assert schema_refusal(line) == "a line has to be a JSON object"


@pytest.mark.parametrize("line", [{}, {"type": "end"}, {"type": []}, {"type": "x" * 1000}])
def test_a_line_of_no_known_kind_is_refused(line: Any) -> None:
    assert "expected one of run, plan, claims, not_run, case" in str(schema_refusal(line))
