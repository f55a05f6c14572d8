"""What an experiment on files may hold: there is no server, only a folder, and whoever uses it is the load itself.

The fact that constrains it: what somebody asked for is refused with its name and never left out silently. What is on by
default and cannot be had (the breakdown, what both caches hold) is absent, and the trial says so.
"""

from __future__ import annotations

from plimsoll.experiment.measuring import Warmup
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.servers.refusals import of_databases, refuse
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Workload


def check(workload: Workload, target: Target, warmup: Warmup, probes: Probes) -> None:
    """Raises ValueError with what is allowed."""
    del workload, probes
    refused = {
        **of_databases(target),
        "target.files.program": target.files.program is not None,
        "warmup.prewarm": warmup.prewarm,
        **{f"target.settings.{name}": True for name in target.settings},
    }
    refuse(target, refused, "a folder and no server, and has no", " (target.files.data names the folder)")
