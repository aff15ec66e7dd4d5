"""Attempts to have a bad driver accepted: each with its hashes right, each refused for what it is."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.qualification.conftest import DEVICE, platform, submission
from tests.qualification.tamper import Lines, cases, lines, reseal, runs, shard_with, statement, write
from vgf_conformance.cli import main
from vgf_conformance.packs.pack import Pack
from vgf_conformance.qualification import layout
from vgf_conformance.qualification.verification import Verification
from vgf_conformance.qualification.verify import verify
from vgf_conformance.targets.capabilities import Device
from vgf_conformance.targets.vulkan import LAYERS
from vgf_conformance.vocabulary import VGF_TARGETS

TODAY = datetime.date(2026, 11, 30)
SUITE = "suites/operators/test_small.py"
PAIR, NARROW = f"{SUITE}::pair[rank2-FP-none]", f"{SUITE}::narrow[row-FP+bf16-none]"
ABSOLUTE = f"{SUITE}::absolute[rank1-INT-a8w8-pc]"
WHOLE = "shard-1-of-1"
LACKS_BF16 = f"{DEVICE} lacks tensors of bfloat16 in data graphs"

Tamper = Callable[[Path], None]


@pytest.fixture(scope="session")
def whole_once(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return submission(small, tmp_path_factory.mktemp("whole") / "submission", "Faithful", 1)


@pytest.fixture
def whole(whole_once: Path, tmp_path: Path) -> Path:
    """A submission of one shard whose cases all pass, to tamper with."""
    return Path(shutil.copytree(whole_once, tmp_path / "whole"))


def verified(folder: Path, pack: Pack, *mandatory: str, allow: bool = False) -> Verification:
    found = verify(folder, pack, mandatory, TODAY, allow_waived_mandatory=allow)
    assert all(reason.isprintable() for reason in found.reasons)
    assert not any("fault of the harness" in reason for reason in found.reasons)
    return found


def refused(folder: Path, pack: Pack, words: str) -> list[str]:
    reasons = verified(folder, pack).reasons
    assert any(words in reason for reason in reasons), reasons
    return reasons


# Ways to change things.


def told(name: str, **changes: Any) -> Tamper:
    """Change the records of a case in both runs."""

    def change(documents: Lines) -> None:
        for document in cases(documents):
            if document["case"] == name:
                document.update(changes)

    return lambda shard: runs(shard, change)


def started(**changes: Any) -> Tamper:
    """Change the run lines of both runs."""

    def change(documents: Lines) -> None:
        for document in documents:
            if document["type"] == "run":
                document.update(changes)

    return lambda shard: runs(shard, change)


def stated(**changes: Any) -> Tamper:
    return lambda shard: statement(shard, **changes)


def reported(change: Callable[[dict[str, Any]], object]) -> Tamper:
    """Change the capability report."""

    def tamper(shard: Path) -> None:
        report = json.loads((shard / "capabilities.json").read_text())
        change(report)
        (shard / "capabilities.json").write_text(json.dumps(report))
        reseal(shard)

    return tamper


def together(*tampers: Tamper) -> Tamper:
    def tamper(shard: Path) -> None:
        for one in tampers:
            one(shard)

    return tamper


def without_outputs(name: str, **changes: Any) -> Tamper:
    """The same as told, of a case that then has no outputs; the files go too."""
    return together(told(name, outputs=[], **changes), drop_unnamed)


def drop_unnamed(shard: Path) -> None:
    named = {
        output["sha256"]
        for run in ("run1.jsonl", "run2.jsonl")
        for document in cases(lines(shard / run))
        for call in (*document["outputs"], *document["visible"])
        for output in call
    }
    for path in (shard / "outputs").iterdir():
        if path.stem not in named:
            path.unlink()
    reseal(shard)


def put(shard: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    (shard / "outputs" / f"{digest}.npy").write_bytes(content)
    return digest


def npy(array: np.ndarray) -> bytes:  # type: ignore[type-arg]
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def output(content: Callable[[bytes], bytes], dtype: str = "float32") -> Tamper:
    """Give the first output of ``pair`` another content in both runs."""

    def tamper(shard: Path) -> None:
        (record,) = (item for item in cases(lines(shard / "run1.jsonl")) if item["case"] == "pair")
        old = (shard / "outputs" / f"{record['outputs'][0][0]['sha256']}.npy").read_bytes()
        digest = put(shard, content(old))

        def named(documents: Lines) -> None:
            for document in cases(documents):
                if document["case"] == "pair":
                    document["outputs"][0][0].update(sha256=digest, dtype=dtype)

        runs(shard, named)
        drop_unnamed(shard)

    return tamper


def loaded(content: bytes) -> np.ndarray:  # type: ignore[type-arg]
    return np.load(io.BytesIO(content))


def outputs_of(documents: Lines) -> dict[str, Any]:
    return {document["case"]: document["outputs"] for document in cases(documents)}


def swapped_within(documents: Lines) -> None:
    for document in cases(documents):
        if document["case"] == "pair":
            document["outputs"][0].reverse()


def swapped_between(documents: Lines) -> None:
    there = outputs_of(documents)
    for document in cases(documents):
        if document["case"] != "pair":
            document["outputs"] = there["narrow" if document["case"] == "absolute" else "absolute"]


def added_call(documents: Lines) -> None:
    for document in cases(documents):
        document["outputs"] += document["outputs"]


def added_output(documents: Lines) -> None:
    for document in cases(documents):
        document["outputs"][0] += document["outputs"][0][:1]


def another_run_line(documents: Lines) -> Lines:
    second = {**documents[0], "device": {**documents[0]["device"], "device_uuid": "00"}}
    return [*documents[:3], second, *documents[3:]]


def times(written: str) -> Callable[[Lines], None]:
    def change(documents: Lines) -> None:
        cases(documents)[0]["written"] = written

    return change


def copied(shard: Path) -> None:
    """The second run is the first."""
    shutil.copy(shard / "run1.jsonl", shard / "run2.jsonl")
    shutil.copy(shard / "run1.log", shard / "run2.log")
    reseal(shard)


def another_target(target: str, layers: list[str], words: str) -> Tamper:
    """All there is on another target, and over other layers."""

    def change(documents: Lines) -> None:
        for document in documents:
            if document["type"] == "run":
                document.update(targets=[target], layers={target: words})
            elif document["type"] == "plan":
                document["cases"] = [case.replace("-emulation]", f"-{target}]") for case in document["cases"]]
            else:
                document["id"] = document["id"].replace("-emulation]", f"-{target}]")
                document.update(target=target, driver=f"fake, {words}" * (target == "vulkan") or "fake")

    return together(
        lambda shard: runs(shard, change),
        reported(lambda report: report.update(layers=layers)),
        stated(target=target, layers=words),
    )


def twice_named(shard: Path) -> None:
    """A record with two verdicts: some readers take the first, others the last."""
    for name in ("run1.jsonl", "run2.jsonl"):
        text = (shard / name).read_text()
        (shard / name).write_text(text.replace('"verdict":"pass"', '"verdict":"fail","verdict":"pass"'))
    reseal(shard)


def two_targets(shard: Path) -> None:
    text = (shard / "statement.json").read_text()
    (shard / "statement.json").write_text(text.replace('"target"', '"target": "vulkan", "target"', 1))


def left_out(documents: Lines) -> Lines:
    """A case that was not run, for want of something."""
    (pair,) = (item for item in cases(documents) if item["case"] == "pair")
    absent = {"type": "not_run", "id": pair["id"], "reason": "no package"}
    return [absent if item is pair else item for item in documents]


def no_log(shard: Path) -> None:
    (shard / "run2.log").unlink()
    reseal(shard)


def misnamed(shard: Path) -> None:
    """A right output's name on a wrong output."""
    for path in (shard / "outputs").iterdir():
        path.write_bytes(npy(np.zeros((3, 5), np.float32)))
    reseal(shard)


