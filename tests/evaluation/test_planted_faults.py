"""Faults planted in a target, in the TOSA graph and in the quantised program: caught and attributed."""

from __future__ import annotations

import dataclasses
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from executorch.backends.arm.vgf.model_converter import (
    model_converter_env,
    require_model_converter_executable,
)

from tests.fakes import COUNT_FILE
from tests.subjects import FP, INT, randn, request, subject
from vgf_conformance.cases.case import OPERATOR_BUDGET
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.lowering.program import Program
from vgf_conformance.results.record import Record
from vgf_conformance.targets.process import ProcessTarget, reference_target
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

WRONG, CRASHED = Finding.WRONG, Finding.CRASHED


def two_outputs(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.exp(x), x + 1.5


#: What the faults of tests.fakes strike, and a case of one output that they spare.
PLANTED = subject(two_outputs, randn(3, 5), sample="planted")
SQUARE = subject(two_outputs, randn(4, 4), sample="square")
SOUND = subject(torch.sigmoid, randn(3, 5), sample="sound")

Evaluate = Callable[..., Record]


@pytest.fixture(scope="module")
def evaluate(cache: Cache) -> Iterator[Evaluate]:
    """Evaluate a subject on a fake target; the reference is real and shared."""
    reference = reference_target()
    opened: dict[str, Evaluator] = {}

    def run(fake: str, subject: Subject, profile: Profile = FP, scheme: str = "none") -> Record:
        if fake not in opened:
            target = ProcessTarget("fake", f"tests.fakes:{fake}", driver="fake driver", time_limit=3)
            opened[fake] = Evaluator({"reference": reference, "fake": target}, cache)
        return opened[fake].evaluate(subject, profile, scheme, "fake")

    yield run
    for evaluator in opened.values():
        evaluator.close()


def caught(record: Record) -> tuple[Verdict, Stage | None, Finding | None]:
    return record.verdict, record.stage, record.finding


@pytest.mark.parametrize(
    ("fake", "finding", "message"),
    [
        ("DropsLast", WRONG, "delegate 0 gave 1 outputs, should be 2"),
        ("ReturnsNone", WRONG, "delegate 0 gave 0 outputs, should be 2"),
        ("ReturnsExtra", WRONG, "delegate 0 gave 3 outputs, should be 2"),
        ("ReturnsNan", WRONG, "output 0, 15 of 15 elements, worst at [0, 0]: nan, should be "),
        ("OffByTenthOfRms", WRONG, "output 0, 1 of 15 elements, worst at [1, 2]: "),
        ("Transposed", WRONG, "delegate 0, output 0 has shape [5, 3], should be [3, 5]"),
        ("WrongDtype", WRONG, "output 0: float16, should be float32"),
        ("LeavesTail", Finding.UNWRITTEN, "delegate 0, output 0: 4 of 15 elements were never written"),
        (
            "RepeatsDifferently",
            Finding.UNREPEATABLE,
            "delegate 0, output 1: two runs on the same inputs differ",
        ),
    ],
)
def test_a_lying_target_fails_at_run(fake: str, finding: Finding, message: str, evaluate: Evaluate) -> None:
    record = evaluate(fake, PLANTED)
    assert caught(record) == (Verdict.FAIL, Stage.RUN, finding)
    assert record.message.startswith(message)
    assert record.driver == "fake driver"
    assert evaluate(fake, SOUND).verdict is Verdict.PASS


def two_delegates(x: torch.Tensor) -> torch.Tensor:
    one, other = two_outputs(x)
    return torch.sort(one)[0] * 2.0 + torch.sort(other)[0]


def test_each_delegate_is_judged_on_what_it_was_given(evaluate: Evaluate) -> None:
    """What the first delegate got wrong reaches the second, which is right all the same."""
    record = evaluate("OffByTenthOfRms", subject(two_delegates, randn(3, 5)))
    assert caught(record) == (Verdict.FAIL, Stage.RUN, WRONG)
    judged = {
        (item.delegate, item.output): item.passed
        for item in record.comparisons
        if item.pair == "fake/reference"
    }
    assert judged == {("delegate 0", 0): False, ("delegate 0", 1): True, ("delegate 1", 0): True}
    (final,) = (item for item in record.comparisons if item.pair == "fake/eager")
    assert final.metrics is not None
    assert final.metrics.differing > 0


def test_transposed_axes_of_a_square_are_wrong_values(evaluate: Evaluate) -> None:
    record = evaluate("Transposed", SQUARE)
    assert caught(record) == (Verdict.FAIL, Stage.RUN, WRONG)
    assert record.message.startswith("output 0, 12 of 16 elements, worst at ")


def test_one_step_off_in_int(evaluate: Evaluate) -> None:
    record = evaluate("OffByOneStep", PLANTED, INT, "a8w8-pc")
    assert caught(record) == (Verdict.FAIL, Stage.RUN, WRONG)
    assert record.message.startswith("output 0, 1 of 15 elements, worst at [1, 2]: ")
    judged = next(item for item in record.comparisons if item.pair == "fake/reference" and item.output == 0)
    assert (judged.rule, judged.passed) == ("exact", False)
    assert judged.metrics is not None
    assert judged.metrics.max_abs == 1
    assert evaluate("OffByOneStep", SOUND, INT, "a8w8-pc").verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("fake", "what", "words"),
    [
        ("CrashesWithSigill", "the worker was ended by SIGILL", "last words of a driver"),
        ("CrashesWithSigsegv", "the worker was ended by SIGSEGV", "Segmentation fault"),
        ("Exits", "the worker ended with exit status 3", ""),
    ],
)
def test_a_crash_is_a_verdict_and_the_worker_restarts(
    fake: str, what: str, words: str, evaluate: Evaluate
) -> None:
    assert evaluate(fake, SOUND).verdict is Verdict.PASS
    record = evaluate(fake, PLANTED)
    assert caught(record) == (Verdict.CRASH, Stage.RUN, CRASHED)
    assert record.message == what
    assert words in record.log
    assert evaluate(fake, SOUND).verdict is Verdict.PASS


