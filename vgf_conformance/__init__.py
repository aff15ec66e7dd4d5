"""Test and conformance harness for ExecuTorch's Arm VGF backend."""

__version__ = "0.1.0"
