"""Lowers one module for one profile and scheme, through the backend's public API, once."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import io
import os
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
from executorch.exir import EdgeProgramManager, to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram

from vgf_conformance import __version__
from vgf_conformance.formats.convert import beside_python, find_converter
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.launch import signal_name
from vgf_conformance.lowering.artifact import Artifact, LeftoverNode, LoweringFailure
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.causes import describe, innermost, whole
from vgf_conformance.lowering.conversions import Conversions, conversions
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.passes import Passes, listening
from vgf_conformance.lowering.program import (
    NotRepresentable,
    Program,
    Ref,
    all_nodes,
    constants_of,
    delegate_calls,
    operator_name,
    read_program,
)
from vgf_conformance.lowering.quantise import prepare, quantise
from vgf_conformance.lowering.reasons import rejection_reasons
from vgf_conformance.lowering.speed import remember_composite_operators
from vgf_conformance.lowering.steps import Steps
from vgf_conformance.lowering.tensors import port_of
from vgf_conformance.lowering.versions import versions
from vgf_conformance.quiet import quiet
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

_DEQUANTISE = "quantized_decomposed.dequantize"
#: The form of an artifact: another one is not taken for this one's.
_FORM = 3
_BOUNDARY = ("quantized_decomposed.quantize", _DEQUANTISE)

#: What the backend says where it finds no converter, what a shell's exit status says where a command cannot
#: be started, and what the dynamic linker says where its libraries do not fit.
_NO_CONVERTER = ("Unable to locate a model converter", "Resolved converter candidate")
_NOT_STARTED = (126, 127)
_NOT_LOADED = ("GLIBC_", "GLIBCXX_", "error while loading shared libraries")


@dataclass
class Request:
    """What to lower. ``calibration`` is not used where the scheme is ``none``.

    ``located`` asks for operators that say where in the PyTorch program they come from, which makes
    the TOSA graphs larger.
    """

    module: torch.nn.Module
    inputs: tuple[Any, ...]
    profile: Profile
    scheme: str
    calibration: Sequence[tuple[Any, ...]] = ()
    dynamic_shapes: Any = None
    configure_quantizer: Callable[[Any], None] | None = None
    located: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    passes: Passes = field(default_factory=Passes)


def export(request: Request) -> ExportedProgram:
    """The module as torch.export sees it; raises LoweringFailure."""
    with _stage(request, Stage.EXPORT, Verdict.ERROR):
        return torch.export.export(request.module, request.inputs, dynamic_shapes=request.dynamic_shapes)


def lower(request: Request, cache: Cache | None = None, exported: ExportedProgram | None = None) -> Artifact:
    """Lower ``request``, or take the artifact (or the failure) from the cache.

    ``exported`` is what ``export`` made of it, where that was called already. Raises LoweringFailure.
    """
    remember_composite_operators()
    _find_converter()
    exported = exported or export(request)
    # What a hook does to the quantizer cannot be told from its code: a name, a closure, a helper may differ.
    # So its program is quantised each time, and what came out of that is the key.
    hooked = quantised_for(request, exported) if _has_hook(request) else None
    key = _key(request, exported, hooked and hooked.program)
    outcome = cache.get(key) if cache else None
    if isinstance(outcome, (Artifact, LoweringFailure)):
        outcome = dataclasses.replace(outcome, cached=True)
    else:
        try:
            outcome = _lower_exported(request, exported, hooked, key)
        except LoweringFailure as failure:
            failure.seconds, failure.made = dict(request.seconds), _now()
            outcome = failure
        # An error is this machine's or this run's, a failure the backend's: only that is worth keeping.
        if cache and not (isinstance(outcome, LoweringFailure) and outcome.verdict is Verdict.ERROR):
            cache.put(key, outcome)
    if isinstance(outcome, LoweringFailure):
        raise outcome
    return outcome


def _specification(profile: Profile) -> VgfCompileSpec:
    try:
        return VgfCompileSpec(profile.specification)
    except ValueError as error:
        message = f"profile {profile.name}: the backend does not know {profile.specification}: {error}"
        raise LoweringFailure(Verdict.ERROR, Stage.EXPORT, Finding.INPUT, message) from error


def _find_converter() -> None:
    """Name the converter to executorch.

    By itself it finds none where the environment is not activated, and looks in the working directory where
    PATH says so.
    """
    if found := find_converter():
        os.environ["MODEL_CONVERTER_PATH"] = found


def _own_converter() -> tuple[object, ...]:
    """What tells builds of a user's own converter apart; empty for the package's, which has a version."""
    path = Path(find_converter() or "")
    if path == beside_python() or not path.is_file():
        return ()
    return (str(path), path.stat().st_size, path.stat().st_mtime_ns)


def _has_hook(request: Request) -> bool:
    return request.scheme != "none" and request.configure_quantizer is not None


def prepared_for(request: Request, exported: ExportedProgram) -> torch.fx.GraphModule:
    """``exported`` as it is prepared for quantisation; raises LoweringFailure."""
    return prepared_module(request, exported.module(check_guards=False))


def prepared_module(request: Request, module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same of an exported program's ``module`` (without guards), which is rewritten."""
    with _stage(request, Stage.QUANTISE, Verdict.FAIL):
        specification = _specification(request.profile)
        return prepare(module, specification, request.scheme, request.configure_quantizer)


