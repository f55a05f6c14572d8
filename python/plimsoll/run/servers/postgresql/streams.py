"""A test of decision support on PostgreSQL: the agent's `streams`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.run import agent
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.load_session import LoadSession


@dataclass
class Streams:
    """One test, performed into the folder `name` of the trial."""

    load: LoadSession
    workload: DecisionSupport
    test: str
    name: str
    seed: int

    def perform(self) -> None:
        """From its first statement to its last. Raises Stopped when it was cut short."""
        load = self.load
        out = load.folder / self.name
        out.mkdir(parents=True, exist_ok=True)
        request = {
            "target": load.server.load_connection.as_request(),
            "workload": load.workload | {"seed": self.seed},
            **self.workload.streams_request(self.test),
            "out": str(out),
            "sample": load.place.sample(),
            "probes": load.probes(),
        }

        def see(running: agent.Agent, line: dict[str, Any]) -> None:
            load.observer.event("sample", line=line)
            if load.is_stopping():
                running.stop()

        told = agent.call("streams", request, on_line=see, cpus=load.place.load_cpus, host=load.place.host)
        # A test that came to its end before it heard of a stop is done.
        if load.is_stopping() and told.get("ended_by") != "transactions":
            raise Stopped