def claimed(documents: Lines) -> Lines:
    return [*documents, {"type": "claims", "claims": []}]


def planned_less(documents: Lines) -> None:
    for document in documents:
        if document["type"] == "plan":
            document["cases"] = document["cases"][1:]


HEADER = b"\x93NUMPY\x01\x00\x76\x00"


def header(text: str) -> bytes:
    return HEADER + text.encode().ljust(0x75) + b"\n"


HUGE = header("{'descr': '|S0', 'fortran_order': False, 'shape': (10000000000000,), }")
CALL = header("{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (3, 5), }")[:-9]
FOLDED = header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (15,), }") + bytes(60)
NEGATIVE = header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -15), }") + bytes(60)
NO_LAYERS, TENSOR = "no emulation layers", "emulation layers: tensor"
CAPABLE = {"verdict": "unsupported", "stage": "run", "finding": "capability"}

TAMPERS: dict[str, tuple[Tamper, str]] = {
    # Endings that no run has.
    **{
        f"capability_beside_{verdict}": (
            without_outputs("pair", verdict=verdict, stage="run", finding="capability", message=LACKS_BF16),
            f"{PAIR[:-1]}-emulation]: no case ends as verdict {verdict}, stage run, finding capability",
        )
        for verdict in ("crash", "fail", "timeout", "error", "pass")
    },
    "unsupported_for_another_reason": (
        without_outputs("pair", **{**CAPABLE, "finding": "invalid"}),
        "no case ends as verdict unsupported, stage run, finding invalid",
    ),
    "unsupported_when_it_was_lowered": (
        without_outputs("pair", **{**CAPABLE, "stage": "lower"}),
        "no case ends as verdict unsupported, stage lower, finding capability",
    ),
    "a_pass_with_a_finding": (
        told("pair", finding="wrong"),
        "no case ends as verdict pass, stage none, finding",
    ),
    "a_pass_without_outputs": (
        without_outputs("pair"),
        "pass, with outputs of 0 of 1 calls: such a case has",
    ),
    "a_crash_with_outputs": (
        told("pair", verdict="crash", stage="run", finding="crashed"),
        "crash at run (crashed), with outputs of 1 of 1 calls: such a case has those of 0",
    ),
    "a_failure_without_outputs": (
        without_outputs("pair", verdict="fail", stage="run", finding="wrong"),
        "fail at run (wrong), with outputs of 0 of 1 calls",
    ),
    # What the device supports.
    "unsupported_though_the_device_can": (
        without_outputs("narrow", **CAPABLE, message=LACKS_BF16),
        f"{NARROW}: unsupported in the results, but the device can by its capability report",
    ),
    "another_lack_than_the_reports": (
        together(
            without_outputs("narrow", **CAPABLE, message=f"{DEVICE} lacks the will"),
            reported(lambda report: report["device"].update(formats=["float32", "int8"])),
        ),
        f"says '{DEVICE} lacks the will', the capability report '{LACKS_BF16}'",
    ),
    "an_extension_taken_out_of_the_report": (
        reported(lambda report: report["device"]["extensions"].pop("VK_ARM_tensors")),
        f"{DEVICE} lacks VK_ARM_tensors (with emulation layers: graph and tensor), so no case can run",
    ),
    "a_format_taken_out_of_the_report": (
        reported(lambda report: report["device"].update(formats=["float32", "int8"])),
        f"pass in the results, but by the capability report unsupported at run (capability): {LACKS_BF16}",
    ),
    "a_feature_that_all_cases_need_taken_out": (
        together(
            without_outputs("pair", **CAPABLE, message=f"{DEVICE} lacks shaderInt8"),
            reported(lambda report: report["device"]["features"].update(shaderInt8=False)),
        ),
        f"{ABSOLUTE[:-1]}-emulation]: pass in the results, but by the capability report unsupported",
    ),
    "a_crash_where_nothing_would_have_run": (
        together(
            without_outputs("narrow", verdict="crash", stage="run", finding="crashed"),
            reported(lambda report: report["device"].update(formats=["float32", "int8"])),
        ),
        "crash at run (crashed) in the results, but by the capability report unsupported",
    ),
    "the_report_of_another_device": (
        reported(lambda report: [report[part].update(name="Fake 9001") for part in ("identity", "device")]),
        "the capability report is of another device: {'vendor_id': 1, 'device_id': 2, 'name': 'Fake 9001'",
    ),
    "a_report_under_anothers_identity": (
        reported(lambda report: report["device"].update(name="Fake 9001")),
        "capabilities.json: $.identity: ",
    ),
    "a_report_that_says_less": (
        reported(lambda report: report["device"].pop("driver_uuid")),
        "capabilities.json: $.device: not what this version writes",
    ),
    "a_report_that_says_more": (
        reported(lambda report: report["device"].update(certified=True)),
        "capabilities.json: $.device: not what this version says of a device",
    ),
    # Layers and target.
    "no_layers_in_the_report": (
        reported(lambda report: report.update(layers=[])),
        "the capability report is of other layers than the statement's: no emulation layers",
    ),
    "no_layers_in_the_statement": (stated(layers=NO_LAYERS), "the capability report is of other layers"),
    "no_layers_in_the_run_lines": (
        started(layers={"emulation": NO_LAYERS}),
        "run1.jsonl: run with another layers than the statement's: {'emulation': 'no emulation layers'}",
    ),
    "emulation_without_layers": (
        another_target("emulation", [], NO_LAYERS),
        "no run on the target emulation has these layers: none",
    ),
    "the_tensor_layer_alone": (
        another_target("vulkan", ["Tensor"], TENSOR),
        "no run on the target vulkan has these layers: Tensor",
    ),
    "the_same_layer_twice": (
        another_target("vulkan", ["Graph", "Graph"], "emulation layers: graph and graph"),
        "no run on the target vulkan has these layers: Graph and Graph",
    ),
    "a_target_that_does_not_exist": (
        another_target("bogus", ["Graph", "Tensor"], "emulation layers: graph and tensor"),
        "statement.json: $.target: 'bogus' is not one of ['emulation', 'vulkan']",
    ),
    "the_reference_model_as_the_driver": (
        another_target("reference", ["Graph", "Tensor"], "emulation layers: graph and tensor"),
        "statement.json: $.target: 'reference' is not one of",
    ),
    "vulkan_in_the_statement_alone": (
        stated(target="vulkan"),
        "run with another target than the statement's: ['emulation'], not ['vulkan']",
    ),
    "a_record_of_another_target": (
        told("pair", target="vulkan"),
        "its target is 'vulkan', should be 'emulation'",
    ),
    # Driver, device, runs.
    "a_record_of_another_driver": (
        told("pair", driver="lvp_icd"),
        "its driver is 'lvp_icd', should be 'fake'",
    ),
    "run_lines_of_another_driver": (
        started(
            driver={"manifest": "lvp_icd", "device": DEVICE, "driver": "fakes 1.0", "api": "Vulkan 1.3.0"}
        ),
        "run with another driver than the capability report's",
    ),
    "run_lines_of_two_devices": (
        lambda shard: runs(shard, another_run_line),
        "run1.jsonl: run with another device than the statement's",
    ),
    "run_lines_without_a_device": (
        started(device={}),
        "run with another device than the statement's: {}",
    ),
    "another_product_was_run": (started(product="Phone 8"), "run with another product than the statement's"),
    "another_system_was_run_on": (started(os="Another"), "run with another os than the statement's: Another"),
    "the_second_run_is_the_first": (copied, "run2.jsonl: begun at "),
    "records_older_than_their_run": (
        lambda shard: runs(shard, times("2001-01-01T00:00:00.000+00:00")),
        "run1.jsonl: its times run backwards: 2001-01-01",
    ),
    "records_without_a_time": (lambda shard: runs(shard, times("")), "run1.jsonl: '' is no time"),
    "another_plan": (lambda shard: runs(shard, planned_less), "its plan is not the pack's list of cases"),
    "a_case_not_run": (
        lambda shard: runs(shard, left_out),
        "a submission has no not_run lines",
    ),
    "claims_of_a_backend": (lambda shard: runs(shard, claimed), "a submission has no claims lines"),
    "two_verdicts_in_a_record": (twice_named, "the name 'verdict' is there twice in one object"),
    "two_targets_in_the_statement": (two_targets, "the name 'target' is there twice in one object"),
    "a_case_told_as_of_another_file": (
        told("pair", suite="operators/test_other.py"),
        "its suite is 'operators/",
    ),
    "delegates_of_another_graph": (told("pair", delegates=[]), "its delegates is [], in the pack [Delegate"),
    "no_log": (no_log, "run2.log: missing"),
    # Outputs.
    "outputs_swapped_in_a_case": (
        lambda shard: runs(shard, swapped_within),
        "pass in the results, but by its outputs fail at run (wrong)",
    ),
    "outputs_swapped_between_cases": (
        lambda shard: runs(shard, swapped_between),
        "absolute[rank1-INT-a8w8-pc-emulation]: pass in the results, but by its outputs fail at run (wrong)",
    ),
    "outputs_of_a_call_that_is_none": (lambda shard: runs(shard, added_call), "with outputs of 2 of 1 calls"),
    "an_output_too_many": (lambda shard: runs(shard, added_output), "names 3 outputs of call 0, should be 2"),
    "payloads_of_nan": (
        output(lambda old: npy(np.full((3, 5), 0x7FC01234, np.uint32).view(np.float32))),
        "pass in the results, but by its outputs fail at run (wrong)",
    ),
    "a_narrower_type": (
        output(lambda old: npy(loaded(old).astype(np.float16)), "float16"),
        "fail at run (wrong): output 0: float16, should be float32",
    ),
    "a_wider_type_under_the_right_name": (
        output(lambda old: npy(loaded(old).astype(np.float64))),
        "holds float64, should be float32",
    ),
    "a_type_that_is_none": (output(lambda old: old, "iinfo"), "outputs[0][0].dtype: 'iinfo' is not one of"),
    "another_shape": (
        output(lambda old: npy(loaded(old).T.copy())),
        "output 0: shape [5, 3], should be [3, 5]",
    ),
    "a_scalar_for_all_elements": (
        output(lambda old: npy(loaded(old)[0, 0])),
        "output 0: shape [], should be",
    ),
    "another_order_of_axes": (
        output(lambda old: npy(np.asfortranarray(loaded(old)))),
        "not written as qualify writes outputs",
    ),
    "bytes_after_the_output": (output(lambda old: old + b"\0"), "bytes of data, its header says 60"),
    "a_header_that_asks_for_terabytes": (output(lambda old: HUGE), "outputs/"),
    "a_header_that_calls": (output(lambda old: CALL), "is no .npy file"),
    "a_record_of_fields": (output(lambda old: FOLDED), "holds no plain numbers"),
    "a_negative_shape": (output(lambda old: NEGATIVE), "outputs/"),
    "outputs_under_other_names": (misnamed, "its SHA-256 is not that of its name"),
}


