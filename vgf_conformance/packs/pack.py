"""An open pack: its manifest, and its members with every hash checked."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.attribution.noisy import with_all_visible
from vgf_conformance.formats.arrays import as_dtype, read_npy
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.scenario import scenario, scenario_of
from vgf_conformance.formats.tosa import TosaGraph, TosaTensor, read_graph, storage
from vgf_conformance.formats.tosa_rules import unsound
from vgf_conformance.formats.vgf import Vgf, read_vgf
from vgf_conformance.packs.archive import MANIFEST, TOTAL_LIMIT, Archive
from vgf_conformance.packs.manifest import Call, Manifest, PackedCase, StoredArray, members_of
from vgf_conformance.terminal import one_line
from vgf_conformance.untrusted import Malformed
from vgf_conformance.vocabulary import UserError

Array = NDArray[Any]

#: Bytes that a manifest may have: about three thousand for each call of a case.
MANIFEST_LIMIT = 64 << 20


@dataclass(frozen=True)
class LoadedCall:
    """A call with its members read: all that running and judging it needs.

    Arrays are in memory order; ``exact`` has the expected output itself where there is none in fp64, and
    is None where that is so for a floating-point one. ``visible`` is the delegate with all intermediate
    results visible, where the pack has it.
    """

    delegate: Delegate
    graph: TosaGraph
    inputs: list[Array]
    expected: list[Array]
    exact: list[Array] | None
    visible: Delegate | None = None


class Pack:
    """A pack whose manifest is sound and whose members are those that it lists.

    ``content`` checks a member's hash, ``verify`` all of them.
    """

    def __init__(self, archive: Archive) -> None:
        """Read the manifest; raises UserError where it, or the list of members, is not as it should be."""
        self._archive = archive
        self.path = archive.path
        self.manifest = self._read_manifest()
        self._require_members()

    @functools.cached_property
    def sha256(self) -> str:
        """The SHA-256 of the whole file."""
        return self._archive.whole_digest()

    @functools.cached_property
    def largest(self) -> int:
        """The elements of the largest result that a target gives: of an output, or of an intermediate one."""
        calls = [call for case in self.manifest.cases for call in case.calls]
        shapes = [output.array.shape for call in calls for output in call.outputs]
        shown = [self.load(call).visible for call in calls if call.visible is not None]
        shapes += [port.shape for delegate in shown if delegate is not None for port in delegate.outputs]
        return max(map(math.prod, shapes), default=0)

    def content(self, name: str) -> bytes:
        """A member's content; raises UserError, naming it, where its hash is another."""
        wanted = self.manifest.members[name].sha256
        try:
            content = self._archive.read(name)
        except Malformed as error:
            raise self._refused(name, f"damaged ({error}); its SHA-256 should be {wanted}") from error
        found = hashlib.sha256(content).hexdigest()
        if found != wanted:
            raise self._refused(name, f"altered: its SHA-256 is {found}, the manifest says {wanted}")
        return content

    def load(self, call: Call) -> LoadedCall:
        """Read a call; raises UserError, naming the member, where one is not what it should be.

        So nothing that judging relies on is a stranger's word: see misfit.
        """
        tosa = self.content(call.tosa)
        try:
            graph = sound_graph(tosa)
        except Malformed as error:
            raise self._refused(call.tosa, str(error)) from error
        inputs = [self._array(stored) for stored in call.inputs]
        expected = [self._array(output.array) for output in call.outputs]
        arrays = [stored for stored in (*call.inputs, *(output.array for output in call.outputs))]
        fault = misfit(graph, inputs, expected)
        if fault:
            raise self._refused(call.tosa, fault)
        delegate = Delegate(
            name=call.delegate,
            tosa=tosa,
            vgf=self._vgf(call, inputs, expected),
            inputs=tuple(map(_port, arrays[: len(inputs)])),
            outputs=tuple(map(_port, arrays[len(inputs) :])),
            nodes=call.nodes,
        )
        shown = self._visible(call, delegate, graph)
        return LoadedCall(delegate, graph, inputs, expected, self._exact(call, expected), shown)

    def _visible(self, call: Call, delegate: Delegate, graph: TosaGraph) -> Delegate | None:
        """The delegate whose VGF ``visible`` is: its graph follows from the call's own."""
        if call.visible is None:
            return None
        content = self.content(call.visible)
        try:
            shown = with_all_visible(delegate, graph, lambda tosa: content)
            ports = (shown.inputs, shown.outputs)
            fault = vgf_misfit(read_vgf(content), *([_like(port) for port in side] for side in ports))
        except (Malformed, ValueError) as error:
            raise self._refused(call.visible, str(error)) from error
        if fault:
            raise self._refused(call.visible, fault)
        return shown

    def _vgf(self, call: Call, inputs: Sequence[Array], expected: Sequence[Array]) -> bytes:
        """The VGF of a call, which has the call's arrays and the scenario that follows from it."""
        content = self.content(call.vgf)
        try:
            vgf = read_vgf(content)
            fault = vgf_misfit(vgf, inputs, expected)
            derived = "" if fault else scenario_of(vgf)
        except Malformed as error:
            raise self._refused(call.vgf, str(error)) from error
        if fault:
            raise self._refused(call.vgf, fault)
        if self.content(call.scenario) != derived.encode():
            raise self._refused(
                call.scenario, "is not the scenario of its VGF: other files, or other tensors"
            )
        return content

    def scenario(self, call: Call) -> bytes:
        """What ``scenario.json`` holds for a call: it follows from the VGF, whatever the pack says."""
        try:
            return scenario(self.content(call.vgf)).encode()
        except Malformed as error:
            raise self._refused(call.vgf, str(error)) from error

    def verify(self) -> None:
        """Read every member of every case, and the digest at the end; raises UserError."""
        for name in self.manifest.members:
            self.content(name)
        self._archive.require_digest()
        for case in self.manifest.cases:
            for call in case.calls:
                self.load(call)

    def summary(self) -> str:
        """What is in it, and the SHA-256 to compare with its publisher's."""
        manifest = self.manifest
        calls = sum(len(case.calls) for case in manifest.cases)
        return (
            f"{self.path}: {len(manifest.cases)} cases with {calls} delegate calls, {len(manifest.left_out)} "
            f"left out; TOSA {', '.join(manifest.tosa_versions)}; built by vgf-conformance {manifest.tool}\n"
            f"SHA-256 {self.sha256}"
        )

    def chosen(self, words: Sequence[str]) -> list[PackedCase]:
        """The cases whose ids contain all of ``words``; raises UserError where there are none."""
        found = [case for case in self.manifest.cases if all(word in case.id for word in words)]
        if not found:
            raise UserError(f"{self.path}: no case's id contains {' and '.join(words) or 'anything'}")
        return found

    def _read_manifest(self) -> Manifest:
        size = self._archive.sizes.get(MANIFEST)
        if size is None:
            raise UserError(f"{self.path}: not a pack: it has no {MANIFEST}")
        if size > MANIFEST_LIMIT:
            raise self._refused(MANIFEST, f"{size} bytes, more than any pack's")
        try:
            return Manifest.decode(self._archive.read(MANIFEST))
        except Malformed as error:
            raise self._refused(MANIFEST, str(error)) from error

    def _require_members(self) -> None:
        sizes, listed = self._archive.sizes, self.manifest.members
        for name in sorted((sizes.keys() - {MANIFEST}) ^ listed.keys()):
            raise self._refused(name, "missing" if name in listed else "the manifest does not list it")
        for name, member in listed.items():
            if sizes[name] != member.size:
                raise self._refused(name, f"{sizes[name]} bytes, the manifest says {member.size}")

        read = sum(
            listed[name].size
            for case in self.manifest.cases
            for call in case.calls
            for name in members_of(call)
        )
        if read > TOTAL_LIMIT:
            raise self._refused(MANIFEST, f"its cases would read {read} bytes, more than any pack's")

    def _exact(self, call: Call, expected: list[Array]) -> list[Array] | None:
        exact = []
        for output, array in zip(call.outputs, expected, strict=True):
            if output.exact is None and array.dtype.kind not in "iub":
                return None
            exact.append(array if output.exact is None else self._array(output.exact))
            if exact[-1].shape != array.shape:
                raise self._refused(output.array.member, "another shape than it has in fp64")
        return exact

    def _array(self, stored: StoredArray) -> Array:
        try:
            array = as_dtype(read_npy(self.content(stored.member)), stored.dtype)
            if array.shape != stored.shape:
                raise Malformed(f"has shape {list(array.shape)}, the manifest says {list(stored.shape)}")
        except Malformed as error:
            raise self._refused(stored.member, str(error)) from error
        return array

    def _refused(self, name: str, why: str) -> UserError:
        # Names and damaged data are a stranger's: no control character gets to a terminal.
        return UserError(f"{self.path}: member {ascii(name)[1:-1]}: {one_line(why)}")


