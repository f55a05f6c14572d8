"""A test of decision support on DuckDB: the driver performs it, and its record is written from what it tells.

The fact that constrains it: there is no server to connect to, so nothing of it can be read from outside but what the
kernel tells. The agent's `watch` takes the series beside the driver.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.environment import cpus as cpu_lists
from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.record import transactions, writer
from plimsoll.run import agent
from plimsoll.run.requests import workload_request
from plimsoll.run.servers.duckdb import record
from plimsoll.run.servers.duckdb.refresh_sets import RefreshSets
from plimsoll.run.servers.duckdb.watch import Watch
from plimsoll.run.servers.private import PrivateAtWork
from plimsoll.run.signals import Stopped
from plimsoll.target.duckdb_server import DuckServer

Json = dict[str, Any]
LINE_SECONDS = 1.0


@dataclass
class Streams:
    """One test, performed into the folder `name` of the trial; its texts and refresh sets are prepared by `of`."""

    at: PrivateAtWork
    server: DuckServer
    workload: DecisionSupport
    test: str
    name: str
    seed: int
    works: list[Json]
    sets: dict[str, list[Json]]

    @classmethod
    def of(
        cls, at: PrivateAtWork, server: DuckServer, refresh: RefreshSets, workload: DecisionSupport, test: str,
        name: str, seed: int,
    ) -> Streams:  # fmt: skip
        """The work of a test as the agent tells it, and the refresh sets that it takes."""
        asked = workload.streams_request(test)
        asked = {key: asked[key] for key in ("test", "streams", "refresh")}
        planned = agent.call("plan", {"workload": workload_request(at.settings) | {"seed": seed}, "work": asked})
        works: list[Json] = planned["work"]
        sets = refresh.prepare(record.sets_needed(works))
        return cls(at, server, workload, test, name, seed, works, sets)

    def perform(self) -> None:
        """From its first statement to its last. Raises Stopped when the run is to end."""
        at, out = self.at, self.at.folder / self.name
        out.mkdir(parents=True, exist_ok=True)
        progress = record.Progress(self.works)
        with Watch(self.server, at.place, at.settings, out) as watch:
            told = self._conduct(progress, watch)
        self._write(out, progress, told, watch.told)
        if at.is_stopping():
            raise Stopped

    def _write(self, out: Path, progress: record.Progress, told: Json, watched: Json) -> None:
        """What the agent would write of the same test (schema/record.md)."""
        at, pid = self.at, self.server.pid
        surroundings = watched | {
            "devices": at.place.devices,
            "cpus_allowed": cpu_lists.show(at.place.host.cpus()),
            "epoch_minus_monotonic_ns": time.time_ns() - time.monotonic_ns(),
            "pid": pid,
            "is_stopped": at.is_stopping(),
            "seed": self.seed,
        }
        transactions.write(out, record.transactions(progress, pid))
        writer.write_json(out / "queries.json", record.queries(self.workload, self.test, progress))
        summary = record.summary(self.workload, self.test, progress, told, surroundings)
        writer.write_json(out / "summary.json", summary)

    def _conduct(self, progress: record.Progress, watch: Watch) -> Json:
        """Has the driver perform the test and follows it, a line a second; what it told at the end."""
        server, at = self.server, self.at
        request = {"sessions": record.sessions_of(self.works), "sets": self.sets}
        server.begin("test", **request, timeout_seconds=self.workload.query_timeout_seconds)
        due, is_told = time.monotonic() + LINE_SECONDS, False
        while True:
            line = server.hear(max(0.0, due - time.monotonic()))
            if line is not None and line["event"] == "done":
                return line
            if line is not None:
                progress.see(line)
            if time.monotonic() >= due:
                due += LINE_SECONDS
                about = {"event": "progress", "t_ns": time.monotonic_ns(), **progress.identity()}
                at.observer.event("sample", line={**about, **watch.latest(), "at": progress.at()})
            if at.is_stopping() and not is_told:
                server.tell("stop")
                is_told = True
