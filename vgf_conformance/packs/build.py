"""Builds a pack from suites: lowers each case and keeps what its delegate calls take and give.

What a case expects is what the reference model gives for each delegate call of its walk. Nothing here
depends on the time or on where it runs, so that two builds by one stack are the same file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from vgf_conformance import __version__
from vgf_conformance.arithmetic.declare import declares_properties
from vgf_conformance.attribution.noisy import with_all_visible
from vgf_conformance.cases.case import Case, Sample
from vgf_conformance.cases.dtypes import computed_dtypes
from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.comparison.device import LARGEST_PROPAGATED, judge_device
from vgf_conformance.comparison.operators import OPERATORS
from vgf_conformance.comparison.propagation import LAYOUT
from vgf_conformance.evaluation.collect import declared_cases
from vgf_conformance.evaluation.prepare import Prepared, prepare
from vgf_conformance.evaluation.subject import subject_of
from vgf_conformance.evaluation.walk import Call as WalkedCall
from vgf_conformance.files import require_replaceable
from vgf_conformance.formats.arrays import npy
from vgf_conformance.formats.convert import Refusal, convert
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.scenario import scenario_of
from vgf_conformance.formats.tosa import TosaGraph
from vgf_conformance.formats.tosa_rules import unsound
from vgf_conformance.formats.vgf import read_vgf
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.packs.archive import write_archive
from vgf_conformance.packs.manifest import (
    Call,
    Expected,
    LeftOut,
    Manifest,
    Member,
    PackedCase,
    StoredArray,
    case_id,
)
from vgf_conformance.packs.pack import Array, misfit, vgf_misfit
from vgf_conformance.quiet import quiet
from vgf_conformance.results.expectations import Expectation, Expectations, load_expectations
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.environment import package_versions
from vgf_conformance.targets.precise import PreciseFailure, precise_results
from vgf_conformance.targets.process import reference_target
from vgf_conformance.tosatests.collect import declares_tosa_tests
from vgf_conformance.vocabulary import Profile, Stage, UserError

_SUITES = "suites"
_EXPECTATIONS = Path("golden") / "expectations"
#: The seed behind every input and weight of a pack.
_SEED = 0
#: Bytes of a VGF with all intermediate results visible that still goes into a pack.
_VISIBLE_LIMIT = 8 << 20
_NOT_LOWERED = (
    "nothing is lowered here: TOSA's own tests and properties of targets run without PyTorch already"
)


class Unfit(Exception):
    """Why a case is left out."""


@dataclass(frozen=True)
class Planned:
    """A case with one sample, profile and scheme, and what the suite expects of it."""

    case: Case
    sample: Sample
    profile: str
    scheme: str
    expectations: Expectations

    @property
    def id(self) -> str:
        """The suite's id without the target."""
        return case_id(self.case.file, self.case.name, self.sample.name, self.profile, self.scheme)

    def expected(self, target: str) -> Expectation | None:
        """The failure that the suite expects on ``target``."""
        return self.expectations.find(
            self.case.file, self.case.name, self.sample.name, self.profile, self.scheme, target
        )


def build_pack(suites: Sequence[Path], tier: str, output: Path, say: Callable[[str], None]) -> Manifest:
    """Write the cases of ``suites``, files or folders, that run in ``tier`` into the pack ``output``.

    ``say`` is told of progress. Raises UserError for a suite that cannot be read, one without a case for
    the pack, and where ``output`` cannot be written.
    """
    require_replaceable(output)
    plan, left_out = _planned([*_suite_files(suites)], tier)
    reference = reference_target()
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        builder = _Builder(reference, Cache(default_folder()), _Store(Path(folder)))
        cases = []
        try:
            for number, planned in enumerate(plan, 1):
                try:
                    cases.append(builder.packed(planned))
                except Unfit as unfit:
                    left_out.append(LeftOut(planned.id, _line(str(unfit))))
                    say(f"left out: {planned.id}: {left_out[-1].reason}")
                if number % 25 == 0:
                    say(f"{number} of {len(plan)} cases")
        finally:
            reference.close()
        if not cases:
            raise UserError(f"no case of {', '.join(map(str, suites))} can be packed in tier {tier}")
        manifest = Manifest(
            tool=__version__,
            versions=package_versions(),
            tosa_versions=tuple(sorted({call.tosa_version for case in cases for call in case.calls})),
            tier=tier,
            cases=tuple(cases),
            left_out=tuple(left_out),
            members=builder.store.members,
        )
        encoded = manifest.encode()
        # What readers would refuse is found here, before anything is written.
        Manifest.decode(encoded)
        write_archive(output, encoded, builder.store.files)
    return manifest


