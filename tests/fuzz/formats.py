"""What is read from outside: a name, sound inputs, how they are damaged, and what reads them.

A reader may refuse (UserError, Malformed) or succeed; whatever else it does is a fault. It goes on to what
its answer is used for, so that what it lets pass is known to be harmless.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz import models, mutations
from tests.fuzz.mutations import PLACES, Input
from tests.packs.helpers import members, written
from tests.results.records import record
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.formats import arrays
from vgf_conformance.formats.arrays import npy
from vgf_conformance.formats.pte import FILE_LIMIT, read_delegates, read_executable
from vgf_conformance.formats.scenario import scenario_of
from vgf_conformance.formats.vgf import read_vgf
from vgf_conformance.packs.archive import MANIFEST
from vgf_conformance.packs.pack import LoadedCall, misfit, open_pack, sound_graph, vgf_misfit
from vgf_conformance.qualification import statement, waivers
from vgf_conformance.qualification.mandatory import mandatory_cases
from vgf_conformance.report import summary_table
from vgf_conformance.results.compare import compare_runs
from vgf_conformance.results.expectations import load_expectations
from vgf_conformance.results.merge import merge
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.targets.vulkan import choose_driver
from vgf_conformance.untrusted import Malformed, read_bytes
from vgf_conformance.vocabulary import Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "golden" / "packs" / "smoke.zip"
CORPUS = Path(__file__).parent / "corpus"
SEEDS = Path(__file__).parent / "seeds"

#: Cases whose graphs are small and differ.
_CASES = (
    "softmax[last-FP-none]",
    "conv2d[3x3-FP-none]",
    "conv2d[3x3-INT-a8w8-pc]",
    "conv3d[padded-FP-none]",
    "conv2d_depthwise[3x3-FP-none]",
    "conv2d_grouped[two_groups-FP-none]",
    "conv_transpose2d[upsampling-FP-none]",
    "gelu[rank1-INT-a8w8-pc]",
    "pow_tensor[broadcast-FP-none]",
    "hardtanh[zero_to_six-INT-a8w8-pc]",
)
_LIMIT = 1 << 28
#: What may stand behind a file without being read.
_MORE = b"\xa5" * 64


@dataclass(frozen=True)
class Format:
    """``seeds`` are sound, ``damaged`` draws others, ``read`` takes the path of one.

    ``suffix`` is the end of its file's name, by which some readers go; ``places`` are what else may lie where
    the file should. What ``runs`` is meant to be executed.
    """

    seeds: Callable[[], Sequence[bytes]]
    damaged: Callable[[Sequence[bytes]], st.SearchStrategy[Input]]
    read: Callable[[Path], None]
    suffix: str = ""
    places: Sequence[str] = ()
    runs: bool = False


@functools.cache
def _calls() -> tuple[LoadedCall, ...]:
    with open_pack(SMOKE) as pack:
        return tuple(
            pack.load(case.calls[0])
            for case in pack.manifest.cases
            if any(case.id.endswith(f"::{name}") for name in _CASES)
        )


# --- packs


@functools.cache
def _small() -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and members of two cases of the smoke pack."""
    contents = members(SMOKE)
    manifest = json.loads(contents.pop(MANIFEST))
    manifest["cases"] = [
        case
        for case in manifest["cases"]
        if case["id"].endswith(("exp[rank1-FP-none]", "relu[rank0-FP-none]"))
    ]
    manifest["left_out"] = manifest["left_out"][:1]
    used = json.dumps(manifest["cases"])
    manifest["members"] = {name: item for name, item in manifest["members"].items() if name in used}
    return manifest, {name: content for name, content in contents.items() if name in used}


def _sealed(manifest: bytes, contents: dict[str, bytes]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return written(Path(folder), manifest, contents).read_bytes()


def _resealed(manifest: dict[str, Any], contents: dict[str, bytes]) -> bytes:
    """With right hashes, so that what reads the members is reached."""
    listed = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        for name, content in contents.items()
    }
    return _sealed(json.dumps({**manifest, "members": listed}).encode(), contents)


def _pack() -> bytes:
    return _resealed(*_small())


