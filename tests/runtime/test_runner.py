"""The wheel's runtime in a worker, on programs for a backend that the wheel does have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tests.subjects import randn, request
from vgf_conformance.cases.case import Apply
from vgf_conformance.evaluation.eager import leaves, run_eager, tensors
from vgf_conformance.formats.pte import Executable, read_executable
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.runtime.probe import probe
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.runtime import InProcess
from vgf_conformance.vocabulary import Finding, Stage, Verdict


@pytest.fixture(scope="module")
def runtime() -> Iterator[InProcess]:
    made = InProcess(None, {}, 300)
    yield made
    made.close()


def lowered(
    module: torch.nn.Module | Callable[..., Any], *inputs: Any, quantised: bool = False
) -> Executable:
    """A program for XNNPACK where that takes the operators, and for the runtime's own kernels where not."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    if not isinstance(module, torch.nn.Module):
        module = Apply(module, {})
    exported = torch.export.export(module.eval(), inputs)
    partitioner = [XnnpackPartitioner()]
    if quantised:
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
        prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
        prepared(*inputs)
        exported = torch.export.export(convert_pt2e(prepared), inputs)
        # Without a partitioner quantisation is left to the runtime's kernels.
        partitioner = []
    program = to_edge_transform_and_lower(exported, partitioner=partitioner).to_executorch()
    return read_executable(bytes(program.buffer))


def executed(runtime: InProcess, program: Executable, *inputs: Any) -> list[torch.Tensor]:
    values = [to_numpy(value) if isinstance(value, torch.Tensor) else value for value in leaves(inputs)]
    outputs = runtime.execute(program, values)
    assert list(outputs.faults()) == []
    assert outputs.worker_bytes > 0
    return [from_numpy(array) for array in outputs.arrays]


def several(x: torch.Tensor, factor: int) -> tuple[Any, ...]:
    y = torch.sigmoid(x) * factor + torch.abs(x)
    return y, torch.topk(y, 2)[0], 5, None, 0.5


def test_a_delegated_program_with_outputs_of_all_kinds(runtime: InProcess) -> None:
    x = randn(2, 3, 4)
    program = lowered(several, x, 3)
    assert b"XnnpackBackend" in program.pte
    assert program.inputs[1] is None
    right = tensors(run_eager(Apply(several, {}), (x, 3)))
    found = executed(runtime, program, x, 3)
    assert [(item.shape, item.dtype) for item in found] == [(item.shape, item.dtype) for item in right]
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "x",
    [randn(1, 3, 4, 5).to(memory_format=torch.channels_last), randn(6, 4).T],
    ids=["channels_last", "transposed"],
)
def test_a_tensor_lies_in_memory_as_the_program_wants_it(x: torch.Tensor, runtime: InProcess) -> None:
    """The runtime takes the bytes as they are: in another order they are other numbers, without a word."""
    program = lowered(torch.abs, x)
    assert program.inputs[0] is not None
    assert program.inputs[0].dim_order != tuple(range(x.ndim))
    (found,) = executed(runtime, program, x.contiguous())
    assert torch.equal(found, x.abs())


def test_a_quantised_program_needs_the_quantised_kernels(runtime: InProcess) -> None:
    x = randn(4, 8)
    program = lowered(torch.nn.Linear(8, 3), x, quantised=True)
    assert b"quantized_decomposed::quantize_per_tensor" in program.pte
    (found,) = executed(runtime, program, x)
    assert found.shape == (4, 3)
    assert found.isfinite().all()
    assert found.unique().numel() > 6


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1.0)
        return torch.abs(x) + self.calls


def test_a_program_with_state_starts_each_run_alike(runtime: InProcess) -> None:
    x = randn(3)
    program = lowered(Counts(), x)
    for _ in range(2):
        (found,) = executed(runtime, program, x)
        torch.testing.assert_close(found, x.abs() + 1)


def refused(runtime: InProcess, program: Executable, *inputs: torch.Tensor) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        runtime.execute(program, [to_numpy(value) for value in inputs])
    assert caught.value.stage is Stage.RUN
    return caught.value


def test_what_the_runtime_refuses(runtime: InProcess, cache: Cache) -> None:
    """An operator without a kernel, a program without its backend, a broken one; and then one that runs."""
    x = randn(4)
    lacking = refused(runtime, lowered(lambda x: torch.sort(x)[0], x), x)
    assert (lacking.verdict, lacking.finding) == (Verdict.UNSUPPORTED, Finding.CAPABILITY)
    assert "Missing operator" in lacking.log
    assert "aten::sort" in lacking.log
    vgf = refused(runtime, read_executable(lower(request(torch.abs, x), cache).pte), x)
    assert (vgf.verdict, vgf.finding) == (Verdict.FAIL, Finding.RAISED)
    assert vgf.message.startswith("the ExecuTorch runtime: ")
    broken = refused(runtime, Executable(b"\0" * 64, "forward", (), ()))
    assert (broken.verdict, broken.finding) == (Verdict.FAIL, Finding.RAISED)
    (found,) = executed(runtime, lowered(torch.abs, x), x)
    assert torch.equal(found, x.abs())


def test_the_probe_tells_which_backends_are_there() -> None:
    there = probe("XnnpackBackend", None)
    assert (there["fault"], there["available"]) == ("", True)
    assert "XnnpackBackend" in there["registered"]
    absent = probe("VgfBackend", None)
    assert absent["available"] is False
    assert "VgfBackend" not in absent["registered"]


def test_numbers_of_an_execution_are_arrays(runtime: InProcess) -> None:
    x = randn(2)
    outputs = runtime.execute(lowered(lambda x: (torch.abs(x), 7, 0.5), x), [to_numpy(x)])
    assert [array.dtype for array in outputs.arrays] == [np.float32, np.int64, np.float32]
    assert [array.tolist() for array in outputs.arrays[1:]] == [7, 0.5]
