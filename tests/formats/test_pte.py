"""Delegates read out of .pte programs, sound and damaged."""

from __future__ import annotations

import random

import pytest
import torch

from tests.subjects import FP, randn, request
from vgf_conformance.formats.delegate import Port
from vgf_conformance.formats.pte import read_delegates, read_executable
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower


def sorted_between(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(torch.exp(x), dim=-1)[0] * 2.0


@pytest.fixture(scope="module")
def artifact(cache: Cache) -> Artifact:
    return lower(request(sorted_between, randn(3, 5), profile=FP), cache)


def test_delegates_are_byte_identical_to_what_lowering_dumped(artifact: Artifact) -> None:
    found = read_delegates(artifact.pte)
    assert len(found) == 2
    assert found == [delegate.vgf for delegate in artifact.delegates]
    assert found[0] != found[1]


def test_a_program_without_delegates(cache: Cache) -> None:
    nothing = lower(request(lambda x: torch.sort(x)[0], randn(3, 5)), cache)
    assert nothing.delegates == ()
    with pytest.raises(ValueError, match="holds no VGF delegate"):
        read_delegates(nothing.pte)


@pytest.mark.parametrize("data", [b"", b"ET", b"\0" * 64, b"PK\x03\x04 a zip archive"])
def test_what_is_no_program(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an ExecuTorch program"):
        read_delegates(data)


def test_a_program_cut_short(artifact: Artifact) -> None:
    with pytest.raises(ValueError, match=r"corrupt \.pte: a delegate ends at byte"):
        read_delegates(artifact.pte[: len(artifact.pte) // 2])
    for length in range(8, len(artifact.pte) - 64, 31):
        with pytest.raises(ValueError, match=r"corrupt \.pte|holds no VGF delegate"):
            read_delegates(artifact.pte[:length])


def test_damaged_bytes_never_raise_anything_else(artifact: Artifact) -> None:
    """One byte changed anywhere in the flatbuffer: a reading, or a ValueError."""
    numbers = random.Random(5)  # noqa: S311 - which bytes to damage
    refused = 0
    for _ in range(300):
        changed = bytearray(artifact.pte)
        changed[numbers.randrange(2048)] ^= numbers.randrange(1, 256)
        try:
            read_delegates(bytes(changed))
        except ValueError:
            refused += 1
    assert refused > 0


def test_the_boundary_of_a_program(cache: Cache) -> None:
    """Channels_last, a plain number on either side, and an input that another order of axes is stored in."""
    image, table = randn(1, 3, 4, 5).to(memory_format=torch.channels_last), randn(6, 4).T
    asked = request(lambda x, y, n: (torch.abs(x), y * n > 0, 7), image, table, 3)
    program = read_executable(lower(asked, cache).pte)
    assert program.method == "forward"
    last = Port((1, 3, 4, 5), "float32", (0, 2, 3, 1))
    assert program.inputs == (last, Port((4, 6), "float32", (1, 0)), None)
    assert program.outputs[0] == last
    assert program.outputs[1] is not None
    assert (program.outputs[1].shape, program.outputs[1].dtype) == ((4, 6), "bool")
    assert program.outputs[2] is None


def test_damaged_programs_have_no_boundary(artifact: Artifact) -> None:
    """Whatever the damage: an error that says so, or a boundary, and never another exception."""
    with pytest.raises(ValueError, match="not an ExecuTorch program"):
        read_executable(b"PK\x03\x04 a zip archive")
    with pytest.raises(ValueError, match="corrupt"):
        read_executable(artifact.pte[:200])
    draw = random.Random(0)  # noqa: S311 - damage that repeats, no secret
    refused = 0
    for _ in range(300):
        damaged = bytearray(artifact.pte)
        damaged[draw.randrange(8, min(len(damaged), 4000))] = draw.randrange(256)
        try:
            read_executable(bytes(damaged))
        except ValueError:
            refused += 1
    assert refused > 0
