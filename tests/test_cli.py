"""The command line: exit codes, one message for each kind of bad input, one JSON document."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from tests import executor_runner
from tests.results.records import record
from tests.subjects import randn, request
from vgf_conformance import __version__
from vgf_conformance.cli import main
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.results.record import SCHEMA_VERSION
from vgf_conformance.results.store import ResultsWriter, schema_refusal
from vgf_conformance.targets.runtime_choice import LIBRARY
from vgf_conformance.vocabulary import Stage, Verdict

GOOD = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.abs(x)

def model():
    return Model()

def inputs():
    return (torch.randn(2, 3),)

profiles = ["FP"]
"""

#: The converter folds x * 1.0 onto the input: its VGF has an output that nothing writes.
#: Of two equal outputs the emulation layers write the last alone.
BAD = GOOD.replace("torch.abs(x)", "(torch.relu(x), x.clamp(min=0.0))")

#: Lowered to a shader of the backend's own, which the reference model does not run.
SHADER = """
import torch

class Model(torch.nn.Module):
    def forward(self, image, grid):
        return torch.nn.functional.grid_sample(image, grid, align_corners=False)

def model():
    return Model()

def inputs():
    return torch.randn(1, 3, 4, 4), torch.rand(1, 2, 2, 2) - 0.5

profiles = ["FP"]
"""


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command here; file descriptors are captured, so that no library's word is missed."""

    def call(*arguments: object) -> Answer:
        capfd.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as left:
            assert isinstance(left.code, int)
            code = left.code
        return Answer(code, *capfd.readouterr())

    return call


