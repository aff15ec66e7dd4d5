"""FFT2D and RFFT2D against numpy's transforms, and against the reference model's exact results and bounds."""

from __future__ import annotations

import numpy as np
import pytest

from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.propagation import propagate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.tosatests.generate import Generated, Generator, Options

SHAPE = (2, 16, 32)


def generated(operator: str, part: str, shape: tuple[int, ...] = SHAPE) -> Generated:
    maker = Generator(Options(operator, shapes=(shape,)))
    return maker.write(next(item.name for item in maker.listed() if part in item.name))


@pytest.mark.parametrize(
    ("operator", "part"),
    [("FFT2D", "inverseFalse_lclbnd0_s1"), ("FFT2D", "inverseTrue_lclbnd1_s0"), ("RFFT2D", "lclbnd1_s3")],
)
def test_results_are_numpys(operator: str, part: str) -> None:
    test = generated(operator, part)
    graph = read_graph(test.tosa)
    parts = [test.inputs[name].astype(np.float64) for name in graph.inputs]
    if operator == "RFFT2D":
        expected = np.fft.rfft2(parts[0])
    elif "inverseTrue" in part:
        expected = np.fft.ifft2(parts[0] + 1j * parts[1], norm="forward")
    else:
        expected = np.fft.fft2(parts[0] + 1j * parts[1])
    real, imaginary = propagate(graph, [test.inputs[name] for name in graph.inputs])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(real.value, expected.real, atol=1e-12 * scale)
    np.testing.assert_allclose(imaginary.value, expected.imag, atol=1e-12 * scale)


@pytest.mark.parametrize(
    ("operator", "part", "ksb"),
    [
        ("FFT2D", "inverseFalse_lclbnd0_s1", 2 * 16 * 32),
        ("FFT2D", "inverseTrue_lclbnd1_s3", 2 * 16 * 32),
        ("RFFT2D", "lclbnd0_s0", 16 * 32),
        ("RFFT2D", "lclbnd1_s3", 16 * 32),
    ],
)
def test_the_bound_is_the_reference_models(operator: str, part: str, ksb: int) -> None:
    test = generated(operator, part)
    graph = read_graph(test.tosa)
    ours = propagate(graph, [test.inputs[name] for name in graph.inputs])
    for name, bounded in zip(graph.outputs, ours, strict=True):
        magnitude = test.exact()[name].bounds
        assert magnitude is not None
        # 2 ksb units of half an ULP of B: TOSA 1.0.2, "Dot product accuracy requirements".
        np.testing.assert_allclose(bounded.error, 2 * ksb * magnitude * 2.0**-24, rtol=1e-9)


@pytest.mark.parametrize("operator", ["FFT2D", "RFFT2D"])
def test_infinities_and_nan_stand_where_the_reference_has_them(operator: str) -> None:
    test = generated(operator, "_fs", (1, 4, 8))
    graph = read_graph(test.tosa)
    ours = propagate(graph, [test.inputs[name] for name in graph.inputs])
    for name, bounded in zip(graph.outputs, ours, strict=True):
        np.testing.assert_array_equal(bounded.value, test.exact()[name].value)


def test_errors_that_are_each_allowed_may_be_too_many() -> None:
    test = generated("RFFT2D", "lclbnd0_s0")
    graph = read_graph(test.tosa)
    inputs = [test.inputs[name] for name in graph.inputs]
    right = [item.value.astype(np.float32) for item in propagate(graph, inputs)]
    wrong = [right[0] + 0.9 * propagate(graph, inputs)[0].error.astype(np.float32), right[1]]
    real, imaginary = judge_device(graph, inputs, wrong, right, target="emulation", delegate="tag0")
    assert not real.passed
    assert "sum of squares" in real.message
    assert imaginary.passed
    # |e| = 1.8 ksb with ksb = 512: 3.24 ksb^2 for each result, of 1.6 ksb that are allowed.
    assert real.headroom == pytest.approx(3.24 * 512 / 1.6, rel=0.01)