@dataclass(frozen=True)
class QuantisedProgram:
    """The quantised program, and how it was made."""

    program: ExportedProgram
    steps: Steps


def quantised_for(request: Request, exported: ExportedProgram) -> QuantisedProgram:
    """The program after prepare, calibration and convert; raises LoweringFailure."""
    with _stage(request, Stage.QUANTISE, Verdict.FAIL):
        made = quantise(
            exported,
            _specification(request.profile),
            request.scheme,
            request.calibration,
            request.configure_quantizer,
        )
        program = torch.export.export(made.converted, request.inputs, dynamic_shapes=request.dynamic_shapes)
        return QuantisedProgram(program, made.steps)


def _lower_exported(
    request: Request, exported: ExportedProgram, hooked: QuantisedProgram | None, key: str
) -> Artifact:
    """Quantise, unless ``hooked`` is the program quantised already, and lower.

    Raises LoweringFailure, which holds the steps of quantisation where it got beyond them.
    """
    if request.scheme == "none":
        return _lower_program(request, exported, None, key)
    quantised = hooked or quantised_for(request, exported)
    try:
        return _lower_program(request, quantised.program, quantised.steps, key)
    except LoweringFailure as failure:
        failure.steps = quantised.steps
        raise


def _lower_program(request: Request, exported: ExportedProgram, steps: Steps | None, key: str) -> Artifact:
    specification = _specification(request.profile)
    if request.located:
        specification.dump_debug_info(VgfCompileSpec.DebugMode.TOSA)
    quantised: Program | None = None
    scales: tuple[float | None, ...] = ()
    if steps is not None:
        with _stage(request, Stage.QUANTISE, Verdict.FAIL):
            quantised, _ = read_program(exported)
            scales = output_scales(quantised)
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        specification.dump_intermediate_artifacts_to(folder)
        stage = _stage(request, Stage.LOWER, Verdict.FAIL, Path(folder))
        with stage, rejection_reasons() as reasons, conversions() as made:
            # With the defaults of the public API: a user who follows ExecuTorch's own first page gets
            # its check of the edge program too, and what that refuses is a finding.
            edge = to_edge_transform_and_lower(exported, partitioner=[VgfPartitioner(specification)])
            # to_executorch rewrites the edge program in place, so it is read first.
            program, lowered = read_program(edge.exported_program())
            leftovers = _leftovers(edge.exported_program(), reasons)
            pte = b"" if made.refused else edge.to_executorch().buffer
    delegates = tuple(_delegate(module, number, edge, made) for number, module in enumerate(lowered))
    return Artifact(
        key=key,
        program=program,
        steps=steps,
        quantised=quantised,
        output_scales=scales or (None,) * len(program.outputs),
        delegates=delegates,
        leftovers=leftovers,
        pte=bytes(pte),
        seconds=dict(request.seconds),
        versions=versions(),
        made=_now(),
        passes=tuple(sorted(request.passes.changed)),
        refusals={
            number: _rejection(made.refused[vgf], made.graphs[vgf]).message
            for number, vgf in enumerate(bytes(module.processed_bytes) for module in lowered)
            if vgf in made.refused
        },
    )


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def output_scales(program: Program) -> tuple[float | None, ...]:
    """The quantisation step of each output that a per-tensor dequantisation makes; None for the others."""
    steps = {step.name: step for step in program.steps}
    scales: list[float | None] = []
    for output in program.outputs:
        step = steps.get(output.name) if isinstance(output, Ref) else None
        # Operators that move data keep the step of what they move.
        while step is not None and not step.operator.startswith(_DEQUANTISE) and moves_data(step.operator):
            source = step.args[0] if step.args else None
            step = steps.get(source.name) if isinstance(source, Ref) else None
        found = step is not None and step.operator.startswith(f"{_DEQUANTISE}_per_tensor")
        scales.append(float(step.args[1]) if found and step is not None else None)
    return tuple(scales)