def wait_for_end(process: int, seconds: float = 30) -> None:
    """Wait until a child has ended; that it did is left for its parent to find."""
    end = time.monotonic() + seconds
    while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_crash_between_two_cases_is_told(
    evaluate: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COUNT_FILE, str(tmp_path / "workers"))
    assert evaluate("CrashesLater", PLANTED).verdict is Verdict.PASS
    wait_for_end(int((tmp_path / "workers").read_text().splitlines()[-1]))
    record = evaluate("CrashesLater", SOUND)
    assert caught(record) == (Verdict.CRASH, Stage.RUN, CRASHED)
    assert record.message == "the worker was ended by SIGSEGV, after the run before this one"
    assert evaluate("CrashesLater", SOUND).verdict is Verdict.PASS


def test_a_hang_is_a_timeout_and_the_worker_restarts(evaluate: Evaluate) -> None:
    record = evaluate("Hangs", PLANTED)
    assert caught(record) == (Verdict.TIMEOUT, Stage.RUN, Finding.HUNG)
    assert record.message == "no answer within 3 s: the worker was killed"
    assert record.log.endswith("still compiling")
    assert evaluate("Hangs", SOUND).verdict is Verdict.PASS


def test_a_runner_that_raises_is_an_error(evaluate: Evaluate) -> None:
    record = evaluate("Raises", PLANTED)
    assert caught(record) == (Verdict.ERROR, Stage.RUN, Finding.RAISED)
    assert record.message == "RuntimeError: the device was lost"
    assert "Traceback" in record.log
    assert evaluate("Raises", SOUND).verdict is Verdict.PASS


def test_a_runner_that_refuses_is_unsupported(evaluate: Evaluate) -> None:
    record = evaluate("Refuses", PLANTED)
    assert caught(record) == (Verdict.UNSUPPORTED, Stage.RUN, Finding.INVALID)
    assert record.message == "no such operator here"


def test_a_faithful_target_passes(evaluate: Evaluate) -> None:
    """The other end of every test above: without its fault the same case passes."""
    for subject_, profile, scheme in ((PLANTED, FP, "none"), (SQUARE, FP, "none"), (PLANTED, INT, "a8w8-pc")):
        record = evaluate("Faithful", subject_, profile, scheme)
        assert (record.verdict, record.message) == (Verdict.PASS, "")


def converted(tosa: bytes, folder: Path) -> bytes:
    """The VGF that the model converter makes of a TOSA graph."""
    source, result = folder / "changed.tosa", folder / "changed.vgf"
    source.write_bytes(tosa)
    command = [str(require_model_converter_executable()), "-i", str(source), "-o", str(result)]
    subprocess.run(command, check=True, capture_output=True, env=model_converter_env())
    return result.read_bytes()


def with_changed_number(artifact: Artifact, old: float, new: float, folder: Path) -> Artifact:
    """The artifact with one fp32 number of its TOSA graph changed, and its VGF made anew."""
    (delegate,) = artifact.delegates
    before, after = struct.pack("<f", old), struct.pack("<f", new)
    assert delegate.tosa.count(before) == 1
    tosa = delegate.tosa.replace(before, after)
    changed = dataclasses.replace(delegate, tosa=tosa, vgf=converted(tosa, folder))
    return dataclasses.replace(artifact, delegates=(changed,))


@pytest.fixture
def faulty_lowering(tmp_path: Path, evaluator: Evaluator) -> Callable[[Artifact], Evaluator]:
    """An evaluator whose lowering gives the artifact that it is told: through the cache, under its key."""

    def make(artifact: Artifact) -> Evaluator:
        cache = Cache(tmp_path / "cache")
        cache.put(artifact.key, artifact)
        return Evaluator(evaluator._targets, cache)

    return make


