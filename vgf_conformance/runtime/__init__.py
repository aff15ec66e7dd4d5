"""Whole programs in the ExecuTorch runtime: what runs inside the worker and the probe (torch, executorch)."""