@functools.cache
def _bomb() -> bytes:
    """An archive whose manifest unpacks to more than its header says."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, bytes(160 << 20))
    content = bytearray(file.getvalue())
    for mark, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        at = content.index(mark) + place
        content[at : at + 4] = (1000).to_bytes(4, "little")
    return bytes(content)


def _damaged_archives(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    return mutations.damaged_bytes([*seeds, _bomb()]).map(Input)


def _damaged_manifests(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    manifest, contents = _small()
    documents = mutations.damaged_json([json.dumps(manifest).encode()])
    return documents.map(lambda document: Input(_sealed(document, contents)))


def _damaged_members(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    manifest, contents = _small()

    @st.composite
    def packs(draw: st.DrawFn) -> Input:
        name = draw(st.sampled_from(sorted(contents)))
        return Input(_resealed(manifest, {**contents, name: draw(mutations.damaged_bytes([contents[name]]))}))

    return packs()


def _read_pack(path: Path) -> None:
    with open_pack(path) as pack:
        pack.verify()
        pack.summary()
        for case in pack.chosen([]):
            # What a runner is given, and where.
            assert not {"/", "\\", ".."} & {case.folder}
            for call in case.calls:
                pack.scenario(call)
                _judge(pack.load(call))


def _judge(call: LoadedCall) -> None:
    """Judge outputs that are all a little off."""
    outputs = []
    for array in call.expected:
        with np.errstate(all="ignore"):
            moved = (
                ~array
                if array.dtype == np.bool_
                else (array.astype(np.float64) * 1.01 + 1).astype(array.dtype)
            )
        outputs.append(moved)
    call.graph.operator_dtypes()
    judge_device(
        call.graph, call.inputs, outputs, call.expected, target="t", delegate="d", precise=lambda: call.exact
    )


# --- binary formats


def _damaged_bytes(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    return mutations.damaged_bytes(seeds).map(Input)


def _read_tosa(path: Path) -> None:
    graph = sound_graph(read_bytes(path, _LIMIT))
    for call in _calls():
        if not misfit(graph, call.inputs, call.expected):
            _judge(dataclasses.replace(call, graph=graph))


def _read_vgf(path: Path) -> None:
    content = read_bytes(path, _LIMIT)
    vgf = read_vgf(content)
    assert read_vgf(content + _MORE) == vgf
    for number in range(len(vgf.outputs)):
        vgf.is_written(number)
        vgf.shared_inputs(number)
    scenario_of(vgf)
    for call in _calls():
        vgf_misfit(vgf, call.inputs, call.expected)


def _read_pte(path: Path) -> None:
    content = read_bytes(path, FILE_LIMIT)
    read_executable(content)
    delegates = read_delegates(content)
    assert sum(map(len, set(delegates))) <= len(content)
    # No length leads out of the file.
    assert read_delegates(content + _MORE) == delegates


def _arrays() -> list[bytes]:
    plain = (np.arange(6.0).reshape(2, 3), np.zeros((), np.int8), np.ones((2, 0), np.bool_), np.arange(3))
    return [npy(array) for array in plain]


_DESCRIPTIONS = ("<f4", "|b1", "<i8", "|S0", "|V2", "|O", "<U3", "<M8[ns]", "<f2", "<f99", "|i1")
_SHAPES = (
    "(2, 3)",
    "()",
    "(0,)",
    "(-1,)",
    "(10000000000000,)",
    "(0, 9223372036854775807)",
    "(1,)*9",
    "(2.5,)",
)
#: Python that a header must never be taken for; it would be noticed.
_CODE = "__import__('tests.fuzz.formats', fromlist=['x']).executed()"


def executed() -> None:
    """What a header calls that is evaluated."""
    raise AssertionError("a header was executed")


@st.composite
def _headers(draw: st.DrawFn) -> bytes:
    parts = {
        "descr": draw(st.sampled_from([*(repr(text) for text in _DESCRIPTIONS), _CODE, "[('a', '<f4')]"])),
        "fortran_order": draw(st.sampled_from(["False", "True", "0", _CODE])),
        "shape": draw(st.sampled_from([*_SHAPES, _CODE])),
    }
    if draw(st.integers(0, 9)) == 9:
        parts[draw(st.sampled_from(["extra", "shape "]))] = "True"
    header = "{" + ", ".join(f"'{name}': {value}" for name, value in parts.items()) + ", }"
    header = draw(st.sampled_from([header, header, header + " " * 60, "(" * 2000, header[:-1]]))
    data = bytes(draw(st.sampled_from([0, 1, 4, 8, 24, 48])))
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + data


def _damaged_arrays(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    return st.one_of(_headers(), mutations.damaged_bytes(seeds)).map(Input)


def _read_npy(path: Path) -> None:
    content = read_bytes(path, _LIMIT)
    array = arrays.read_npy(content)
    assert array.nbytes <= len(content)
    array.tobytes()


# --- documents


def _results() -> list[bytes]:
    records = [record(), record("mul", target="emulation", verdict=Verdict.FAIL, message="wrong")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        environment = {"versions": {"torch": "2.13.0"}, "drivers": {"emulation": "lavapipe"}, "notes": ["a"]}
        with ResultsWriter(path, environment) as writer:
            writer.append_plan([item.id for item in records])
            for item in records:
                writer.append(item)
        return [path.read_bytes()]


def _read_results(path: Path) -> None:
    results = read_results([path])
    merged = merge([results, results])
    compare_runs(results, merged)
    summary_table(merged)


def _statement() -> list[bytes]:
    digest = "0" * 64
    made = statement.Statement(
        product="product",
        shard="1/1",
        pack=digest,
        tool=statement.Tool("0.1.0", digest),
        target="vulkan",
        device={"name": "device", "vendor_id": 1},
        layers="no layers",
        os="Linux",
        cpu="x86_64",
        python="3.11",
        versions={"numpy": "2.0"},
        files={"run1.jsonl": digest},
    )
    return [made.encode()]


def _checked(decode: Callable[[bytes], Any]) -> Callable[[Path], None]:
    """A reader of bytes whose one error is ValueError."""

    def read(path: Path) -> None:
        content = read_bytes(path, _LIMIT)
        try:
            decode(content)
        except ValueError as error:
            # A faulty reader's ValueError is not told from one that it means, but by its kind.
            if isinstance(error, (UnicodeError, json.JSONDecodeError)):
                raise
            raise Malformed(str(error)) from error

    return read


def _read_waivers(content: bytes) -> None:
    for waiver in waivers.read_waivers(content):
        waiver.matches("suites/operators/test_exponential.py::log[near_one-FP-none-vulkan]")


_WAIVER = b"""
[[waiver]]
case = "suites/operators/test_exponential.py::log[near_one-FP-none]"
device = "llvmpipe (LLVM 15.0.6, 256 bits)"
reason = "log loses 4 bits near 1"
link = "https://gitlab.freedesktop.org/mesa/mesa/-/issues/1"
expires = 2027-06-30

