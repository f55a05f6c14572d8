"""Where the server under test is: what can be watched there, and where the load may run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plimsoll.environment import Group
from plimsoll.experiment import Experiment
from plimsoll.run.host import HERE, Host
from plimsoll.run.trial.log import TrialLog
from plimsoll.target.server import Server


@dataclass
class Place:
    """Of a server of which nothing but its connection is known."""

    devices: list[str]
    group: Group | None
    load_cpus: set[int] | None
    host: Host = field(default=HERE, kw_only=True)
    members: list[str] = field(default_factory=list, kw_only=True)  # below arrays and mapped devices of its places

    def is_read_for(self) -> bool:
        """Whether somebody outside its group reads from the devices for it: then its processes do not know how much."""
        return False

    def probes(self, settings: Experiment) -> dict[str, Any] | None:
        """What the agent is asked to watch in the kernel; none where the server's files are not known."""
        del settings
        return None

    def sample(self) -> dict[str, Any]:
        """What series the agent is asked for."""
        group = self.group.for_agent() | {"reads": not self.is_read_for()} if self.group is not None else None
        return {"interval_ms": 1000, "devices": self.devices, "group": group}


def read_counters(server: Server, place: Place, log: TrialLog, name: str, into: dict[str, Any]) -> None:
    """Reads every counter exactly, with no client connected, into `into`; `name`: "before" or "after"."""
    if not server.is_settled():
        log.caveat(f"clients were still connected {name} the measured segment: counters may be late")
    into.setdefault("counters", {})[name] = server.counters()
    into.setdefault("device_counters", {})[name] = place.host.device_counters(place.devices)
    if place.members:
        into.setdefault("member_counters", {})[name] = place.host.device_counters(place.members)
    if place.group is not None:
        into.setdefault("group_counters", {})[name] = place.group.stats()
