"""VGF files, sound and damaged."""

from __future__ import annotations

import random

import pytest
import torch

from tests.subjects import randn, request
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.formats.vgf import read_vgf
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower


@pytest.fixture(scope="module")
def delegate(cache: Cache) -> Delegate:
    (found,) = lower(request(torch.add, randn(3, 5), randn(5)), cache).delegates
    return found


def test_a_vgf_says_what_goes_in_and_out(delegate: Delegate) -> None:
    vgf = read_vgf(delegate.vgf)
    assert vgf.version == (0, 5, 0)
    assert vgf.segments == ("graph",)
    assert [(tensor.category, tensor.shape, tensor.dtype) for _, tensor in vgf.inputs] == [
        ("input", (3, 5), "float32"),
        ("input", (5,), "float32"),
    ]
    ((_, output),) = vgf.outputs
    assert (output.category, output.shape, output.nbytes, output.is_tensor) == ("output", (3, 5), 60, True)
    assert output.index in vgf.written
    assert len({binding for binding, _ in vgf.inputs + vgf.outputs}) == 3


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "0 bytes, the header alone takes"),
        (b"VGF", "3 bytes, the header alone takes"),
        (b"\0" * 4096, "does not start with the VGF magic number"),
        (b"PK\x03\x04" * 200, "does not start with the VGF magic number"),
    ],
)
def test_what_is_no_vgf_is_said_to_be_none(data: bytes, fault: str) -> None:
    with pytest.raises(ValueError, match=f"not a valid VGF file: .*{fault}"):
        read_vgf(data)


def test_a_vgf_of_another_version_is_refused(delegate: Delegate) -> None:
    changed = bytearray(delegate.vgf)
    changed[8] = 9
    with pytest.raises(ValueError, match=r"VGF version 9\.5\.0 is not supported here"):
        read_vgf(bytes(changed))


def test_every_truncation_is_refused_or_read(delegate: Delegate) -> None:
    """Cut anywhere, a VGF gives ValueError; only constants, which come last, may be missing."""
    refused = 0
    for length in range(0, len(delegate.vgf), 7):
        try:
            read_vgf(delegate.vgf[:length])
        except ValueError as error:
            assert "not a valid VGF file" in str(error)
            refused += 1
    assert refused > len(delegate.vgf) / 7 / 2


def test_damaged_bytes_never_raise_anything_else(delegate: Delegate) -> None:
    """One byte changed anywhere: a reading, or a ValueError that says why not."""
    numbers = random.Random(5)  # noqa: S311 - which bytes to damage
    refused = 0
    for _ in range(300):
        changed = bytearray(delegate.vgf)
        changed[numbers.randrange(len(changed))] ^= numbers.randrange(1, 256)
        try:
            read_vgf(bytes(changed))
        except ValueError:
            refused += 1
    assert refused > 0


def test_damaged_tosa_never_raises_anything_else(delegate: Delegate) -> None:
    numbers = random.Random(5)  # noqa: S311 - which bytes to damage
    refused = 0
    for _ in range(300):
        changed = bytearray(delegate.tosa)
        changed[numbers.randrange(len(changed))] ^= numbers.randrange(1, 256)
        try:
            read_graph(bytes(changed))
        except ValueError as error:
            assert str(error).startswith("not a TOSA flatbuffer")
            refused += 1
    assert refused > 0