def model_file(folder: Path, text: str, name: str = "model.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refused(answer: Answer, *messages: str) -> None:
    """Exit code 2, one line on standard error, and nothing of Python's."""
    assert answer.code == 2
    lines = answer.err.splitlines()
    assert len(lines) == 1, answer.err
    assert lines[0].startswith("vgf-conformance: ")
    for message in messages:
        assert message in lines[0]
    assert "Traceback" not in answer.out + answer.err


def test_a_model_that_passes(run: Run, tmp_path: Path) -> None:
    file = model_file(tmp_path, GOOD)
    answer = run("check", file)
    assert answer.code == 0
    assert answer.err == ""
    assert str(file) in answer.out
    assert "FP none: 1 nodes: 1 in 1 delegate, 0 on the CPU" in answer.out
    rows = [line.split()[:4] for line in answer.out.splitlines() if line.startswith("FP")]
    assert rows == [["FP", "none", "reference", "pass"], ["FP", "none", "emulation", "pass"]]


def test_a_model_that_fails_says_where_why_and_how_to_see_it_again(run: Run, tmp_path: Path) -> None:
    file = model_file(tmp_path, BAD)
    answer = run("check", file, "--seed", "3")
    assert answer.code == 1
    assert "FP none on emulation: fail at run (unwritten)" in answer.out
    assert "  delegate 0, output 0: 6 of 6 elements were never written" in answer.out
    assert (
        f"  reproduce: vgf-conformance check {file} --profile FP --scheme none --target emulation --seed 3"
        in answer.out
    )


COUNTS = """
import torch

class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.copy_(self.total + torch.abs(x))
        return self.total * 2.0

def model():
    return Counts()

def inputs():
    return (torch.tensor([1.0, -2.0, 3.0]),)

def samples():
    return [(torch.tensor([4.0, 5.0, -6.0]),), (torch.tensor([0.5, 0.25, 0.125]),)]

profiles = ["FP"]
sequence = True
"""


def test_samples_that_are_calls_in_sequence(run: Run, tmp_path: Path) -> None:
    """The third one counts on what the two before it left."""
    file = model_file(tmp_path, COUNTS)
    assert run("check", file).code == 0
    answer = run("check", model_file(tmp_path, COUNTS.replace("sequence = True", "sequence = 1"), "bad.py"))
    refused(answer, "sequence is 1, not True or False")


def test_what_the_reference_model_cannot_run_is_judged_where_another_target_runs_it(
    run: Run, tmp_path: Path
) -> None:
    file = model_file(tmp_path, SHADER)
    both = run("check", file)
    assert "FP none on reference: unsupported at run (invalid)" in both.out
    assert ["FP", "none", "emulation", "pass"] in [line.split()[:4] for line in both.out.splitlines()]
    assert both.code == 0
    assert run("check", file, "--target", "reference").code == 1


def test_a_program_in_a_stand_alone_runner(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, runner = model_file(tmp_path, GOOD), executor_runner.install(tmp_path)
    options = ("--target", "runtime", "--driver", "lavapipe", "--executor-runner", runner)
    monkeypatch.setenv(executor_runner.MODE, "abs")
    good = run("check", file, *options)
    assert good.code == 0, good.out
    assert ["FP", "none", "runtime", "pass"] in [line.split()[:4] for line in good.out.splitlines()]
    monkeypatch.setenv(executor_runner.MODE, "crash")
    bad = run("check", file, *options)
    assert bad.code == 1
    assert "executor_runner was ended by SIGSEGV" in bad.out
    monkeypatch.setenv(executor_runner.MODE, "copy")
    wrong = run("check", file, *options)
    assert wrong.code == 1
    assert "the runtime differs from emulation on the same VGFs" in wrong.out
    assert f"--target runtime --driver lavapipe --executor-runner {runner}\n" in wrong.out


def test_a_runtime_that_is_not_there_is_told_before_anything_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, absent = model_file(tmp_path, GOOD), tmp_path / "absent"
    refused(run("check", file, "--target", "runtime", "--executor-runner", absent), "does not exist")
    refused(run("check", file, "--target", "runtime", "--runtime-library", absent), "does not exist")
    refused(run("check", file, "--runtime-library", file), "is for --target runtime")
    library = run("check", file, "--target", "runtime", "--runtime-library", file)
    refused(library, f"the runtime library {file} cannot be loaded")
    monkeypatch.setenv(LIBRARY, str(absent))
    refused(run("check", file, "--target", "runtime"), f"the runtime library {absent} does not exist")


def test_fall_back_is_told_with_its_reason(run: Run, tmp_path: Path) -> None:
    file = model_file(tmp_path, GOOD.replace("torch.abs(x)", "torch.sort(torch.abs(x))[0]"))
    answer = run("check", file, "--target", "reference")
    assert answer.code == 0
    assert "1 in 1 delegate, 1 on the CPU (aten.sort.default: Not included in" in answer.out


def test_options_choose_profiles_schemes_and_targets(run: Run, tmp_path: Path) -> None:
    options = ("--profile", "FP", "--profile", "INT", "--scheme", "a8w8-pt", "--target", "reference")
    answer = run("check", model_file(tmp_path, GOOD), *options)
    assert answer.code == 0
    rows = [line.split()[:4] for line in answer.out.splitlines() if line.startswith(("FP", "INT"))]
    assert rows == [["INT", "a8w8-pt", "reference", "pass"]]


def test_json_is_one_document_and_nothing_else(run: Run, tmp_path: Path) -> None:
    good, bad = model_file(tmp_path, GOOD, "good.py"), model_file(tmp_path, BAD, "bad.py")
    nothing = model_file(tmp_path, "", "nothing.py")
    answer = run("check", good, bad, nothing, "--json")
    assert answer.code == 2
    document = json.loads(answer.out)
    assert document["schema"] == SCHEMA_VERSION
    found = [
        (item["file"], item["profile"], item["scheme"], item["target"], item["verdict"], item["stage"])
        for item in document["records"]
    ]
    assert found == [
        (str(good), "FP", "none", "reference", "pass", None),
        (str(good), "FP", "none", "emulation", "pass", None),
        (str(bad), "FP", "none", "reference", "pass", None),
        (str(bad), "FP", "none", "emulation", "fail", "run"),
        (str(nothing), "", "", "", "error", None),
    ]
    assert all(schema_refusal(item) is None for item in document["records"])
    assert document["records"][3]["message"] == "delegate 0, output 0: 6 of 6 elements were never written"
    assert f"vgf-conformance: {nothing}: no model()" in answer.err


def test_what_a_model_prints_stays_out_of_the_document(run: Run, tmp_path: Path) -> None:
    text = GOOD.replace("        return torch", "        print('in forward')\n        return torch")
    answer = run("check", model_file(tmp_path, text + "\nprint('at import')\n"), "--json")
    assert len(json.loads(answer.out)["records"]) == 2
    assert "at import" in answer.err
    assert "in forward" in answer.err


def test_a_bad_file_does_not_take_the_others_down(run: Run, tmp_path: Path) -> None:
    broken = model_file(tmp_path, "import no_such_module_anywhere", "broken.py")
    answer = run("check", broken, model_file(tmp_path, GOOD), "--target", "reference")
    refused(answer, f"{broken}: importing it raises ModuleNotFoundError: No module named")
    assert "reference  pass" in " ".join(answer.out.split("\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def inputs(): return ()", "no model(); a model file defines model() and inputs()"),
        ("def model(): return None", "no inputs(); a model file defines model() and inputs()"),
        ("def model(): return 3\ndef inputs(): return ()", "model() returned int, not a torch.nn.Module"),
        ("def model(:", "importing it raises SyntaxError"),
        (GOOD + "\ndef inputs(): return [1]", "inputs() is a list, not a tuple of inputs"),
        (GOOD + "\ndef inputs(): raise KeyError('gone')", "inputs() raises KeyError: 'gone' (line"),
        (GOOD + "\ndef samples(): return 3", "samples() returned int, not a list of input tuples"),
        (GOOD + "\ndef samples(): return [3]", "samples()[0] is a int, not a tuple of inputs"),
        (GOOD + "\nprofiles = ['TOSA-9+XX']", "profiles: unknown profile 'TOSA-9+XX'"),
        (GOOD + "\nprofiles = 3", "profiles is 3, not a list of profiles"),
        (GOOD + "\nscheme = 'a1w1'", "unknown scheme 'a1w1': choose from none, a8w8-pc, a8w8-pt"),
    ],
)
def test_a_file_that_breaks_the_contract(text: str, message: str, run: Run, tmp_path: Path) -> None:
    file = model_file(tmp_path, text)
    answer = run("check", file, "--target", "reference")
    refused(answer, str(file), message)
    assert answer.out == ""


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    refused(run("check", tmp_path / "absent.py", "--target", "reference"), "absent.py: no such file")


def test_a_model_that_export_refuses(run: Run, tmp_path: Path) -> None:
    file = model_file(tmp_path, GOOD.replace("torch.abs(x)", "x if float(x.sum()) > 0 else -x"))
    answer = run("check", file, "--target", "reference")
    assert answer.code == 2
    assert "FP none on reference: error at export (raised)" in answer.out
    assert "Could not guard on data-dependent expression" in answer.out
    assert answer.err == ""
    assert "Traceback" not in answer.out + answer.err


def test_nan_in_calibration_data(run: Run, tmp_path: Path) -> None:
    text = GOOD + "\ndef calibration(): return [(torch.full((2, 3), float('nan')),)]"
    answer = run("check", model_file(tmp_path, text), "--profile", "INT", "--target", "reference")
    assert answer.code == 2
    assert "calibration data: input 0 of set 0 holds NaN; calibrate on real values" in answer.out


def test_weights_with_nan_are_bad_input(run: Run, tmp_path: Path) -> None:
    text = GOOD.replace("return Model()", "return torch.nn.PReLU(init=float('nan'))")
    answer = run("check", model_file(tmp_path, text), "--target", "reference")
    assert answer.code == 2
    assert "the model's weights hold NaN: weight" in answer.out


def test_a_model_in_train_mode_is_told(run: Run, tmp_path: Path) -> None:
    text = GOOD.replace("return Model()", "return torch.nn.Sequential(Model(), torch.nn.Dropout())")
    answer = run("check", model_file(tmp_path, text), "--target", "reference")
    assert answer.code == 0
    assert (
        "note: model() gives a model in train mode: evaluated in eval mode, which changes Dropout"
        in answer.out
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--profile", "TOSA-9+XX"), "unknown profile 'TOSA-9+XX': write FP, INT or FP+INT"),
        (("--scheme", "a1w1"), "unknown scheme 'a1w1': choose from none, a8w8-pc, a8w8-pt"),
        (("--target", "moon"), "unknown target 'moon': choose from reference, emulation"),
        (("--driver", "/no/such/driver.json"), "/no/such/driver.json does not exist: give the path"),
        (("--driver", "abacus"), "no Vulkan driver is called 'abacus': choose from"),
    ],
)
def test_a_bad_option(options: tuple[str, str], message: str, run: Run, tmp_path: Path) -> None:
    refused(run("check", model_file(tmp_path, GOOD), *options), message)