def _suite_files(suites: Sequence[Path]) -> Iterator[Path]:
    for suite in suites:
        files = [suite] if suite.is_file() else sorted(suite.glob("**/test_*.py"))
        if not files:
            raise UserError(
                f"{suite}: {'no suite file in it' if suite.is_dir() else 'no such file or folder'}"
            )
        yield from files


def _planned(files: Sequence[Path], tier: str) -> tuple[list[Planned], list[LeftOut]]:
    plan: list[Planned] = []
    left_out: list[LeftOut] = []
    for path in files:
        root = _root(path)
        file = path.resolve().relative_to(root / _SUITES).as_posix()
        module = _imported(path)
        if declares_tosa_tests(module) or declares_properties(module):
            left_out.append(LeftOut(f"{_SUITES}/{file}", _NOT_LOWERED))
            continue
        expectations = load_expectations(root / _EXPECTATIONS)
        plan += [
            Planned(case, item, profile, scheme, expectations)
            for case in declared_cases(module, file)
            for item, (profile, scheme) in case.plan()
            if tier in ("all", case.tier_of(item))
        ]
    return plan, left_out


def _root(path: Path) -> Path:
    """The folder that holds ``suites/``, from which ids and expectations are counted."""
    for folder in path.resolve().parents:
        if folder.name == _SUITES:
            return folder.parent
    raise UserError(f"{path} does not lie in a folder called {_SUITES}")


def _imported(path: Path) -> ModuleType:
    """The suite's module, under a name that no other file has: pytest's own are those of one project.

    It stays registered: PyTorch looks for the globals of branches of ``torch.cond`` there.
    """
    place = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    name = f"vgf_conformance_suite_{place}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with quiet():
            spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(f"{path}: importing it raises {type(error).__name__}: {_line(str(error))}") from error
    return module


def _line(text: str) -> str:
    """The first line, of printable characters, as a manifest takes it."""
    first = text.strip().partition("\n")[0]
    return "".join(letter if letter.isprintable() else " " for letter in first)[:500]


class _Store:
    """Contents by hash, as files in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.members: dict[str, Member] = {}
        self.files: dict[str, Path] = {}

    def add(self, content: bytes, suffix: str) -> str:
        """Keep ``content`` and return its member's name; raises UserError where the disk refuses."""
        member = Member(hashlib.sha256(content).hexdigest(), len(content))
        name = f"objects/{member.sha256[:16]}.{suffix}"
        if self.members.setdefault(name, member) != member:
            raise UserError(f"two members would be called {name}: their hashes begin alike")
        if name not in self.files:
            path = self._folder / f"{member.sha256[:16]}.{suffix}"
            try:
                path.write_bytes(content)
            except OSError as error:
                raise UserError(f"cannot write {path}: {error.strerror or error}") from error
            self.files[name] = path
        return name

    def add_array(self, array: Array) -> StoredArray:
        """Keep an array as ``.npy``."""
        return StoredArray(self.add(npy(array), "npy"), array.dtype.name, array.shape)


