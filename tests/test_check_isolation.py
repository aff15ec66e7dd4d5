"""Model files that misbehave: what they do reaches neither the next file nor the document."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from vgf_conformance.cases.userfile import UserModel, load_user_model
from vgf_conformance.cli import main
from vgf_conformance.evaluation.eager import EagerFailure, repeated_eager
from vgf_conformance.launch import python_command, python_environment
from vgf_conformance.results.store import schema_refusal
from vgf_conformance.vocabulary import UserError

GOOD = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.abs(x)

def model():
    return Model()

def inputs():
    return (torch.tensor([1.5, -2.0]),)
"""

FORWARD = "        return torch.abs(x)"

#: What passes whatever it does, and leaves no trace.
HARMLESS = {
    "chdir": GOOD + "\nimport os; os.chdir('/')\n",
    "patched": GOOD + "\nkept = torch.abs\ntorch.nn.functional.relu = torch.exp = torch.zeros = None\n",
    "descriptor": GOOD + "\nimport os; os.write(1, b'{\"written\": 1}\\n'); os.write(2, b'no end of line')\n",
    "prints": GOOD.replace(FORWARD, "        print('in forward')\n" + FORWARD)
    + "\nprint('at import \\x1b[2J')\n",
    "replaced": GOOD + "\nimport sys, io; sys.stdout = sys.stderr = io.StringIO(); print = None\n",
    "thread": GOOD
    + """
import threading, sys
def talk():
    while True:
        print("and on")
threading.Thread(target=talk).start()
""",
    "atexit": GOOD + "\nimport atexit; atexit.register(print, 'at exit')\n",
    "settings": GOOD
    + """
import os, signal
torch.set_num_threads(1); torch.set_grad_enabled(False)
os.environ.clear(); os.environ["PATH"] = os.defpath
signal.signal(signal.SIGTERM, signal.SIG_IGN)
""",
    "double": GOOD.replace("-2.0]", "-2.0], dtype=torch.float32")
    + "\ntorch.set_default_dtype(torch.float64)\n",
    "forks": GOOD + "\nimport os; os.fork()\n",
    "shell": GOOD + "\nimport subprocess; subprocess.Popen(['sleep', '1000'])\n",
    "builtins": GOOD + "\nimport json, os; json.dumps = os.write = os._exit = os.getpid = None\n",
    "last": GOOD + "\nimport os\nassert os.getcwd() != '/' and torch.zeros and torch.is_grad_enabled()\n",
}

#: What is bad input, with what is said of it.
FATAL = {
    "exits": ("import os; os._exit(7)", "ended with exit status 7 before the model was judged"),
    "exits_well": ("import os; os._exit(0)", "ended with exit status 0 before the model was judged"),
    "sysexit": ("import sys; sys.exit(3)", "importing it raises SystemExit: 3 (line 1)"),
    "base": (
        GOOD + "\nclass Stop(BaseException): pass\ndef model(): raise Stop('no \\x1b[31m more')\n",
        "model() raises Stop: no \\x1b[31m more (line 15)",
    ),
    "interrupt": (GOOD + "\ndef inputs(): raise KeyboardInterrupt\n", "inputs() raises KeyboardInterrupt"),
    "late": (
        GOOD.replace(FORWARD, "        raise GeneratorExit('so')"),
        "late.py: evaluating the model raises GeneratorExit: so",
    ),
    "killed": (
        GOOD.replace(FORWARD, "        import os; os.kill(os.getpid(), 9)\n" + FORWARD),
        "was killed (SIGKILL) before the model was judged, probably because memory ran out",
    ),
    "segfault": (GOOD + "\nimport ctypes; ctypes.string_at(0)\n", "was ended by SIGSEGV"),
    "forges": (
        GOOD
        + """
import os
for descriptor in range(900, 1000):
    try:
        os.write(descriptor, b'["record", 5]\\n["record", {"id": 1}]\\n["warning", {"a": []}]\\n["x", 1]\\n')
    except OSError:
        pass
""",
        "before the model was judged",
    ),
    "closes": (GOOD + "\nimport os; os.closerange(0, 5000)\n", "before the model was judged"),
}