@pytest.mark.parametrize("name", TAMPERS)
def test_a_tampered_submission_is_refused(name: str, whole: Path, pack: Pack) -> None:
    tamper, words = TAMPERS[name]
    tamper(whole / WHOLE)
    refused(whole, pack, words)


# A driver that fails.


def good_outputs(failing: Path, whole: Path, *names: str) -> None:
    """Give the records of ``pair`` in these runs of a failing driver the outputs of a good one."""
    right = outputs_of(lines(whole / WHOLE / "run1.jsonl"))["pair"]
    shutil.copytree(whole / WHOLE / "outputs", failing / WHOLE / "outputs", dirs_exist_ok=True)
    for name in names:
        documents = lines(failing / WHOLE / name)
        for document in cases(documents):
            if document["case"] == "pair":
                document["outputs"] = right
        write(failing / WHOLE / name, documents)
    drop_unnamed(failing / WHOLE)


def test_the_reference_models_outputs_beside_a_failure(failing: Path, whole: Path, pack: Pack) -> None:
    good_outputs(failing, whole, "run1.jsonl", "run2.jsonl")
    refused(failing, pack, "pair[rank2-FP-none-emulation]: fail in the results, but by its outputs pass")


def test_right_outputs_in_the_first_run_alone(failing: Path, whole: Path, pack: Pack) -> None:
    good_outputs(failing, whole, "run1.jsonl")
    refused(failing, pack, "pair[rank2-FP-none-emulation]: the two runs gave other outputs")


