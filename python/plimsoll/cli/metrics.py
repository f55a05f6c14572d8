"""The port on which a verb tells Prometheus what it does: opened before anything starts, or refused with the reason."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


def told_on(found: Collector, port: int, stack: contextlib.ExitStack) -> None:
    """Opens the loopback port until `stack` is left; says where, on the standard error."""
    from plimsoll.experiment import ExperimentError, Problem
    from plimsoll.run.watch.openmetrics import Endpoint

    try:
        endpoint = stack.enter_context(Endpoint(found, port))
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a port number"
        problem = Problem(f"--metrics {port}", "--metrics", str(why), "a port that is free, or 0 to have one chosen")
        raise ExperimentError([problem]) from None
    print(f"metrics: {endpoint.url}", file=sys.stderr, flush=True)
