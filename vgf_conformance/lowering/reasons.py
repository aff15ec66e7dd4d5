"""Listens to the partitioner while it decides, and keeps its reasons for what it rejects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from executorch.exir.backend.utils import WhyNoPartitionReporter


@contextmanager
def rejection_reasons() -> Iterator[dict[str, str]]:
    """Yield a dict that fills with reasons by node name; the partitioner only logs them as a table."""
    reasons: dict[str, str] = {}
    original = WhyNoPartitionReporter.report_reject

    def report_reject(reporter: WhyNoPartitionReporter, node: Any, reason: str) -> None:
        reasons.setdefault(node.name, " ".join(str(reason).split()))
        original(reporter, node, reason)

    WhyNoPartitionReporter.report_reject = report_reject
    try:
        yield reasons
    finally:
        WhyNoPartitionReporter.report_reject = original