def test_a_driver_file_that_is_none(run: Run, tmp_path: Path) -> None:
    manifest = model_file(tmp_path, "{}", "driver.json")
    refused(run("check", model_file(tmp_path, GOOD), "--driver", manifest), "is no ICD manifest")


def test_no_vulkan_driver(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    file = model_file(tmp_path, GOOD)
    refused(run("check", file), "no Vulkan driver found: install one: apt-get install")
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path / "nowhere.json"))
    refused(run("check", file), "nowhere.json does not exist")
    assert run("check", file, "--target", "reference").code == 0


def test_no_emulation_layers(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without_layers(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "emulation_layer" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_layers)
    refused(
        run("check", model_file(tmp_path, GOOD)),
        "the ML emulation layers are not installed: python -m pip install ai-ml-emulation-layer",
    )


def test_no_pytorch(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without_torch(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "torch" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_torch)
    refused(run("check", model_file(tmp_path, GOOD)), "torch not installed: pip install")


def test_a_converter_that_does_not_launch(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converter = model_file(tmp_path, "#!/no/such/interpreter", "converter")
    converter.chmod(converter.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(converter))
    monkeypatch.setenv("VGF_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    file = model_file(tmp_path, GOOD)
    answer = run("check", file, "--target", "reference")
    assert answer.code == 2
    assert "FP none on reference: error at convert (raised)" in answer.out
    assert "the model converter does not launch: FileNotFoundError" in answer.out
    assert f"reproduce: vgf-conformance check {file} --profile FP" in answer.out
    assert "Traceback" not in answer.out + answer.err


def test_an_unusable_cache_only_warns(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VGF_CONFORMANCE_CACHE", str(model_file(tmp_path, "", "in-the-way") / "cache"))
    answer = run("check", model_file(tmp_path, GOOD), "--target", "reference")
    assert answer.code == 0
    assert "takes no more entries" in answer.err


@pytest.fixture(scope="module")
def program(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """A .pte with two delegates, and their VGFs as lowering dumped them."""
    artifact = lower(request(lambda x: torch.sort(torch.exp(x))[0] * 2.0, randn(3, 5)), cache)
    path = tmp_path_factory.mktemp("pte") / "model.pte"
    path.write_bytes(artifact.pte)
    return path, [delegate.vgf for delegate in artifact.delegates]


def test_extract_writes_the_vgfs(run: Run, program: tuple[Path, list[bytes]], tmp_path: Path) -> None:
    path, vgfs = program
    answer = run("extract", path, "-o", tmp_path / "new" / "folder")
    assert (answer.code, answer.err) == (0, "")
    files = [tmp_path / "new" / "folder" / f"delegate{number}.vgf" for number in range(2)]
    assert answer.out.splitlines() == [
        f"{file}  {len(vgf)} bytes" for file, vgf in zip(files, vgfs, strict=True)
    ]
    assert [file.read_bytes() for file in files] == vgfs


def test_extract_of_bad_input(run: Run, program: tuple[Path, list[bytes]], tmp_path: Path) -> None:
    path, _ = program
    refused(run("extract", tmp_path / "absent.pte", "-o", tmp_path), "absent.pte: no such file")
    junk = model_file(tmp_path, "not a program", "junk.pte")
    refused(run("extract", junk, "-o", tmp_path / "out"), "junk.pte: not an ExecuTorch program")
    cut = tmp_path / "cut.pte"
    cut.write_bytes(path.read_bytes()[:-600])
    refused(run("extract", cut, "-o", tmp_path / "out"), "cut.pte: corrupt .pte: a delegate ends at byte")
    assert not (tmp_path / "out").exists()
    refused(run("extract", path, "-o", junk / "out"), "cannot make the folder", "Not a directory")


def results(folder: Path, *verdicts: Verdict) -> Path:
    with ResultsWriter(folder, {"host": "lab"}) as writer:
        for number, verdict in enumerate(verdicts):
            more: dict[str, Any] = {} if verdict is Verdict.PASS else {"stage": Stage.RUN, "unexpected": True}
            writer.append(record(sample=f"s{number}", verdict=verdict, **more))
    return writer.path


def test_report_makes_every_report(run: Run, tmp_path: Path) -> None:
    file = results(tmp_path / "results", Verdict.PASS, Verdict.FAIL)
    answer = run("report", file, "-o", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
    names = ["matrix.md", "tolerance.md", "junit.xml", "report.html"]
    assert answer.out.split() == [str(tmp_path / "out" / name) for name in names]
    assert all((tmp_path / "out" / name).stat().st_size > 0 for name in names)


def test_report_of_bad_results(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused(run("report", tmp_path / "absent.jsonl", "-o", out), "cannot read results from", "absent.jsonl")
    refused(run("report", model_file(tmp_path, "junk\n", "a.jsonl"), "-o", out), "a.jsonl:1: not JSON")
    file = results(tmp_path / "results", Verdict.PASS, Verdict.PASS)
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:40] + b"\n" + lines[2])
    refused(run("report", file, "-o", out), "results.jsonl:2: not JSON")
    file.write_bytes(content)
    refused(run("report", file, "-o", file / "out"), "cannot make the folder", "Not a directory")
    assert not out.exists()


def test_a_results_file_cut_in_the_middle_of_its_last_line_loses_only_that(run: Run, tmp_path: Path) -> None:
    file = results(tmp_path / "results", Verdict.PASS, Verdict.PASS)
    file.write_bytes(file.read_bytes()[:-25])
    answer = run("report", file, "-o", tmp_path / "out")
    assert answer.code == 2
    assert "results.jsonl:3: the last line is torn (a killed run) and left out" in answer.err
    junit = (tmp_path / "out" / "junit.xml").read_text()
    assert "s0" in junit
    assert "s1" not in junit


def test_compare(run: Run, tmp_path: Path) -> None:
    old = results(tmp_path / "old", Verdict.PASS, Verdict.FAIL)
    new = results(tmp_path / "new", Verdict.FAIL, Verdict.PASS)
    same = run("compare", old, old.parent)
    assert (same.code, same.err) == (0, "")
    worse = run("compare", old, new)
    assert worse.code == 1
    assert "add[s0-FP-none-reference]" in worse.out
    assert "add[s1-FP-none-reference]" in worse.out
    refused(run("compare", old, tmp_path / "absent"), "cannot read results from")


def test_usage(run: Run) -> None:
    assert run("--version") == Answer(0, f"{__version__}\n", "")
    nothing = run()
    assert nothing.code == 2
    assert "usage: vgf-conformance" in nothing.err
    assert run("check").code == 2
    help_ = run("check", "--help")
    assert help_.code == 0
    assert "Exit status: 0 pass, 1 fail, 2 bad input." in " ".join(help_.out.split())


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    """``vgf-conformance compare ... | head -1`` ends without a traceback."""
    old = results(tmp_path / "old", *[Verdict.PASS] * 2000)
    new = results(tmp_path / "new", *[Verdict.FAIL] * 2000)
    process = subprocess.Popen(
        [sys.executable, "-m", "vgf_conformance.cli", "compare", str(old), str(new)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 1
    process.stderr.close()


def test_a_file_that_exits_takes_no_other_down(run: Run, tmp_path: Path) -> None:
    exits = tmp_path / "exits.py"
    exits.write_text("import sys\nsys.exit(0)\n")
    missing = tmp_path / "missing.py"
    answer = run("check", "--json", exits, missing)
    assert answer.code == 2
    messages = [record["message"] for record in json.loads(answer.out)["records"]]
    assert "importing it raises SystemExit" in messages[0]
    assert "no such file" in messages[1]


def test_a_selection_of_nothing_is_bad_input(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("import torch\nmodel = torch.nn.ReLU\ndef inputs(): return (torch.ones(2),)\n")
    refused(run("check", file, "--profile", "FP", "--scheme", "a8w8-pc"), "nothing to run")
    answer = run("check", file, "--profile", "TOSA-1.0+FP+XX", "--target", "reference")
    assert answer.code == 2
    assert "the backend does not know TOSA-1.0+FP+XX" in answer.out


def test_capabilities_are_text_or_one_document(run: Run) -> None:
    text = run("capabilities", "--driver", "lavapipe")
    assert (text.code, text.err) == (0, "")
    assert "VK_ARM_data_graph" in text.out
    answer = run("capabilities", "--driver", "lavapipe", "--layers", "none", "--json")
    report = json.loads(answer.out)
    assert (report["driver"], report["layers"]) == ("lvp_icd", [])
    assert report["identity"]["name"] == report["device"]["name"]
    assert "VK_ARM_data_graph" not in report["device"]["extensions"]


def test_capabilities_of_another_driver_than_expected(run: Run) -> None:
    refused(run("capabilities", "--driver", "lavapipe", "--expect-driver", "NVIDIA"), "contains 'NVIDIA'")


def test_a_model_is_checked_on_the_target_vulkan(run: Run, tmp_path: Path) -> None:
    good = model_file(tmp_path, GOOD)
    answer = run("check", good, "--target", "vulkan", "--json")
    (record,) = json.loads(answer.out)["records"]
    assert (record["verdict"], record["target"]) == ("pass", "vulkan")
    assert record["driver"].endswith("emulation layers: graph and tensor")
    alone = run("check", good, "--target", "vulkan", "--layers", "none", "--json")
    (record,) = json.loads(alone.out)["records"]
    assert (alone.code, record["verdict"], record["finding"]) == (1, "unsupported", "capability")