def test_a_second_run_that_passes(failing: Path, pack: Pack) -> None:
    documents = lines(failing / WHOLE / "run2.jsonl")
    for document in cases(documents):
        document.update(verdict="pass", stage=None, finding=None, message="")
    write(failing / WHOLE / "run2.jsonl", documents)
    reseal(failing / WHOLE)
    reasons = refused(failing, pack, "fail at run (wrong) in the first run, pass in the second")
    assert f"{PAIR}: fail, and no waiver says why" in reasons


@pytest.mark.parametrize("finding", ["unwritten", "unrepeatable", "dependent"])
def test_what_only_the_run_sees_is_a_failure_all_the_same(finding: str, whole: Path, pack: Pack) -> None:
    told("pair", verdict="fail", stage="run", finding=finding)(whole / WHOLE)
    assert verified(whole, pack).reasons == [f"{PAIR}: fail, and no waiver says why"]


def test_a_record_that_says_it_was_foreseen(failing: Path, pack: Pack) -> None:
    told("pair", unexpected=False, expected="known", expectation_note="all is well")(failing / WHOLE)
    assert verified(failing, pack).reasons == [f"{PAIR}: fail, and no waiver says why"]


# Shards.


def test_the_whole_beside_a_part(sound: Path, whole: Path, pack: Pack) -> None:
    shutil.copytree(whole / WHOLE, sound / WHOLE)
    refused(sound, pack, "shards of 1 and of 2: a submission is split in one way")