class Checked(NamedTuple):
    """Records by the name of their file, what went to standard error, and the exit status."""

    records: dict[str, list[dict[str, Any]]]
    said: str
    code: int


def check(
    *arguments: str, profile: str = "FP", cwd: Path | None = None, cache: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """``vgf-conformance check`` in a process of its own, on the reference model."""
    variables = {"VGF_CONFORMANCE_CACHE": str(cache)} if cache else {}
    command = [*python_command("vgf_conformance.cli"), "check", *arguments]
    command += ["--profile", profile, "--target", "reference"]
    return subprocess.run(command, capture_output=True, text=True, env=python_environment(variables), cwd=cwd)


@pytest.fixture(scope="module")
def checked(
    tmp_path_factory: pytest.TempPathFactory,
) -> Checked:
    """All those files in one call."""
    folder = tmp_path_factory.mktemp("models")
    names = [*FATAL, *HARMLESS]
    for name in names:
        (folder / f"{name}.py").write_text(FATAL[name][0] if name in FATAL else HARMLESS[name])
    done = check(*(str(folder / f"{name}.py") for name in names), "--json")
    found: dict[str, list[dict[str, Any]]] = {}
    for record in json.loads(done.stdout)["records"]:
        assert schema_refusal(record) is None
        found.setdefault(Path(record["file"]).stem, []).append(record)
    assert list(found) == names
    return Checked(found, done.stderr, done.returncode)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_file_that_misbehaves_passes_alone(name: str, checked: Checked) -> None:
    (record,) = checked.records[name]
    assert (record["verdict"], record["message"]) == ("pass", "")


@pytest.mark.parametrize("name", FATAL)
def test_a_file_that_ends_its_process_is_one_bad_input(name: str, checked: Checked) -> None:
    *_, record = checked.records[name]
    assert (record["verdict"], record["finding"]) == ("error", "input")
    assert record["message"].partition(": ")[0].endswith(f"{name}.py")
    assert FATAL[name][1] in record["message"]


def test_what_models_print_goes_to_standard_error(checked: Checked) -> None:
    assert checked.code == 2
    assert "Traceback" not in checked.said
    for text in ('{"written": 1}', "no end of line", "in forward", "at import \\x1b[2J", "and on"):
        assert f"{text}\n" in checked.said
    assert "at exit" not in checked.said


#: Files that work only where Python finds modules as it would elsewhere.
FOUND = {
    "numpy": "import numpy\nassert numpy.zeros(3).size == 3\n" + GOOD,
    "json": GOOD,
    "torch": GOOD,
    "annotations": "from __future__ import annotations\nimport dataclasses\n"
    + GOOD
    + "\n@dataclasses.dataclass\nclass Options:\n    size: int = 3\nassert Options().size == 3\n",
    "pickled": GOOD + "\nimport pickle\ndef model(): return pickle.loads(pickle.dumps(Model()))\n",
    "sibling": GOOD + "\nfrom sibling_part import size\nassert size == 4\n",
    "odd-name.v2": GOOD,
    "bom": "\ufeff" + GOOD,
    "cond": GOOD.replace(
        FORWARD, "        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))"
    ),
}
#: Each is one bad input: what the file says after GOOD, and what is said of it.
BROKEN = {
    "scheme_list": ("scheme = ['none']", "scheme is ['none'], not one of 'none', 'a8w8-pc'"),
    "scheme_number": ("scheme = 3", "scheme is 3, not one of"),
    "profiles_text": ("profiles = 'FP'", "profiles is 'FP', not a list of profiles"),
    "profiles_mixed": ("profiles = ['FP', ['INT']]", "profiles[1] is ['INT'], not a string such as 'FP'"),
    "profiles_hostile": (
        "class P:\n    def __repr__(self): raise SystemExit\nprofiles = P()",
        "profiles is a P, not a list of profiles",
    ),
    "configure_number": ("configure_quantizer = 5", "configure_quantizer is 5, not a function"),
    "configure_arity": ("def configure_quantizer(): pass", "configure_quantizer does not take one quantizer"),
    "inputs_type": (
        "def inputs(): return type('a\\nb\\x1b[2J', (), {})()",
        "inputs() is a a b\\x1b[2J, not a tuple",
    ),
    "inputs_type_of_types": (
        "class Types(type):\n    __name__ = property(lambda self: 1 / 0)\n"
        "class Value(metaclass=Types): pass\ndef inputs(): return Value()",
        "inputs() is a value of a type without a name, not a tuple",
    ),
    "inputs_nested": (
        "def inputs(): return (torch.nested.nested_tensor([torch.ones(2)]),)",
        "inputs()[0] is a nested tensor; give a dense one",
    ),
    "inputs_deep": (
        "import functools\ndef inputs(): return (functools.reduce(lambda a, b: [a], range(2000), 1),)",
        "inputs() is nested too deeply",
    ),
    "inputs_wide": ("def inputs(): return (2**70,)", "inputs()[0] is an integer of more than 64 bits"),
    "inputs_quantized": (
        "def inputs(): return (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),)",
        "inputs()[0] is quantized; give a plain tensor",
    ),
    "calibration_list": ("calibration = [1]", "calibration is [1], not a function: define calibration()"),
    "calibration_takes": ("def calibration(n): return []", "calibration() is called without arguments"),
    "calibration_many": (
        "def calibration(): return [(torch.ones(2), torch.ones(2))]",
        "calibration()[0] has 2 inputs, but inputs() has 1",
    ),
    "calibration_dtype": (
        "def calibration(): return [(torch.ones(2, dtype=torch.uint8),)]",
        "calibration()[0][0] is torch.uint8, but inputs()[0] is torch.float32",
    ),
    "calibration_parts": (
        "def calibration(): return [([torch.ones(2)],)]",
        "calibration()[0] is not made of the same parts as inputs()",
    ),
    "calibration_empty": ("def calibration(): return []", "calibration() returned nothing"),
    "calibration_yields": (
        "def calibration(): yield inputs()",
        "calibration() returned generator, not a list",
    ),
    "samples_shape": (
        "def samples(): return [(torch.ones(3),)]",
        "samples()[0][0] has the shape [3], but inputs()[0] has [2]; give the same shape, or define",
    ),
    "samples_kind": ("def samples(): return [(3,)]", "samples()[0][0] is of type int, but inputs()[0] is"),
    "inputs_meta": (
        "def inputs(): return (torch.ones(2, device='meta'),)",
        "inputs()[0] is on the device meta",
    ),
    "inputs_tensor": (
        "def inputs(): return torch.ones(2)",
        "inputs() is a Tensor, not a tuple of inputs: write",
    ),
    "model_meta": (
        "def model(): return torch.nn.Linear(2, 2, device='meta')",
        "model(): weight is on the device",
    ),
    "model_class": ("def model(): return Model", "model() returned the class Model; return a model: Model()"),
    "model_value": ("model = Model()", "model is a Model, not a function: define model()"),
    "model_eval": (
        "class Bad(Model):\n    def eval(self): raise OSError('no')\nmodel = Bad",
        "eval() of the model raises OSError: no",
    ),
    "shapes_value": ("dynamic_shapes = {}", "dynamic_shapes is {}, not a function"),
    "sequence_kind": ("sequence = 3", "sequence is 3, not True or False"),
    "sequence_alone": ("sequence = True", "sequence is True, but there is no samples() for the calls after"),
    "budget_text": ("budget = 'high'", "budget is 'high', not a number of decibels such as 20"),
    "budget_true": ("budget = True", "budget is True, not a number of decibels"),
    "budget_nan": ("budget = float('nan')", "budget is nan, not a number of decibels"),
    "task_kind": ("def task(): return 3", "task() returned int, not a vgf_conformance.cases.task.Task"),
    "task_wide": (
        "from vgf_conformance.cases.task import *\ndef task(): return Task(COSINE, list, 10**400, 'a test')",
        "task(): drop is 1000000",
    ),
    "budget_wide": ("budget = 10**400", "not a number of decibels such as 20"),
    "task_constant": ("task = 3", "task is 3, not a function: define task()"),
    "task_drop": (
        "from vgf_conformance.cases.task import *\n"
        "def task(): return Task(COSINE, list, float('nan'), 'a test')",
        "task(): drop is nan; give how far the mean score may fall, 0 or more",
    ),
    "shapes_kind": ("def dynamic_shapes(): return 3", "dynamic_shapes() returned int, not a dict"),
    "message": ("raise OSError('a\\n\\x1b[2Jb' + 'c' * 5000)", "OSError: a \\x1b[2Jbccc"),
    "deep": ("x = " + "(" * 5000 + ")" * 5000, "importing it raises"),
    "zeros": ("x = '\0'", "importing it raises"),
}


#: What forward() returns that no tensor in memory is, with what is said of it.
UNREADABLE = {
    "torch.empty(2, device='meta')": "output 0 is on the device meta",
    "torch.nested.nested_tensor([x])": "output 0 is a nested tensor",
    "x.to_sparse()": "output 0 is torch.sparse_coo; give a dense tensor",
    "torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)": "output 0 is quantized",
    "(x, 2**70)": "output 1 is an integer of more than 64 bits",
    "type('a\\nb', (), {})()": "output 0 is a a b, not a tensor or a number",
    "self.fail('a\\n' + 'b' * 100_000)": "RuntimeError: a bbb",
}


class Returns(torch.nn.Module):
    """Returns what an expression gives."""

    def __init__(self, expression: str) -> None:
        super().__init__()
        self.expression = expression

    def forward(self, x: torch.Tensor) -> object:
        return eval(self.expression, {"self": self, "x": x, "torch": torch})  # noqa: S307 - written above

    def fail(self, text: str) -> None:
        raise RuntimeError(text)


@pytest.mark.parametrize("expression", UNREADABLE)
def test_outputs_that_cannot_be_read_are_the_models_fault(expression: str) -> None:
    with pytest.raises(EagerFailure) as caught:
        repeated_eager(Returns(expression), (torch.ones(2),))
    said = str(caught.value)
    assert said.startswith(UNREADABLE[expression])
    assert len(said) < 1000 and said.isprintable()


def test_a_cache_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(GOOD.replace("1.5", f"{len(name)}.5"))
    (tmp_path / "cache").write_text("")
    done = check(str(tmp_path / "one.py"), str(tmp_path / "two.py"), cache=tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("takes no more entries") == 1
    assert "UserWarning" not in done.stderr


def load(folder: Path, name: str, text: str, seed: int = 0) -> UserModel:
    path = folder / f"{name}.py"
    path.write_text(text)
    return load_user_model(str(path), seed)


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_contract_is_one_message(name: str, tmp_path: Path) -> None:
    text, message = BROKEN[name]
    with pytest.raises(UserError) as caught:
        load(tmp_path, name, f"{GOOD}\n{text}\n")
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / name}.py: ")
    assert message in said
    assert len(said) < 1000 and said.isprintable()


def test_text_that_is_not_utf_8_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(GOOD.encode() + b"name = 'caf\xe9'\n")
    with pytest.raises(UserError, match=r"latin\.py: importing it raises SyntaxError"):
        load_user_model(str(path), 0)


def test_what_the_file_says_of_its_encoding_counts(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"# coding: latin-1\n" + GOOD.encode() + b"# caf\xe9\n")
    assert load_user_model(str(path), 0).profiles


def test_modules_are_found_as_elsewhere(tmp_path: Path) -> None:
    for name, text in FOUND.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "sibling_part.py").write_text("size = 4\n")
    files = [str(tmp_path / f"{name}.py") for name in FOUND]
    done = check(*files, "--json", cwd=tmp_path)
    records = {Path(record["file"]).stem: record for record in json.loads(done.stdout)["records"]}
    # The backend has no torch.cond, but it gets as far as there.
    assert records.pop("cond")["stage"] == "lower"
    assert [*records, "cond"] == list(FOUND)
    assert {name: record["message"] for name, record in records.items() if record["verdict"] != "pass"} == {}
    assert not (tmp_path / "__pycache__").exists() or not list((tmp_path / "__pycache__").glob("numpy*"))


