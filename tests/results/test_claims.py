from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.results.records import record
from tests.results.test_record_schema import SCHEMA
from vgf_conformance.results.claims import (
    Claim,
    Computation,
    Gaps,
    Source,
    load_reasons,
    observed,
    with_reasons,
)
from vgf_conformance.results.merge import Results, merge
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.vocabulary import UserError

ADD = "aten.add.Tensor"


def claim(dtype: str = "float32", profile: str = "FP", mode: str = "none", operator: str = ADD) -> Claim:
    return Claim(operator, profile, dtype, mode, Source.BOTH)


@pytest.mark.parametrize(
    ("profile", "scheme", "dtypes", "kinds"),
    [
        ("FP", "none", ["float32"], {"FP float32"}),
        # Each dtype of the sample.
        ("FP", "none", ["bool", "float32"], {"FP bool", "FP float32"}),
        # An extension belongs to its profile, written in full or not.
        ("FP+bf16", "none", ["bfloat16"], {"FP bfloat16"}),
        ("TOSA-1.1+FP+shape", "none", ["float32"], {"FP float32"}),
        ("INT+int16", "a16w8", ["int16"], {"INT int16 a16w8"}),
        ("INT+int4", "a8w4", ["int4"], {"INT int4 a8w4"}),
        # The scheme without its granularity.
        ("INT", "a8w8-pc", ["int8"], {"INT int8 a8w8"}),
        ("INT", "a8w8-pt", ["int8", "int64"], {"INT int8 a8w8", "INT int64 a8w8"}),
        # Nothing to quantise: the mode makes no difference to int8, and only to that.
        ("INT", "none", ["int8"], {"INT int8", "INT int8 a8w8"}),
        ("INT", "none", ["int32"], {"INT int32"}),
    ],
)
def test_what_a_lowering_observes(profile: str, scheme: str, dtypes: list[str], kinds: set[str]) -> None:
    found = {item.kind for item in observed(ADD, profile, scheme, dtypes)}
    assert found == kinds | {f"{next(iter(kinds))[:3].strip()} any"}


@pytest.mark.parametrize("profile", ["FP+INT", "FP+INT+int16", "", "made up"])
def test_a_profile_that_is_both_or_neither_observes_nothing(profile: str) -> None:
    assert observed(ADD, profile, "none", ["float32"]) == set()


def test_gaps_name_what_is_unexplained_and_what_is_stale() -> None:
    claims = [claim(), claim("float16"), claim("bfloat16"), claim("bool")]
    gaps = Gaps.of(
        claims,
        covered={claim().computation, claim("bool").computation},
        reasons={
            claim("float16").computation: "why",
            claim("bool").computation: "covered after all",
            claim("int4").computation: "not claimed",
        },
    )
    assert gaps.covered_share == 0.5
    assert [item.dtype for item in gaps.uncovered] == ["bfloat16", "float16"]
    assert [item.dtype for item in gaps.unexplained] == ["bfloat16"]
    assert [item.dtype for item in gaps.stale] == ["bool", "int4"]


ENTRY = """
[[uncovered]]
profile = "FP"
dtype = "float32"
mode = "none"
reason = "torch refuses it"
operators = ["aten.add.Tensor", "aten.sub.Tensor"]
"""


def test_reasons_are_read_by_operator(tmp_path: Path) -> None:
    path = tmp_path / "uncovered.toml"
    assert load_reasons(path) == {}
    path.write_text(ENTRY)
    reasons = load_reasons(path)
    assert [str(item) for item in reasons] == ["aten.add.Tensor FP float32", "aten.sub.Tensor FP float32"]
    assert [item.reason for item in with_reasons([claim(), claim("bool")], reasons)] == [
        "torch refuses it",
        "",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY * 2, r"uncovered.toml, entry 2: aten.add.Tensor FP float32 is named twice"),
        (ENTRY.replace("reason =", "because ="), r"entry 1: because, reason: an entry has"),
        (ENTRY.replace('"FP"', "1"), r"entry 1: profile: an entry has the texts"),
        (ENTRY.replace('"torch refuses it"', '""'), r"entry 1: the reason and the list"),
        (
            ENTRY.replace('["aten.add.Tensor", "aten.sub.Tensor"]', '"aten.add.Tensor"'),
            r"entry 1: the reason",
        ),
        ("[[uncovered", r"uncovered.toml: "),
    ],
)
def test_malformed_reasons_are_user_errors(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "uncovered.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load_reasons(path)


def test_schema_has_the_fields_and_words_of_a_claim() -> None:
    schema = SCHEMA["$defs"]["claim"]["properties"]
    assert list(schema) == [field.name for field in dataclasses.fields(Claim)]
    assert schema["source"]["enum"] == [source.value for source in Source]


def test_claims_travel_with_the_records(tmp_path: Path) -> None:
    claims = [claim("float16"), dataclasses.replace(claim("bool"), reason="why")]
    for _ in range(2):  # a resumed run writes them again
        with ResultsWriter(tmp_path, {}) as writer:
            writer.append_claims(claims)
            writer.append(record())
    found = read_results([tmp_path])
    assert found.claims == sorted(claims)
    assert len(found.records) == 1


def test_claims_of_shards_are_joined() -> None:
    explained = dataclasses.replace(claim(), reason="why")
    joined = merge([Results(claims=[claim("int4"), claim()]), Results(), Results(claims=[explained])])
    assert joined.claims == [explained, claim("int4")]


def test_a_file_of_schema_1_is_read(tmp_path: Path) -> None:
    """Its records have no dtypes, its delegates none of their operators, and it has no claims."""
    document = record(case="old").to_json()
    del document["dtypes"]
    document["delegates"] = [
        {"name": "d", "nodes": 1, "tosa_operators": {"ADD": 1}, "tosa_bytes": 1, "vgf_bytes": 1}
    ]
    lines = ['{"type":"run","schema":1}', json.dumps(document)]
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n")
    found = read_results([tmp_path])
    assert found.claims == []
    assert found.records[0].dtypes == []
    assert found.records[0].delegates[0].tosa_dtypes == {}


def test_a_computation_says_itself() -> None:
    assert str(Computation(ADD, "INT", "int8", "a8w8")) == "aten.add.Tensor INT int8 a8w8"
    assert str(Computation(ADD, "FP", "", "")) == "aten.add.Tensor FP any"