def sound_graph(tosa: bytes) -> TosaGraph:
    """The graph in a ``.tosa``; raises Malformed where it is none, or one that nobody could judge by."""
    graph = read_graph(tosa)
    fault = unsound(graph)
    if fault:
        raise Malformed(f"not a sound TOSA graph: {fault}")
    return graph


def misfit(graph: TosaGraph, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """How a call's arrays differ from what its graph declares; empty where they fit."""
    for what, names, arrays in (("input", graph.inputs, inputs), ("output", graph.outputs, outputs)):
        if len(names) != len(arrays):
            return f"the graph has {len(names)} {what}s, the call {len(arrays)}"
        for number, (name, array) in enumerate(zip(names, arrays, strict=True)):
            tensor = graph.tensors[name]
            if not _fits(tensor, array):
                declared, given = f"{tensor.dtype} {list(tensor.shape)}", f"{array.dtype} {list(array.shape)}"
                return f"{what} {number} of the graph is {declared}, the call's {given}"
    return ""


def _fits(tensor: TosaTensor, array: Array) -> bool:
    # Some graphs have a rank-0 tensor as one of shape [1].
    scalar = array.size == 1 and set(tensor.shape) <= {1}
    return array.dtype == storage(tensor.dtype) and (scalar or array.shape == tensor.shape)


def vgf_misfit(vgf: Vgf, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """How arrays differ from what the VGF declares, by which the scenario runner reads and writes files.

    An output of rank 0 may be one of shape [1] there. Empty where they fit.
    """
    for what, slots, arrays in (("input", vgf.inputs, inputs), ("output", vgf.outputs, outputs)):
        if len(slots) != len(arrays):
            return f"the VGF has {len(slots)} {what}s, the call {len(arrays)}"
        for number, ((_, tensor), array) in enumerate(zip(slots, arrays, strict=True)):
            scalar = what == "output" and array.size == 1 and set(tensor.shape) <= {1}
            if tensor.dtype != array.dtype.name or (tensor.shape != array.shape and not scalar):
                declared, given = f"{tensor.dtype} {list(tensor.shape)}", f"{array.dtype} {list(array.shape)}"
                return f"{what} {number} of the VGF is {declared}, the program's {given}"
    return ""


def _like(port: Port) -> Array:
    """An array of a port's type and shape, which takes no memory."""
    return np.broadcast_to(np.zeros((), storage(port.dtype)), port.shape)


def _port(stored: StoredArray) -> Port:
    return Port(stored.shape, stored.dtype, tuple(range(len(stored.shape))))


@contextmanager
def open_pack(path: Path) -> Iterator[Pack]:
    """Open the pack at ``path``; raises UserError where it is none."""
    with Archive(path) as archive:
        yield Pack(archive)
