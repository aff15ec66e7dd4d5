"""Keeps other packages' start-up and pass messages out of the user's terminal."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop warnings, log messages below critical and what goes to sys.stderr while the block runs."""
    previous = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        # torch.export prints the graph that it refuses.
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