def test_a_record_in_both_shards(sound: Path, pack: Pack) -> None:
    there = shard_with(sound, "pair")
    (other,) = set(sound.glob("shard-*")) - {there}
    for name in ("run1.jsonl", "run2.jsonl"):
        (record,) = (item for item in cases(lines(there / name)) if item["case"] == "pair")
        record["written"] = lines(other / name)[-1]["written"]
        write(other / name, [*lines(other / name), record])
    shutil.copytree(there / "outputs", other / "outputs", dirs_exist_ok=True)
    drop_unnamed(other)
    refused(sound, pack, "pair[rank2-FP-none-emulation]: no case of this shard")


def test_a_mandatory_case_in_a_shard_that_is_not_there(sound: Path, pack: Pack) -> None:
    shutil.rmtree(shard_with(sound, "pair"))
    assert any("is missing: " in reason for reason in verified(sound, pack, PAIR).reasons)


def test_a_shard_under_another_number(sound: Path, pack: Pack) -> None:
    shutil.rmtree(sound / "shard-1-of-2")
    (sound / "shard-2-of-2").rename(sound / "shard-1-of-2")
    refused(sound, pack, "shard 1/2: the statement is of shard 2/2")


def test_one_of_thousands_of_shards(whole: Path, pack: Pack) -> None:
    (whole / WHOLE).rename(whole / "shard-1-of-9999")
    start = time.monotonic()
    found = verified(whole, pack)
    assert time.monotonic() - start < 5
    assert len(found.reasons) > 9998
    assert len(found.lines()) == 52
    assert found.lines()[-2:] == [f"... and {len(found.reasons) - 50} more reasons", "refused"]