def test_the_seed_is_behind_all_that_is_drawn(tmp_path: Path) -> None:
    text = GOOD.replace("(torch.tensor([1.5, -2.0]),)", "(drawn,)") + (
        "\nimport random\nimport numpy\n"
        "drawn = torch.cat([torch.randn(1), torch.tensor([random.random(), numpy.random.rand()])])\n"
    )
    first, again, other = (load(tmp_path, "drawn", text, seed).samples[0][0] for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not (first == other).any()
    load(tmp_path, "drawn", text, 2**64 - 1)


def test_what_configures_the_quantizer_may_raise(tmp_path: Path) -> None:
    path = tmp_path / "raises.py"
    path.write_text(GOOD + "\ndef configure_quantizer(quantizer): raise KeyError('gone')\n")
    shaped = tmp_path / "shaped.py"
    shaped.write_text(
        GOOD.replace("torch.abs(x)", "torch.abs(x) + torch.ones(2)")
        + "\ndef calibration(): return [(torch.ones(3),)]\n"
    )
    done = check(str(path), str(shaped), "--json", profile="INT")
    first, second = json.loads(done.stdout)["records"]
    assert done.returncode == 2
    for record in (first, second):
        assert (record["verdict"], record["stage"], record["finding"]) == ("error", "quantise", "input")
    assert "configure_quantizer() raises KeyError: 'gone'" in first["message"]
    assert "calibration data: set 0 has the shapes [[3]], on which the program" in second["message"]


def test_files_that_cannot_be_read_are_refused_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """PyTorch is not loaded for them."""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "folder.py").mkdir()
    with (tmp_path / "large.py").open("wb") as file:
        file.truncate(3 << 30)
    (tmp_path / "text.txt").write_text(GOOD)
    expected = {
        "pipe.py": "is a pipe, not a regular file; give a Python file",
        "loop.py": "cannot be read: Too many levels of symbolic links",
        "folder.py": "is a folder, not a regular file",
        "large.py": "is too large",
        "text.txt": "not a Python file",
        "absent.py": "no such file",
        "x" * 5000: "cannot be read: File name too long",
    }
    start = time.monotonic()
    assert main(["check", *(str(tmp_path / name) for name in expected), "--target", "reference"]) == 2
    assert main(["check", "/dev/zero", "--target", "reference"]) == 2
    assert time.monotonic() - start < 5
    said = capfd.readouterr().err.splitlines()
    assert len(said) == len(expected) + 1
    for line, message in zip(said, [*expected.values(), "is a device, not a regular file"], strict=True):
        assert message in line


