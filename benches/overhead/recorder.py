"""The agent itself beside the load, with the same probes: what it takes to write down what the programs found.

The windows hold the programs alone. Emptying their rings, unwinding stacks and writing tables is the agent's own work,
so its process's clock is read around some seconds of the load.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from overhead import readings
from overhead.arms import RAMP_SECONDS, SPARE_SECONDS
from overhead.servers import LoadedSite
from plimsoll.environment import Fault
from plimsoll.run.agent import Agent


@dataclass(frozen=True)
class Recorded:
    """CPU time of the agent, and what it says of its probes at the end."""

    seconds: float
    transactions: float
    agent_cpu_ns: int
    unwinding_cpu_ns: int | None
    lost: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        """As it is printed with --json."""
        return {
            "seconds": self.seconds,
            "transactions": self.transactions,
            "agent_us": self.agent_cpu_ns / self.transactions / 1e3,
            "agent_cpu_percent": 100 * self.agent_cpu_ns / self.seconds / 1e9,
            "unwinding_us": None if self.unwinding_cpu_ns is None else self.unwinding_cpu_ns / self.transactions / 1e3,
            "lost": self.lost,
        }


def record(site: LoadedSite, request: dict[str, Any], seconds: float, seed: int) -> Recorded:
    """Some seconds of the load, recorded."""
    running = Agent("watch", request)
    lines = running.lines()
    try:
        if not any(line["event"] == "watching" for line in lines):
            running.finish()
            raise Fault("the agent's watch ended without saying watching", remedy="build the agent anew")
        load = site.begin(RAMP_SECONDS + seconds + SPARE_SECONDS, seed)
        try:
            time.sleep(RAMP_SECONDS)
            before = time.monotonic_ns(), readings.cpu_ns(running.pid)
            time.sleep(seconds)
            after = time.monotonic_ns(), readings.cpu_ns(running.pid)
            running.stop()
            probes = next((line["probes"] for line in lines if line["event"] == "watched"), {})
            running.finish()
            count = load.finish()
        except BaseException:
            load.abandon()
            raise
    except BaseException:
        running.kill()
        raise
    transactions = count(after[0]) - count(before[0])
    return Recorded(
        seconds=(after[0] - before[0]) / 1e9,
        transactions=transactions,
        agent_cpu_ns=after[1] - before[1],
        unwinding_cpu_ns=(probes.get("profile", {}).get("profile") or {}).get("agent_cpu_ns"),
        lost={f"{name} {what}": lost for name, probe in probes.items() for what, lost in _lost(probe).items() if lost},
    )


def _lost(probe: dict[str, Any]) -> dict[str, int]:
    return probe.get("lost") or {}