# Waivers.


def waiver(case: str = PAIR, *more: str, **changes: str) -> str:
    fields = {
        "case": f'"{case}"',
        "device": f'"{DEVICE}"',
        "reason": '"exp is NaN for all"',
        "link": '"https://example.org/1"',
        "expires": "2027-11-30",
        **changes,
    }
    return "\n".join(["[[waiver]]", *(f"{name} = {value}" for name, value in fields.items()), *more, ""])


PATTERN = f"{SUITE}::*"

WAIVERS: dict[str, tuple[str, str]] = {
    "a_pattern_without_a_count": (
        waiver(PATTERN),
        "is a pattern: say with cases = N how many cases it matches",
    ),
    "a_pattern_with_another_count": (
        waiver(PATTERN, cases="2"),
        "says that it matches 2 cases, but it matches 3",
    ),
    "a_count_of_zero": (waiver(PATTERN, cases="0"), "is a pattern: say with cases = N"),
    "a_count_that_is_true": (waiver(PATTERN, cases="true"), "waiver 1: cases is no integer"),
    "a_count_beside_a_case": (waiver(cases="1"), "cases is for patterns"),
    "more_than_it_says": (waiver(PATTERN, cases="3"), f"stale: {ABSOLUTE} passes"),
    "a_part_of_a_name": (waiver(PAIR[:-1]), "matches no case of the pack"),
    "a_case_with_a_line_after_it": (waiver(PAIR + "\\n"), "case is not one line of printable text"),
    "a_case_with_a_blank_after_it": (waiver(PAIR + " "), "case is not one line of printable text"),
    "a_letter_that_looks_alike": (waiver(PAIR.replace("pair", "p\\u0430ir")), "matches no case of the pack"),
    "a_letter_without_width": (
        waiver(PAIR.replace("pair", "pa\\u200bir")),
        "case is not one line of printable",
    ),
    "a_class_of_letters": (waiver(PAIR.replace("pair", "[p]air")), "matches no case of the pack"),
    "a_reason_of_blanks": (waiver(reason='"   "'), "waiver 1: reason is no text"),
    "a_reason_of_one_letter": (waiver(reason='"x"'), "reason has 1 characters: it takes 5 to 1000"),
    "a_reason_without_end": (waiver(reason=f'"{"x" * 2000}"'), "reason has 2000 characters"),
    "a_reason_that_sets_a_title": (waiver(reason='"\\u001b]0;accepted\\u0007"'), "reason is not one line of"),
    "a_link_that_is_a_script": (waiver(link='"javascript:alert(1)"'), "link is no address of a web page"),
    "a_link_to_a_file": (waiver(link='"file:///etc/passwd"'), "link is no address of a web page"),
    "a_link_without_a_host": (waiver(link='"https:///1"'), "link is no address of a web page"),
    "a_link_with_a_blank": (waiver(link='"https://example.org/a b"'), "link is no address of a web page"),
    "for_ever": (waiver(expires="9999-12-31"), "expires on 9999-12-31: it may hold until 2028-11-30"),
    "no_longer": (waiver(expires="2026-11-29"), "expired on 2026-11-29"),
    "twice": (waiver() * 2, f"2 waivers for {PAIR}: one is enough"),
    "a_case_and_its_pattern": (
        waiver() + waiver(PAIR.replace("rank2", "*"), cases="1"),
        f"waivers 1 and 2 both match {PAIR}: one is enough",
    ),
    "a_hundred_and_one": (
        "".join(waiver(f"{PAIR}{number}") for number in range(101)),
        "101 waivers, where 100",
    ),
    "twenty_thousand": (waiver() * 20_000, "is too large: "),
    "nested_without_end": (".".join(["a"] * 50_000) + " = 1", "nested deeper than 64 levels"),
    "for_another_device": (waiver(device='"Fake 9001"'), f"for the device Fake 9001, but this is {DEVICE}"),
    "a_field_of_their_own": (waiver(PAIR, 'severity = "none"'), "and for a pattern cases, and nothing else"),
}


