"""The disk cache: right artifacts, keys that change with everything that matters, and no lost results."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from executorch.backends.arm.quantizer import get_symmetric_quantization_config

from tests.subjects import FP, INT, Function, randn, request
from vgf_conformance.lowering import lower as lowering
from vgf_conformance.lowering.artifact import Artifact, LoweringFailure
from vgf_conformance.lowering.cache import SOURCES, Cache, default_folder, empty_cache
from vgf_conformance.lowering.lower import Request, lower
from vgf_conformance.lowering.versions import versions
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

X = randn(2, 3)


class Counted(Cache):
    """A cache that counts what is put into it."""

    puts = 0

    def put(self, key: str, value: Any) -> None:
        self.puts += 1
        super().put(key, value)


@pytest.fixture(scope="module")
def artifact(cache: Cache) -> Artifact:
    return lower(request(torch.abs, X, profile=INT, scheme="a8w8-pc"), cache)


def entry(folder: Path) -> Path:
    (found,) = (path for path in folder.rglob("*") if path.is_file())
    return found


def test_a_hit_gives_an_equal_artifact(tmp_path: Path) -> None:
    cache = Counted(tmp_path)
    first = lower(request(torch.abs, X), cache)
    second = lower(request(torch.abs, X), Cache(tmp_path))
    assert cache.puts == 1
    assert (first.cached, second.cached) == (False, True)
    assert second.made == first.made
    assert second.delegates == first.delegates
    assert second.pte == first.pte
    assert (second.leftovers, second.output_scales, second.versions, second.seconds) == (
        first.leftovers,
        first.output_scales,
        first.versions,
        first.seconds,
    )
    assert torch.equal(second.program.walk([X], lambda _, inputs: inputs)[0], X)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-1], id="cut"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], id="flipped bit"),
        pytest.param(lambda data: b"not an entry at all" * 9, id="foreign"),
    ],
)
def test_a_corrupt_entry_is_ignored_and_rebuilt(
    damage: Callable[[bytes], bytes], artifact: Artifact, tmp_path: Path
) -> None:
    Cache(tmp_path).put(artifact.key, artifact)
    path = entry(tmp_path)
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    cache = Counted(tmp_path)
    with pytest.warns(UserWarning, match=f"entry {artifact.key[:16]} is damaged; it is made again"):
        assert cache.get(artifact.key) is None
    cache.put(artifact.key, artifact)
    assert path.read_bytes() == sound
    assert cache.get(artifact.key) == artifact


def test_lowering_rebuilds_a_corrupt_entry(artifact: Artifact, tmp_path: Path) -> None:
    asked = request(torch.abs, X)
    first = lower(asked, Cache(tmp_path))
    entry(tmp_path).write_bytes(b"damaged")
    cache = Counted(tmp_path)
    with pytest.warns(UserWarning, match="is damaged; it is made again"):
        again = lower(request(torch.abs, X), cache)
    assert cache.puts == 1
    assert again.delegates == first.delegates


def test_programs_that_differ_in_the_tree_of_their_outputs_share_no_entry(cache: Cache) -> None:
    def nested(x: torch.Tensor) -> Any:
        return torch.abs(x), (torch.neg(x),)

    def flat(x: torch.Tensor) -> Any:
        return torch.abs(x), torch.neg(x)

    assert lower(request(nested, X), cache).key != lower(request(flat, X), cache).key


def test_an_entry_of_another_kind_is_lowered_anew(cache: Cache, tmp_path: Path) -> None:
    first = lower(request(torch.abs, X), cache)
    folder = Counted(tmp_path)
    folder.put(first.key, "a string of some other release")
    assert lower(request(torch.abs, X), folder).delegates == first.delegates
    assert folder.puts == 2


def test_an_entry_that_no_longer_unpickles_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    cache.put("key", Function(torch.abs))
    monkeypatch.delattr("tests.subjects.Function")
    with pytest.warns(UserWarning, match="entry key was written by another version; it is made again"):
        assert cache.get("key") is None


def test_a_folder_that_cannot_be_made_only_warns_and_once(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="takes no more entries: .*Not a directory"):
        cache.put(artifact.key, artifact)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(artifact.key, artifact)
    assert cache.get(artifact.key) is None


def test_lowering_works_without_a_usable_cache(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="takes no more entries"):
        found = lower(request(torch.abs, X), Cache(tmp_path / "file"))
    assert len(found.delegates) == 1


def test_a_full_disk_only_warns_and_leaves_no_torn_entry(
    artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fdopen

    def full(descriptor: int, mode: str) -> Any:
        os.close(descriptor)
        return real(os.open("/dev/full", os.O_WRONLY), mode)

    monkeypatch.setattr(os, "fdopen", full)
    cache = Cache(tmp_path)
    with pytest.warns(UserWarning, match=os.strerror(errno.ENOSPC)):
        cache.put(artifact.key, artifact)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert cache.get(artifact.key) is None


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VGF_CONFORMANCE_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("VGF_CONFORMANCE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert default_folder() == tmp_path / "home" / "vgf-conformance"


def test_an_empty_cache_knows_the_installed_files_and_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VGF_CONFORMANCE_CACHE", str(tmp_path))
    (tmp_path / SOURCES).write_text("{}")
    Cache(default_folder()).put("key", 1)
    with empty_cache():
        inside = default_folder()
        assert Cache(inside).get("key") is None
        assert (inside / SOURCES).read_text() == "{}"
        Cache(inside).put("key", 2)
    assert default_folder() == tmp_path
    assert not inside.exists()
    assert Cache(tmp_path).get("key") == 1


def key(asked: Request) -> str:
    exported = torch.export.export(asked.module, asked.inputs, dynamic_shapes=asked.dynamic_shapes)
    return lowering._key(asked, exported)


def linear(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Linear(3, 2)


def per_channel(quantizer: Any) -> None:
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))


def per_tensor(quantizer: Any) -> None:
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=False))


PLAIN = request(linear(0), X)
QUANTISED = request(linear(0), X, profile=INT, scheme="a8w8-pc")


def test_the_key_is_that_of_the_content() -> None:
    assert key(PLAIN) == key(request(linear(0), X))
    # Values of the inputs are not part of what is lowered.
    assert key(PLAIN) == key(request(linear(0), X + 1))
    # Calibration matters to quantised programs only.
    assert key(PLAIN) == key(request(linear(0), X, calibration=[(X * 2,)]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(PLAIN, request(linear(1), X), id="weights"),
        pytest.param(PLAIN, request(lambda x: linear(0)(x) + 1, X), id="graph"),
        pytest.param(PLAIN, request(linear(0), randn(4, 3)), id="shape"),
        pytest.param(PLAIN, request(linear(0), randn(3, 2).T), id="strides"),
        pytest.param(PLAIN, request(linear(0), X, profile=Profile.parse("FP+INT")), id="profile"),
        pytest.param(PLAIN, request(linear(0), X, profile=Profile.parse("FP+bf16")), id="extension"),
        pytest.param(
            PLAIN,
            request(linear(0), X, dynamic_shapes=({0: torch.export.Dim("rows")},)),
            id="dynamic shapes",
        ),
        pytest.param(QUANTISED, request(linear(0), X, profile=INT), id="no scheme"),
        pytest.param(QUANTISED, request(linear(0), X, profile=INT, scheme="a8w8-pt"), id="scheme"),
        pytest.param(
            QUANTISED,
            request(linear(0), X, profile=INT, scheme="a8w8-pc", calibration=[(X * 2,)]),
            id="calibration",
        ),
    ],
)
def test_the_key_changes_with_what_matters(one: Request, other: Request) -> None:
    assert key(one) != key(other)


def _nothing(quantizer: Any, kind: type[torch.nn.Module]) -> None:
    quantizer.set_module_type(kind, None)


def hook(kind: type[torch.nn.Module]) -> Callable[[Any], None]:
    def configure(quantizer: Any) -> None:
        per_channel(quantizer)
        _nothing(quantizer, kind)

    return configure


def without_convolutions(quantizer: Any) -> None:
    per_channel(quantizer)
    quantizer.set_module_type(torch.nn.Conv2d, None)


def without_linears(quantizer: Any) -> None:
    per_channel(quantizer)
    quantizer.set_module_type(torch.nn.Linear, None)


class Asked(Cache):
    """A cache that has a failure for whatever it is asked for, so that nothing is lowered."""

    key = ""

    def get(self, key: str) -> Any:
        self.key = key
        return LoweringFailure(Verdict.FAIL, Stage.LOWER, Finding.RAISED, "why")


def hooked_key(configure: Callable[[Any], None]) -> str:
    cache = Asked(Path(os.devnull))
    with pytest.raises(LoweringFailure):
        lower(request(linear(0), X, profile=INT, scheme="a8w8-pc", configure_quantizer=configure), cache)
    return cache.key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(per_channel, per_tensor, id="another configuration"),
        pytest.param(without_convolutions, without_linears, id="a name"),
        pytest.param(hook(torch.nn.Conv2d), hook(torch.nn.Linear), id="a closure"),
    ],
)
def test_the_key_follows_from_what_a_hook_did(
    one: Callable[[Any], None], other: Callable[[Any], None]
) -> None:
    assert hooked_key(one) != hooked_key(other)


def test_the_key_follows_a_helper_of_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    configure = hook(torch.nn.Linear)
    before = hooked_key(configure)
    monkeypatch.setitem(configure.__globals__, "_nothing", lambda quantizer, kind: None)
    assert hooked_key(configure) != before


def test_hooks_that_do_the_same_share_an_entry() -> None:
    assert hooked_key(without_linears) == hooked_key(hook(torch.nn.Linear))


def test_the_key_knows_the_branches_of_a_program() -> None:
    def branched(other: Callable[[torch.Tensor], torch.Tensor]) -> Request:
        def choose(x: torch.Tensor) -> Any:
            return torch.cond(x.sum() > 0, lambda x: x + 1, other, (x,))

        return request(choose, X)

    assert key(branched(lambda x: x - 1)) != key(branched(lambda x: x - 2))


@pytest.mark.parametrize("what", ["version", "files"])
def test_the_key_changes_with_the_tools(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(PLAIN)
    if what == "version":
        monkeypatch.setattr(lowering, "__version__", "0.0.0")
    else:
        changed = {**versions(), "files of executorch": "0123456789abcdef"}
        monkeypatch.setattr(lowering, "versions", lambda: changed)
    assert key(PLAIN) != before


def test_the_key_changes_with_a_converter_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [key(PLAIN)]
    converter = tmp_path / "model-converter"
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(converter))
    for build in ("one", "another"):
        converter.write_text(build)
        keys.append(key(PLAIN))
    assert len(set(keys)) == 3


def test_a_failure_of_the_backend_is_cached_with_all_that_it_says(tmp_path: Path) -> None:
    cache = Counted(tmp_path)
    failure = LoweringFailure(
        Verdict.FAIL, Stage.LOWER, Finding.RAISED, "why", "log", b"tosa", {"lower": 1.0}
    )
    cache.put("key", failure)
    found = cache.get("key")
    assert isinstance(found, LoweringFailure)
    assert found == failure
    assert str(found) == "why"


def test_fp_and_int_have_their_own_entries(cache: Cache, artifact: Artifact) -> None:
    assert lower(request(torch.abs, X, profile=FP), cache).key != artifact.key