def _delegate(
    module: LoweredBackendModule, number: int, edge: EdgeProgramManager, made: Conversions
) -> Delegate:
    vgf = bytes(module.processed_bytes)
    call = list(delegate_calls(edge.exported_program().graph_module))[number]
    original = module.original_module.graph
    return Delegate(
        name=f"delegate {number}",
        tosa=made.graphs[vgf],
        vgf=b"" if vgf in made.refused else vgf,
        inputs=tuple(port_of(node.meta["val"]) for node in call.args[1:]),
        outputs=tuple(port_of(value) for value in _as_tuple(call.meta["val"])),
        nodes=sum(node.op == "call_function" and not _is_boundary(node.target) for node in original.nodes),
        scales=made.scales[vgf],
        parameters=_parameters(module.original_module),
    )


def _parameters(exported: ExportedProgram) -> tuple[tuple[float, ...], ...]:
    """The scales of all that is quantised and dequantised in a delegate's program, before any pass.

    Empty where one of them is not to be found: in control flow, which hands it from graph to graph.
    """
    tensors, found = constants_of(exported), dict[tuple[float, ...], None]()
    for node in all_nodes(exported.graph_module):
        if node.op != "call_function" or not _is_boundary(node.target):
            continue
        scale: Any = node.args[1]
        if isinstance(scale, torch.fx.Node):
            if scale.name not in tensors:
                return ()
            scale = tensors[scale.name].detach().reshape(-1).tolist()
        found[tuple(scale) if isinstance(scale, list) else (float(scale),)] = None
    return tuple(found)


def _leftovers(exported: ExportedProgram, reasons: dict[str, str]) -> tuple[LeftoverNode, ...]:
    nodes = []
    for node in all_nodes(exported.graph_module):
        if node.op != "call_function" or node.name.startswith(("executorch_call_delegate", "getitem")):
            continue
        if _is_boundary(node.target):
            continue
        reason = reasons.get(node.name, "not supported by the TOSA partitioner")
        nodes.append(LeftoverNode(operator_name(node.target), reason))
    return tuple(nodes)


def _is_boundary(target: Any) -> bool:
    return str(getattr(target, "_op", target)).startswith(_BOUNDARY)