@pytest.mark.parametrize("name", WAIVERS)
def test_a_waiver_that_does_not_hold(name: str, failing: Path, pack: Pack) -> None:
    content, words = WAIVERS[name]
    (failing / "waivers.toml").write_text(content)
    start = time.monotonic()
    reasons = refused(failing, pack, words)
    assert time.monotonic() - start < 5
    assert all("waiver" in reason for reason in reasons)


def test_a_waiver_is_counted_first(failing: Path, pack: Pack) -> None:
    (failing / "waivers.toml").write_text(waiver())
    assert verified(failing, pack).lines() == [
        "accepted with 1 waiver: target emulation (emulation layers: graph and tensor), 1 waived, 0 "
        f"unsupported by the device, 3 cases: a fake driver on {DEVICE}, fakes 1.0"
    ]


def test_a_mandatory_case_is_not_waived(failing: Path, pack: Pack) -> None:
    (failing / "waivers.toml").write_text(waiver(PAIR.replace("rank2", "*"), cases="1"))
    assert verified(failing, pack, PAIR).reasons == [
        f"{PAIR}: fail, and mandatory: no waiver excuses it (--allow-waived-mandatory)"
    ]
    found = verified(failing, pack, PAIR, allow=True)
    assert "accepted with 1 waiver: " in found.summary()
    assert "1 waived (1 of them mandatory)" in found.summary()


def test_all_crash_and_one_waiver(whole: Path, pack: Pack) -> None:
    def crashed(documents: Lines) -> None:
        for document in cases(documents):
            document.update(verdict="crash", stage="run", finding="crashed", outputs=[])

    runs(whole / WHOLE, crashed)
    shutil.rmtree(whole / WHOLE / "outputs")
    reseal(whole / WHOLE)
    (whole / "waivers.toml").write_text(waiver("*", cases="3"))
    found = verified(whole, pack, PAIR)
    assert [reason.partition(":")[2] for reason in found.reasons] == [
        ":pair[rank2-FP-none]: crash, and mandatory: no waiver excuses it (--allow-waived-mandatory)"
    ]


def test_a_waiver_for_what_the_device_does_not_support(whole: Path, pack: Pack) -> None:
    without_outputs("narrow", **CAPABLE, message=LACKS_BF16)(whole / WHOLE)
    reported(lambda report: report["device"].update(formats=["float32", "int8"]))(whole / WHOLE)
    found = verified(whole, pack)
    assert "accepted: target emulation" in found.summary()
    assert "0 waived, 1 unsupported by the device, 3 cases" in found.summary()
    (whole / "waivers.toml").write_text(waiver(NARROW))
    refused(whole, pack, f"stale: {NARROW} is unsupported by the device, and needs none")


# Reasons that are true, few and quick.


def test_a_statement_that_cannot_be_read_is_the_only_reason(failing: Path, pack: Pack) -> None:
    (failing / "waivers.toml").write_text(waiver())
    (failing / WHOLE / "statement.json").write_text("{")
    (reason,) = verified(failing, pack).reasons
    assert reason.startswith("shard 1/1: statement.json: not JSON")