@pytest.mark.parametrize(
    ("function", "old", "new", "message"),
    [
        pytest.param(lambda x: x + 0.8125, 0.8125, 0.875, "15 of 15 elements", id="constant"),
        pytest.param(lambda x: x.clamp(-0.5, 0.8125), 0.8125, 0.875, "of 15 elements", id="attribute"),
    ],
)
def test_a_changed_tosa_graph_is_attributed_to_lower(
    function: Callable[[torch.Tensor], torch.Tensor],
    old: float,
    new: float,
    message: str,
    cache: Cache,
    tmp_path: Path,
    faulty_lowering: Callable[[Artifact], Evaluator],
) -> None:
    x = randn(3, 5)
    artifact = lower(request(function, x), cache)
    faulty = faulty_lowering(with_changed_number(artifact, old, new, tmp_path))
    for target in ("reference", "emulation"):
        record = faulty.evaluate(subject(function, x), FP, "none", target)
        assert caught(record) == (Verdict.FAIL, Stage.LOWER, WRONG)
        assert message in record.message
        # The device computes what it was given.
        device = [item.passed for item in record.comparisons if item.pair == "emulation/reference"]
        assert device == ([True] if target == "emulation" else [])


def test_a_vgf_that_differs_from_its_tosa_graph_is_attributed_to_run(
    cache: Cache, tmp_path: Path, faulty_lowering: Callable[[Artifact], Evaluator]
) -> None:
    x = randn(3, 5)
    artifact = lower(request(lambda x: x + 0.8125, x), cache)
    changed = with_changed_number(artifact, 0.8125, 0.875, tmp_path).delegates[0].vgf
    (delegate,) = artifact.delegates
    other = dataclasses.replace(artifact, delegates=(dataclasses.replace(delegate, vgf=changed),))
    record = faulty_lowering(other).evaluate(subject(lambda x: x + 0.8125, x), FP, "none", "emulation")
    assert caught(record) == (Verdict.FAIL, Stage.RUN, WRONG)
    assert record.message.startswith("output 0, 15 of 15 elements")


def with_doubled_scales(program: Program) -> Program:
    """Every dequantisation by a step twice as large."""
    steps = [
        dataclasses.replace(step, args=(step.args[0], float(step.args[1]) * 2, *step.args[2:]))
        if "dequantize_per_tensor" in step.operator
        else step
        for step in program.steps
    ]
    assert steps != list(program.steps)
    return dataclasses.replace(program, steps=tuple(steps))


def test_a_changed_scale_is_attributed_to_quantise(
    cache: Cache, faulty_lowering: Callable[[Artifact], Evaluator]
) -> None:
    x = randn(3, 5)
    artifact = lower(request(torch.sigmoid, x, profile=INT, scheme="a8w8-pc"), cache)
    assert artifact.quantised is not None
    faulty = faulty_lowering(dataclasses.replace(artifact, quantised=with_doubled_scales(artifact.quantised)))
    budgeted = subject(torch.sigmoid, x, budget=OPERATOR_BUDGET)
    for target in ("reference", "emulation"):
        record = faulty.evaluate(budgeted, INT, "a8w8-pc", target)
        assert caught(record) == (Verdict.FAIL, Stage.QUANTISE, WRONG)
        assert record.message.startswith("convert: output 0, ")
        assert record.quantise_fault is not None
        assert record.quantise_fault.step == "convert"
        (missed,) = (item.message for item in record.comparisons if item.pair == "quantised/eager")
        assert missed.endswith("dB against eager, the case asks for 20 dB")


def test_a_scale_calibrated_too_wide_is_attributed_to_quantise(evaluator: Evaluator) -> None:
    """Through the real quantizer: every later stage is right, and only the budget is missed."""
    x = randn(3, 5)
    wide = [(x * 100,)]
    budgeted = subject(torch.nn.functional.relu, x, calibration=wide, budget=OPERATOR_BUDGET)
    record = evaluator.evaluate(budgeted, INT, "a8w8-pc", "emulation")
    assert caught(record) == (Verdict.FAIL, Stage.QUANTISE, WRONG)
    assert {item.pair for item in record.comparisons if item.passed is False} == {"quantised/eager"}
    unbudgeted = subject(torch.nn.functional.relu, x, calibration=wide)
    assert evaluator.evaluate(unbudgeted, INT, "a8w8-pc", "emulation").verdict is Verdict.PASS


def test_what_the_reference_model_cannot_judge_is_no_pass(cache: Cache) -> None:
    crashing = ProcessTarget("reference", "tests.fakes:CrashesWithSigsegv", time_limit=3)
    sound = ProcessTarget("fake", "tests.fakes:Faithful", driver="fake driver", time_limit=3)
    evaluator = Evaluator({"reference": crashing, "fake": sound}, cache)
    try:
        record = evaluator.evaluate(PLANTED, FP, "none", "fake")
    finally:
        evaluator.close()
    assert (record.verdict, record.stage, record.finding) == (Verdict.ERROR, Stage.RUN, CRASHED)
    assert record.message.startswith("fake ran, but nothing can judge it: ")
