"""Model files whose functions return, and whose names are, anything that Python has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.mutations import Input

_START = """\
import torch
from vgf_conformance.cases.task import COSINE, Task

class Hostile:
    def fail(self, *arguments): raise SystemExit("no")
    __repr__ = __str__ = __eq__ = __bool__ = __len__ = __iter__ = __hash__ = __getattr__ = fail

class Types(type):
    __name__ = property(lambda self: 1 / 0)

class Nameless(metaclass=Types):
    pass

class Model(torch.nn.Module):
    def forward(self, *arguments):
        x = arguments[0] if arguments else None
        return {forward}

def model(): return {model}
def inputs(): return {inputs}
"""

#: What a sound file says; of the others, that it may say nothing.
_SOUND = {"forward": "torch.abs(x)", "model": "Model()", "inputs": "(torch.ones(2, 3),)"}
_FUNCTIONS = {
    "samples": "[(torch.zeros(2, 3),)]",
    "calibration": "[(torch.zeros(2, 3),)]",
    "dynamic_shapes": "None",
    "task": "Task(COSINE, list, 0.5, 'a test')",
}
_NAMES = {
    "profiles": "['FP', 'INT']",
    "scheme": "'none'",
    "configure_quantizer": "lambda quantizer: None",
    "budget": "20",
}

LEAVES = (
    *(
        "None",
        "True",
        "0",
        "-1",
        "2**63",
        "2**70",
        "-2**64",
        "1e308",
        "float('nan')",
        "1j",
        "'FP'",
        "'a8w8-pc'",
    ),
    *(
        "''",
        "'x' * 100_000",
        "'a\\n\\x1b[2J\\u202e'",
        "'\\ud800'",
        "b'x'",
        "object()",
        "Hostile()",
        "Nameless()",
    ),
    *("Model()", "Model", "type", "len", "lambda: 1", "(i for i in ())", "NotImplemented", "..."),
    *("type('a\\nb', (), {})()", "torch", "torch.float32", "torch.nn.Linear(2, 2, device='meta')"),
    *(
        "torch.ones(2, 3)",
        "torch.ones(())",
        "torch.ones(0, 3)",
        "torch.ones(1, 3).expand(2, 3)",
        "torch.rand(2, 3)",
    ),
    *(
        f"torch.ones(2, 3).to(torch.{dtype})"
        for dtype in ("bool", "uint8", "uint16", "int64", "float16", "bfloat16", "float8_e4m3fn", "complex64")
    ),
    *("torch.ones(2, 3).to_sparse()", "torch.empty(2, 3, device='meta')", "torch.ones(1).expand(1 << 40)"),
    *("torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)", "torch.nn.Parameter(torch.ones(2))"),
    *(
        "torch.full((2, 3), float('nan'))",
        "torch.ones(2, 3).conj()",
        "torch.nested.nested_tensor([torch.ones(2)])",
    ),
    *(
        "__import__('numpy').ones(3)",
        "__import__('functools').reduce(lambda a, b: [a], range(2000), 1)",
        "x",
        "1 / 0",
    ),
)


def _values() -> st.SearchStrategy[str]:
    """Expressions of Python, nested a little."""

    def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        several = st.lists(inner, max_size=3)
        return st.one_of(
            several.map(lambda parts: f"({''.join(part + ', ' for part in parts)})"),
            several.map(lambda parts: f"[{', '.join(parts)}]"),
            inner.map(lambda part: f"{{'a': {part}}}"),
            inner.map(lambda part: f"{{{part}: 1}}"),
        )

    leaves = st.sampled_from(LEAVES)
    return st.one_of(
        leaves, leaves.map(lambda leaf: f"({leaf},)"), st.recursive(leaves, nested, max_leaves=4)
    )


@st.composite
def _written(draw: st.DrawFn) -> bytes:
    values = _values()
    said = dict(_SOUND)
    changed = draw(st.sampled_from([*said, *_FUNCTIONS, *_NAMES]))
    if changed in said:
        said[changed] = draw(values)
    text = _START.format(**said)
    for name, sound in {**_FUNCTIONS, **_NAMES}.items():
        if name == changed or draw(st.integers(0, 5)) == 5:
            value = draw(values) if name == changed else sound
            text += f"def {name}(): return {value}\n" if name in _FUNCTIONS else f"{name} = {value}\n"
    return text.encode("utf-8", "surrogatepass")


def with_value(name: str, value: str) -> bytes:
    """A file that is sound but for one value: what a function of that name returns, or what has the name."""
    said, more = dict(_SOUND), ""
    if name in said:
        said[name] = value
    else:
        more = f"def {name}(): return {value}\n" if name in _FUNCTIONS else f"{name} = {value}\n"
    return (_START.format(**said) + more).encode("utf-8", "surrogatepass")


def sound() -> Sequence[bytes]:
    """A file without, and one with all that it may say."""
    # What this takes is no fault of a file's.
    import torch.export  # noqa: F401

    import vgf_conformance.cases.userfile
    import vgf_conformance.evaluation.eager  # noqa: F401

    start = _START.format(**_SOUND)
    functions = "".join(f"def {name}(): return {value}\n" for name, value in _FUNCTIONS.items())
    names = "".join(f"{name} = {value}\n" for name, value in _NAMES.items())
    return [start.encode(), (start + functions + names).encode()]


def damaged(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    """Files one of whose values is another."""
    return _written().map(Input)


def read(path: Path) -> None:
    """Load a file and run its model in eager mode, as ``check`` does before it lowers anything."""
    from vgf_conformance.cases.userfile import load_user_model
    from vgf_conformance.evaluation.eager import EagerFailure, NotRepeatable, repeated_eager

    user = load_user_model(str(path), 0)
    assert all(user.schemes(profile) for profile in user.profiles)
    for sample in user.samples:
        try:
            repeated_eager(user.module, sample)
        except (EagerFailure, NotRepeatable) as error:
            assert str(error).isprintable() and len(str(error)) < 1000