@pytest.mark.parametrize(
    ("name", "words"),
    [("capabilities.json", "capabilities.json: not JSON"), ("run1.jsonl", "run1.jsonl:1: not JSON")],
)
def test_a_file_that_cannot_be_read_is_the_only_reason(
    name: str, words: str, whole: Path, pack: Pack
) -> None:
    (whole / WHOLE / name).write_text("{\n")
    reseal(whole / WHOLE)
    (reason,) = verified(whole, pack).reasons
    assert reason.startswith(f"shard 1/1: {words}")


def test_megabytes_of_newlines_are_one_reason(whole: Path, pack: Pack) -> None:
    (whole / WHOLE / "run1.jsonl").write_bytes(b"\n" * (3 << 20))
    reseal(whole / WHOLE)
    start = time.monotonic()
    (reason,) = verified(whole, pack).reasons
    assert time.monotonic() - start < 5
    assert reason == "shard 1/1: run1.jsonl:1: not JSON: Expecting value: line 2 column 1 (char 1)"


def repeated(line: dict[str, Any], count: int) -> Callable[[Lines], Lines]:
    return lambda documents: [documents[0], *[line] * count, *documents[1:]]


def test_lines_without_end(whole: Path, pack: Pack) -> None:
    runs(whole / WHOLE, repeated({"type": "plan", "cases": []}, 20_000))
    refused(whole, pack, "run1.jsonl:10001: more than 10000 starts")


def test_records_without_end(whole: Path, pack: Pack) -> None:
    (record, *_) = cases(lines(whole / WHOLE / "run1.jsonl"))
    runs(whole / WHOLE, repeated(record, 100))
    refused(whole, pack, "more than twice as many records as the pack has cases, 3")


def test_files_without_end(whole: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ENTRY_LIMIT", 7)
    for number in range(8):
        (whole / WHOLE / "outputs" / f"{number}.npy").write_bytes(b"")
    (reason,) = verified(whole, pack).reasons
    assert reason == f"shard 1/1: {WHOLE}/outputs: holds more than 7 files"


PIPES = (
    "waivers.toml",
    *(f"{WHOLE}/{name}" for name in ("statement.json", "capabilities.json", "run1.jsonl")),
)


@pytest.fixture(params=[*PIPES, f"{WHOLE}/run1.log"])
def pipe(request: pytest.FixtureRequest, whole: Path) -> Iterator[Path]:
    """A pipe in place of a file: who opens it waits for ever."""
    path = whole / str(request.param)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    yield path


def test_a_pipe_is_not_waited_for(pipe: Path, whole: Path, pack: Pack) -> None:
    reasons = verified(whole, pack).reasons
    (reason,) = (reason for reason in reasons if pipe.name in reason)
    assert "no plain file" in reason


@pytest.mark.parametrize("name", [WHOLE, f"{WHOLE}/outputs", f"{WHOLE}/run1.jsonl", "waivers.toml"])
def test_a_link_is_not_followed(name: str, whole: Path, tmp_path: Path, pack: Pack) -> None:
    path = whole / name
    if path.exists():
        shutil.move(path, tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").write_text(waiver())
    path.symlink_to(tmp_path / "elsewhere")
    reasons = verified(whole, pack).reasons
    assert any("link" in reason or "no file of a submission" in reason for reason in reasons), reasons


def test_the_command_prints_fifty_reasons(
    whole: Path, small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mandatory = tmp_path / "mandatory.txt"
    mandatory.write_text("".join(f"case {number}\n" for number in range(60)))
    command = ["submission", "verify", str(whole), "--pack", str(small), "--mandatory", str(mandatory)]
    assert main(command) == 1
    out = capfd.readouterr().out.splitlines()
    assert len(out) == 52
    assert out[-2:] == ["... and 10 more reasons", "refused"]


@pytest.mark.parametrize("name", ["pipe", "loop", "x" * 5000, "file"])
def test_a_folder_that_is_none(
    name: str, small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    assert main(["submission", "verify", str(tmp_path / name), "--pack", str(small)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("vgf-conformance: ")


def test_the_schemas_know_what_a_statement_and_a_report_hold() -> None:
    folder = resources.files("vgf_conformance.qualification")
    statement, report = (
        json.loads(folder.joinpath(name).read_text("utf-8"))["properties"]
        for name in ("schema.json", "capabilities.json")
    )
    assert statement["target"]["enum"] == list(VGF_TARGETS)
    assert report["layers"]["items"]["enum"] == list(LAYERS)
    assert report.keys() == platform().to_json().keys()
    assert report["device"]["properties"].keys() == {item.name for item in dataclasses.fields(Device)}