def _as_tuple(value: Any) -> tuple[torch.Tensor, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _key(request: Request, exported: ExportedProgram, hooked: ExportedProgram | None = None) -> str:
    """Everything that the artifact depends on, as one digest; ``hooked`` is what a quantizer's hook made."""
    digest = hashlib.sha256()
    parts: list[Any] = [
        __version__,
        _FORM,
        sorted(versions().items()),
        _own_converter(),
        request.profile.specification,
        request.scheme,
        *(["located"] if request.located else []),
        [_signature(leaf) for leaf in torch.utils._pytree.tree_leaves(request.inputs)],
        str(request.dynamic_shapes),
    ]
    digest.update(repr(parts).encode())
    _digest_program(digest, exported)
    if hooked is not None:
        _digest_program(digest, hooked)
    elif request.scheme != "none":
        for leaf in torch.utils._pytree.tree_leaves(list(request.calibration)):
            _digest_tensor(digest, leaf)
    return digest.hexdigest()


def _digest_program(digest: Any, exported: ExportedProgram) -> None:
    """The graph with those of its branches and loops, what the quantizer noted, signature and tensors."""
    tensors = {**exported.state_dict, **exported.constants}
    modules = {
        name: str(module.graph)
        for name, module in exported.graph_module.named_modules()
        if isinstance(module, torch.fx.GraphModule)
    }
    parts = [
        modules,
        [node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"],
        [node.meta.get("custom") for node in exported.graph.nodes],
        str(exported.graph_signature),
        str(exported.call_spec.out_spec),
        sorted(tensors),
    ]
    digest.update(repr(parts).encode())
    for name in sorted(tensors):
        _digest_tensor(digest, tensors[name])


def _signature(value: Any) -> Any:
    return (value.dtype, value.shape, value.stride()) if isinstance(value, torch.Tensor) else value


def _digest_tensor(digest: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        buffer = io.BytesIO()
        pickle.dump((value.dtype, tuple(value.shape)), buffer)
        digest.update(buffer.getvalue())
        digest.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    else:
        digest.update(repr(value).encode())


@contextlib.contextmanager
def _stage(request: Request, stage: Stage, verdict: Verdict, folder: Path | None = None) -> Iterator[None]:
    """Time a stage, listen to its passes, keep it quiet, and turn what it raises into a LoweringFailure."""
    start = time.perf_counter()
    try:
        with quiet(), listening(request.passes):
            yield
    except LoweringFailure:
        raise
    except NotRepresentable as error:
        raise LoweringFailure(
            Verdict.UNSUPPORTED, stage, Finding.RAISED, f"the harness cannot walk this program: {error}"
        ) from error
    except Exception as error:
        raise _failure(error, stage, verdict, folder) from error
    finally:
        request.seconds[stage.value] = request.seconds.get(stage.value, 0.0) + time.perf_counter() - start


def _failure(error: Exception, stage: Stage, verdict: Verdict, folder: Path | None) -> LoweringFailure:
    if stage is Stage.LOWER:
        if why := _unlaunched(error):
            message = f"the model converter does not launch: {why}"
            return LoweringFailure(Verdict.ERROR, Stage.CONVERT, Finding.RAISED, message, whole(error))
        rejected = sorted(folder.glob("failed_model_converter_input*.tosa")) if folder else []
        if rejected:
            return _rejection(error, rejected[0].read_bytes())
    return LoweringFailure(verdict, stage, Finding.RAISED, describe(error), whole(error))


def _unlaunched(error: Exception) -> str:
    """Why the converter's program did not even start; empty where it did, or was not called."""
    cause = innermost(error)
    if isinstance(cause, OSError):
        return describe(error)
    if any(text in str(cause) for text in _NO_CONVERTER):
        return str(cause)
    if isinstance(cause, subprocess.CalledProcessError):
        words = (cause.stderr or b"").decode(errors="replace").strip()
        if cause.returncode in _NOT_STARTED or any(text in words for text in _NOT_LOADED):
            return f"exit status {cause.returncode}: {words or 'it says nothing'}"
    return ""


def _rejection(error: Exception, tosa: bytes) -> LoweringFailure:
    cause, output = innermost(error), str(error)
    if isinstance(cause, subprocess.CalledProcessError) and cause.returncode < 0:
        message = f"the model converter was ended by {signal_name(cause.returncode)}"
        return LoweringFailure(Verdict.CRASH, Stage.CONVERT, Finding.CRASHED, message, output, tosa)
    lines = [line.strip() for line in output.splitlines() if "error" in line.lower()]
    message = f"the model converter rejects the TOSA graph: {lines[0] if lines else 'it does not say why'}"
    return LoweringFailure(Verdict.FAIL, Stage.CONVERT, Finding.RAISED, message, output, tosa)
