"""What an experiment on files may hold: there is no server, only a folder, and whoever uses it is the load itself.

The fact that constrains it: what somebody asked for is refused with its name and never left out silently. What is on by
default and cannot be had (the breakdown, what both caches hold) is absent, and the trial says so.
"""

from __future__ import annotations

from plimsoll.experiment.measuring import Warmup
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Workload


def check(workload: Workload, target: Target, warmup: Warmup, probes: Probes) -> None:
    """Raises ValueError with what is allowed."""
    del workload, probes
    refused = {
        "target.dsn": target.dsn is not None,
        "target.transport": target.transport != "socket",
        "target.version": target.version != "any",
        "target.files.wal": target.files.wal is not None,
        "target.files.temp": target.files.temp is not None,
        "target.files.program": target.files.program is not None,
        **{f"target.files.tablespaces.{name}": True for name in target.files.tablespaces},
        "warmup.prewarm": warmup.prewarm,
        **{f"target.settings.{name}": True for name in target.settings},
    }
    found = [name for name, is_asked in refused.items() if is_asked]
    if found:
        raise ValueError(
            f'target.server is "files", which is a folder and no server, and has no {", ".join(found)}; allowed: '
            "none of these (target.files.data names the folder)"
        )