@dataclass
class _Builder:
    reference: Target
    cache: Cache
    store: _Store

    def packed(self, planned: Planned) -> PackedCase:
        """Lower and run ``planned``; raises Unfit where there is nothing that a driver could be held to."""
        case, sample = planned.case, planned.sample
        known = [planned.expected(target) for target in ("reference", "emulation")]
        for entry in known:
            if entry is not None and entry.stage is not Stage.RUN:
                raise Unfit(f"the suite expects it to fail at {entry.stage.value}: {entry.reason}")
        try:
            subject = subject_of(case, sample, _SEED)
            prepared = prepare(
                subject, Profile.parse(planned.profile), planned.scheme, self.reference, self.cache
            )
        except LoweringFailure as failure:
            raise Unfit(f"fails at {failure.stage.value}: {failure.message}") from failure
        except Exception as error:  # a case that cannot be prepared says nothing about a driver
            raise Unfit(f"cannot be prepared: {type(error).__name__}: {error}") from error
        _require_sound(prepared)
        return PackedCase(
            id=planned.id,
            file=case.file,
            case=case.name,
            sample=sample.name,
            kind=case.kind,
            operator=case.operator,
            tier=case.tier_of(sample),
            profile=planned.profile,
            scheme=planned.scheme,
            dtypes=tuple(computed_dtypes(subject.module, subject.inputs, planned.scheme)),
            calls=tuple([self._call(prepared, call) for call in prepared.reference.calls]),
            known_failure="" if known[1] is None else _line(known[1].reason),
        )

    def _call(self, prepared: Prepared, walked: WalkedCall) -> Call:
        delegate, graph = prepared.artifact.delegates[walked.delegate], prepared.graphs[walked.delegate]
        vgf = read_vgf(delegate.vgf)
        inputs, outputs = walked.inputs, walked.outputs.arrays
        fault = unsound(graph) or misfit(graph, inputs, outputs) or vgf_misfit(vgf, inputs, outputs)
        if fault:
            raise Unfit(fault)
        judged = judge_device(graph, inputs, outputs, outputs, target="reference", delegate=delegate.name)
        exact = _exact(delegate.tosa, graph, inputs)
        return Call(
            delegate=delegate.name,
            nodes=delegate.nodes,
            tosa_version=graph.version,
            tosa=self.store.add(delegate.tosa, "tosa"),
            vgf=self.store.add(delegate.vgf, "vgf"),
            scenario=self.store.add(scenario_of(vgf).encode(), "json"),
            visible=self._visible(delegate, graph),
            inputs=tuple(map(self.store.add_array, inputs)),
            outputs=tuple(
                Expected(
                    self.store.add_array(array),
                    comparison.rule,
                    None if precise is None else self.store.add_array(precise),
                )
                for array, comparison, precise in zip(outputs, judged, exact, strict=True)
            ),
        )

    def _visible(self, delegate: Delegate, graph: TosaGraph) -> str | None:
        """The VGF that shows all intermediate results, of a graph that may be noisy and yet conform."""
        operators = [operator.name for operator in graph.operators if operator.name not in LAYOUT]
        floating = any(graph.tensors[name].dtype in FORMATS for name in graph.outputs)
        known = OPERATORS.keys() >= set(operators)
        if not (floating and known and 1 < len(operators) <= LARGEST_PROPAGATED):
            return None
        try:
            vgf = with_all_visible(delegate, graph, convert).vgf
        except (Refusal, ValueError):
            return None  # The case itself is whole without it.
        return self.store.add(vgf, "vgf") if len(vgf) <= _VISIBLE_LIMIT else None


def _require_sound(prepared: Prepared) -> None:
    """Raise Unfit where the suite would blame something that comes before the driver."""
    reference = prepared.reference
    if reference.failure is not None:
        raise Unfit(f"the reference model's run fails: {reference.failure.message}")
    if not reference.calls:
        raise Unfit("nothing is delegated")
    for problem in prepared.problems:
        raise Unfit(f"fails at {problem.stage.value}: {problem.message}")
    for call in reference.calls:
        for _, message in call.outputs.faults():
            raise Unfit(f"the reference model's run fails: {message}")
    for comparison in prepared.comparisons:
        if comparison.passed is False:
            raise Unfit(f"fails at {comparison.stage.value}: {comparison.message}")


def _exact(tosa: bytes, graph: TosaGraph, inputs: Sequence[Array]) -> list[Any]:
    """The floating-point outputs in fp64; None for others, and where the reference model gives none."""
    floating = [graph.tensors[name].dtype in FORMATS for name in graph.outputs]
    if not any(floating):
        return [None] * len(floating)
    try:
        exact = precise_results(tosa, graph, inputs)
    except PreciseFailure:
        return [None] * len(floating)
    return [array if wanted else None for array, wanted in zip(exact, floating, strict=True)]