def test_a_link_to_a_file_is_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text(GOOD)
    (tmp_path / "link.py").symlink_to("real.py")
    assert load_user_model(str(tmp_path / "link.py"), 0).file.endswith("link.py")


WAITS = "import os, time\nopen({mark!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"


def started(mark: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The command, once a model has written its process into ``mark``."""
    process = subprocess.Popen(
        [
            *python_command("vgf_conformance.cli"),
            "check",
            *arguments,
            "--profile",
            "FP",
            "--target",
            "reference",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=python_environment(),
        # What runs in the background of a script ignores SIGINT, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (mark.exists() and mark.read_text()) and process.poll() is None:
        time.sleep(0.1)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_prints_what_it_has_and_leaves_nothing(number: int, tmp_path: Path) -> None:
    good, waits, mark = tmp_path / "good.py", tmp_path / "waits.py", tmp_path / "mark"
    good.write_text(GOOD)
    waits.write_text(WAITS.format(mark=str(mark)))
    process = started(mark, str(good), str(waits), "--json")
    process.send_signal(number)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    (record,) = json.loads(out)["records"]
    assert (record["file"], record["verdict"]) == (str(good), "pass")
    assert not Path(f"/proc/{mark.read_text()}").exists()


def test_a_killed_command_leaves_no_model_running(tmp_path: Path) -> None:
    waits, mark = tmp_path / "waits.py", tmp_path / "mark"
    waits.write_text(WAITS.format(mark=str(mark)))
    process = started(mark, str(waits))
    process.kill()
    process.communicate()
    end = time.monotonic() + 10
    while Path(f"/proc/{mark.read_text()}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{mark.read_text()}").exists()
