"""What an experiment on DuckDB may hold: it is embedded, so there is no server to reach, to configure or to look into.

The fact that constrains it: what somebody asked for is refused with its name and never left out silently. What is on by
default and cannot be had (the breakdown, what both caches hold) is absent, and the trial says so.
"""

from __future__ import annotations

from typing import Final

from plimsoll.experiment.measuring import Warmup
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Workload
from plimsoll.experiment.workloads.base import TESTS

# They read PostgreSQL's processes or files.
PROBES: Final = ("profile", "syscalls", "sync", "block", "nfs_calls")
# Chosen by Plimsoll: where the files are, and that nothing comes from the network meanwhile.
SETTINGS: Final = (
    "access_mode",
    "autoinstall_known_extensions",
    "autoload_known_extensions",
    "enable_external_access",
    "lock_configuration",
    "temp_directory",
)


def check(workload: Workload, target: Target, warmup: Warmup, probes: Probes) -> None:
    """Raises ValueError with what is allowed."""
    if workload.made_of != TESTS:
        raise ValueError(
            f'target.server is "duckdb", which does not run {workload.name}; allowed: workload decision_support, or '
            'target.server = "postgresql"'
        )
    refused = {
        "target.dsn": target.dsn is not None,
        "target.files": bool(target.files.given),
        "target.transport": target.transport != "socket",
        "target.version": target.version != "any",
        "workload.explain": workload.asks_for_plans(),
        "warmup.prewarm": warmup.prewarm,
        **{f"probes.{name}": bool(getattr(probes, name)) for name in PROBES},
        **{f"target.settings.{name}": name in target.settings for name in SETTINGS},
    }
    found = [name for name, is_asked in refused.items() if is_asked]
    if found:
        raise ValueError(
            f'target.server is "duckdb", which is embedded and has no {", ".join(found)}; allowed: none of these'
        )