[[waiver]]
case = "suites/operators/test_exponential.py::exp[*"
cases = 3
device = "another"
reason = "exp is far off"
link = "https://example.org/1"
expires = 2027-06-30
"""


def _read_expectations(path: Path) -> None:
    found = load_expectations(path.parent)
    found.find("operators/test_exponential.py", "log", "near_one", "FP", "none", "emulation")


def _read_manifest(path: Path) -> None:
    choose_driver(str(path))


def _read_mandatory(path: Path) -> None:
    mandatory_cases(path)


def _mandatory() -> list[bytes]:
    return [(ROOT / "golden" / "mandatory" / "0.1.0.txt").read_bytes()[:500]]


def _damaged_lines(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    return mutations.damaged_lines(seeds).map(Input)


def _json(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    return mutations.damaged_json(seeds).map(Input)


def _toml(seeds: Sequence[bytes]) -> st.SearchStrategy[Input]:
    return mutations.damaged_toml(seeds, tomllib.loads).map(Input)


def _files(*paths: Path) -> Callable[[], Sequence[bytes]]:
    return lambda: [path.read_bytes() for path in paths]


_ICD = b'{"file_format_version": "1.0.1", "ICD": {"library_path": "libvulkan_x.so", "api_version": "1.3"}}'

FORMATS = {
    "npy": Format(_arrays, _damaged_arrays, _read_npy, places=PLACES),
    "pack": Format(lambda: [_pack()], _damaged_archives, _read_pack, places=PLACES),
    "manifest": Format(lambda: [_pack()], _damaged_manifests, _read_pack),
    "members": Format(lambda: [_pack()], _damaged_members, _read_pack),
    "tosa": Format(lambda: [call.delegate.tosa for call in _calls()], _damaged_bytes, _read_tosa),
    "vgf": Format(lambda: [call.delegate.vgf for call in _calls()], _damaged_bytes, _read_vgf),
    "pte": Format(_files(SEEDS / "sorted.pte"), _damaged_bytes, _read_pte, places=PLACES),
    "results": Format(_results, _damaged_lines, _read_results, ".jsonl", (*PLACES, "line")),
    "statement": Format(_statement, _json, _checked(statement.Statement.decode), places=PLACES),
    "capabilities": Format(
        _files(ROOT / "reports" / "qualification" / "nvidia-h200-capabilities.json"),
        _json,
        _checked(statement.parse_capabilities),
        places=PLACES,
    ),
    "waivers": Format(lambda: [_WAIVER], _toml, _checked(_read_waivers), places=PLACES),
    "expectations": Format(
        _files(ROOT / "golden" / "expectations" / "test_exponential.toml"),
        _toml,
        _read_expectations,
        ".toml",
        PLACES,
    ),
    "icd": Format(lambda: [_ICD], _json, _read_manifest, ".json", PLACES),
    "model": Format(models.sound, models.damaged, models.read, ".py", runs=True),
    "mandatory": Format(_mandatory, _damaged_bytes, _read_mandatory, places=PLACES),
}
