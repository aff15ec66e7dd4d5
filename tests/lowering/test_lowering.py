"""Lowering through the real backend: what is delegated, what is left over, and how failures read."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from executorch.backends.arm.quantizer import VgfQuantizer

from tests.subjects import INT, Function, randn, request, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.causes import describe, innermost, whole
from vgf_conformance.lowering.lower import Request, lower
from vgf_conformance.lowering.program import NotRepresentable, function, operator_name, read_program
from vgf_conformance.lowering.tensors import from_numpy, from_physical, port_of, to_numpy, to_physical
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

X = randn(2, 3)


def failure(asked: Request, cache: Cache | None = None) -> LoweringFailure:
    with pytest.raises(LoweringFailure) as caught:
        lower(asked, cache)
    return caught.value


def kind(failure: LoweringFailure) -> tuple[Verdict, Stage, Finding]:
    return failure.verdict, failure.stage, failure.finding


def test_leftovers_name_the_operator_and_the_partitioners_reason(cache: Cache) -> None:
    artifact = lower(request(lambda x: torch.sort(torch.exp(x))[0] * 2.0, X), cache)
    assert len(artifact.delegates) == 2
    assert artifact.nodes_delegated == 2
    assert [node.operator for node in artifact.leftovers] == ["aten.sort.default"]
    assert (
        artifact.leftovers[0].reason
        == "Not included in BaseTOSASupportList or a registered tosa_support_check"
    )


def test_an_artifact_says_what_it_was_made_with(cache: Cache) -> None:
    artifact = lower(request(torch.abs, X, profile=INT, scheme="a8w8-pc"), cache)
    assert artifact.leftovers == ()
    assert set(artifact.seconds) == {"export", "quantise", "lower"}
    assert {
        "torch",
        "executorch",
        "ai-ml-sdk-model-converter",
        "files of executorch",
    } <= artifact.versions.keys()
    (scale,) = artifact.output_scales
    assert scale == pytest.approx(float(X.abs().max()) / 255, rel=0.6)
    assert artifact.quantised is not None
    assert lower(request(torch.abs, X), cache).output_scales == (None,)


def script(folder: Path, content: str) -> str:
    path = folder / "converter"
    path.write_text(content)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("#!/no/such/interpreter\n", "FileNotFoundError: "),
        ("\x7fELF for another machine", "OSError: [Errno 8] Exec format error"),
        ("#!/bin/sh\nexit 127\n", "exit status 127: it says nothing"),
        (
            "#!/bin/sh\necho \"converter: /lib/libc.so.6: version 'GLIBC_2.38' not found\" >&2\nexit 1\n",
            "exit status 1: converter: /lib/libc.so.6: version 'GLIBC_2.38' not found",
        ),
    ],
)
def test_a_converter_that_does_not_launch_is_no_fault_of_the_model(
    content: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_CONVERTER_PATH", script(tmp_path, content))
    cache = Cache(tmp_path / "cache")
    found = failure(request(torch.abs, X), cache)
    assert kind(found) == (Verdict.ERROR, Stage.CONVERT, Finding.RAISED)
    assert found.message.startswith(f"the model converter does not launch: {why}")
    assert "Traceback" in found.log
    # It is not kept: once the converter is mended the same model lowers.
    assert not (tmp_path / "cache").exists()


def without_converter(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    # Set before it is taken away: whatever lowering sets it to is then undone too.
    monkeypatch.setenv("MODEL_CONVERTER_PATH", "")
    monkeypatch.delenv("MODEL_CONVERTER_PATH")
    monkeypatch.setenv("PATH", str(folder))


def test_an_environment_that_is_not_activated_has_its_converter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_converter(monkeypatch, tmp_path)
    assert len(lower(request(torch.abs, X)).delegates) == 1


def test_no_converter_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_converter(monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    found = failure(request(torch.abs, X))
    assert kind(found) == (Verdict.ERROR, Stage.CONVERT, Finding.RAISED)
    assert "does not launch: Unable to locate a model converter executable" in found.message


def test_a_rejected_graph_is_kept_with_the_converters_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Cache
) -> None:
    converter = script(tmp_path, "#!/bin/sh\necho 'error: no legalization for this' >&2\nexit 1\n")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", converter)
    found = failure(request(torch.abs, X))
    assert kind(found) == (Verdict.FAIL, Stage.CONVERT, Finding.RAISED)
    assert found.message == "the model converter rejects the TOSA graph: error: no legalization for this"
    assert f"Repro command:\n  {converter} " in found.log
    assert found.seconds["lower"] > 0
    monkeypatch.delenv("MODEL_CONVERTER_PATH")
    (delegate,) = lower(request(torch.abs, X), cache).delegates
    assert found.tosa == delegate.tosa


def test_a_converter_that_rejects_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_CONVERTER_PATH", script(tmp_path, "#!/bin/sh\nexit 1\n"))
    found = failure(request(torch.abs, X))
    assert kind(found) == (Verdict.FAIL, Stage.CONVERT, Finding.RAISED)
    assert found.message == "the model converter rejects the TOSA graph: it does not say why"


def test_a_converter_that_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_CONVERTER_PATH", script(tmp_path, "#!/bin/sh\nkill -SEGV $$\n"))
    found = failure(request(torch.abs, X))
    assert kind(found) == (Verdict.CRASH, Stage.CONVERT, Finding.CRASHED)
    assert found.message == "the model converter was ended by SIGSEGV"
    assert found.tosa[4:8] == b"TOSA"


def test_a_converter_failure_becomes_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator
) -> None:
    monkeypatch.setenv("MODEL_CONVERTER_PATH", script(tmp_path, "#!/no/such/interpreter\n"))
    uncached = Evaluator(evaluator._targets)
    record = uncached.evaluate(subject(torch.abs, X), Profile.parse("FP"), "none", "emulation")
    assert (record.verdict, record.stage) == (Verdict.ERROR, Stage.CONVERT)
    assert record.message.startswith("the model converter does not launch: ")


@pytest.mark.parametrize(
    ("words", "stage", "finding"),
    [
        ("'tosa.abs' op failed to verify that input is a tensor of its kind", Stage.LOWER, Finding.INVALID),
        ("'tosa.transpose' op expected output tensor dim 2 to match", Stage.LOWER, Finding.INVALID),
        ("failed to legalize operation 'tosa.abs'", Stage.CONVERT, Finding.RAISED),
    ],
)
def test_an_operator_that_tosa_does_not_have_is_the_lowerings_fault(
    words: str,
    stage: Stage,
    finding: Finding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    evaluator: Evaluator,
) -> None:
    monkeypatch.setenv(
        "MODEL_CONVERTER_PATH", script(tmp_path, f'#!/bin/sh\necho "error: {words}" >&2\nexit 1\n')
    )
    record = Evaluator(evaluator._targets).evaluate(
        subject(torch.abs, X), Profile.parse("FP"), "none", "reference"
    )
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, stage, finding)
    assert record.message == f"the model converter rejects the TOSA graph: error: {words}"


def test_nan_in_calibration_data_is_an_input_fault() -> None:
    bad = X.clone()
    bad[1, 2] = float("nan")
    found = failure(request(torch.abs, X, profile=INT, scheme="a8w8-pc", calibration=[(X,), (bad,)]))
    assert kind(found) == (Verdict.ERROR, Stage.QUANTISE, Finding.INPUT)
    assert found.message == "calibration data: input 0 of set 1 holds NaN; calibrate on real values"


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def test_control_flow_gets_a_clean_verdict(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(subject(Branching(), X), Profile.parse("FP"), "none", "emulation")
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.LOWER, Finding.RAISED)
    assert record.message.startswith("ValueError: Unsupported type: torch.int64 (executorch/backends/arm/")


def test_what_export_refuses_is_said_in_one_line() -> None:
    def unruly(x: torch.Tensor) -> torch.Tensor:
        return x if float(x.sum()) > 0 else -x

    found = failure(request(unruly, X))
    assert kind(found) == (Verdict.ERROR, Stage.EXPORT, Finding.RAISED)
    assert "Could not guard on data-dependent expression" in found.message
    assert "\n" not in found.message
    assert "Traceback" in found.log


def test_a_quantizer_that_raises_fails_at_quantise(monkeypatch: pytest.MonkeyPatch) -> None:
    def annotate(*_: object) -> None:
        raise RuntimeError("no such layer")

    monkeypatch.setattr(VgfQuantizer, "annotate", annotate)
    found = failure(request(torch.abs, X, profile=INT, scheme="a8w8-pc"))
    assert kind(found) == (Verdict.FAIL, Stage.QUANTISE, Finding.RAISED)
    assert found.message.startswith("RuntimeError: no such layer")


def test_a_hook_that_raises_is_bad_input() -> None:
    def configure(_: object) -> None:
        raise RuntimeError("no such layer")

    found = failure(request(torch.abs, X, profile=INT, scheme="a8w8-pc", configure_quantizer=configure))
    assert kind(found) == (Verdict.ERROR, Stage.QUANTISE, Finding.INPUT)
    assert "configure_quantizer() raises RuntimeError: no such layer" in found.message


def raised(error: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:
        error()
    return caught.value


def test_the_innermost_cause_speaks() -> None:
    def outer() -> None:
        try:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("explicit") from error
        except ValueError:
            raise RuntimeError("An error occurred when running the 'Fold' pass after [a, b, c]")  # noqa: B904

    error = raised(outer)
    assert str(innermost(error)) == "'first'"
    assert describe(error) == "KeyError: 'first'"
    assert "An error occurred" in whole(error)


def test_a_cause_is_one_line_without_fxs_context() -> None:
    text = "expected  int8\nbut got int16\n\nWhile executing %add : call_function\nOriginal traceback:\n x"
    assert describe(ValueError(text)) == "ValueError: expected int8 but got int16"
    assert describe(ValueError()) == "ValueError"
    assert len(describe(ValueError("x" * 5000))) < 500


def test_a_cause_names_the_place_in_the_package() -> None:
    error = raised(lambda: Profile.parse("FP") and to_numpy(torch.zeros(1).to("meta")))
    assert "\n" not in describe(error)
    import jsonschema

    error = raised(lambda: jsonschema.validate(1, {"type": "string"}))
    assert describe(error).endswith(" in validate)")
    assert "(jsonschema/validators.py:" in describe(error)


DTYPES = [
    *(torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)], ids=str)
def test_tensors_survive_numpy(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = (randn(*shape) * 2).to(dtype)
    array = to_numpy(tensor)
    assert array.shape == shape
    assert array.dtype.name == str(dtype).removeprefix("torch.")
    again = from_numpy(array)
    assert again.dtype == dtype
    assert torch.equal(again.float(), tensor.float())


@pytest.mark.parametrize(
    "tensor",
    [
        pytest.param(randn(4, 6).T, id="transposed"),
        pytest.param(randn(2, 3, 4, 5).to(memory_format=torch.channels_last), id="channels_last"),
        pytest.param(randn(2, 3, 4, 5, 6).permute(4, 2, 0, 1, 3), id="rank 5"),
        pytest.param(randn(), id="rank 0"),
    ],
)
def test_tensors_travel_in_memory_order(tensor: torch.Tensor) -> None:
    port = port_of(tensor)
    physical = to_physical(tensor, port)
    assert physical.shape == port.physical_shape
    assert physical.ravel().tolist() == tensor.as_strided((tensor.numel(),), (1,)).tolist()
    assert torch.equal(from_physical(physical, port), tensor)


def test_operators_are_found_again_by_name() -> None:
    exported = torch.export.export(Function(lambda x: torch.sort(x + 1)[0]), (X,))
    program, delegates = read_program(exported)
    assert delegates == []
    assert [step.operator for step in program.steps] == [
        "aten.add.Tensor",
        "aten.sort.default",
        "_operator:getitem",
        "_operator:getitem",
    ]
    assert function("aten.add.Tensor") is torch.ops.aten.add.Tensor
    assert torch.equal(program.walk([X])[0], torch.sort(X + 1)[0])
    with pytest.raises(NotRepresentable, match="is no operator"):
        operator_name("add")


def test_the_suites_converter_is_the_real_one() -> None:
    """The tests above replace the converter; without that, what runs is the SDK's."""
    from executorch.backends.arm.vgf.model_converter import require_model_converter_executable

    answer = subprocess.run(
        [str(require_model_converter_executable()), "--version"], capture_output=True, check=True, text=True
    )
    assert "model-converter" in answer.stdout or "model_converter" in answer.stdout or "0.11" in answer.stdout
