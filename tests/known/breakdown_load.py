"""The agent's own load on the private server, watched by the breakdown's probe; each segment a record to be judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from breakdown_server import Laboratory

from plimsoll.record import Segment, Trial
from plimsoll.run.agent import call

CLOSED = {"kind": "closed"}
Json = dict[str, Any]


@dataclass
class Loaded:
    """A workload's data in a schema of its own. Segments follow each other by index, as in a trial."""

    lab: Laboratory
    schema: str
    workload: Json
    _next: int = 0
    _segments: int = field(default=0)

    def _target(self) -> Json:
        return replace(self.lab.server.connection, schema=self.schema).as_request()

    def populate(self) -> Loaded:
        """Makes the data; nothing of that is left to be written."""
        call("populate", {"target": self._target(), "workload": self.workload, "parallel": 2})
        self.lab.server.checkpoint()
        return self

    def run(
        self,
        clients: int,
        seconds: float,
        schedule: Json = CLOSED,
        each_second: Callable[[], None] = lambda: None,
        probe: Json | None = None,
        **workload: Any,
    ) -> Trial:
        """One segment, watched; `probe` and `workload` replace settings that the data do not depend on."""
        self._segments += 1
        folder = self.lab.state.root / f"{self.schema}-{self._segments}"
        (folder / "measure").mkdir(parents=True)
        request = {
            "target": self._target(),
            "workload": self.workload | workload,
            "clients": clients,
            "threads": min(clients, 2),
            "first_index": self._next,
            "schedule": schedule,
            "stop": {"seconds": seconds},
            "out": str(folder / "measure"),
            "sample": {"interval_ms": 1000, "devices": [], "group": None},
            "probes": {"breakdown": {"data_directory": str(self.lab.server.data)} | (probe or {})},
        }
        summary = call("load", request, on_line=lambda *_: each_second())
        self._next = int(summary["next_index"])
        (folder / "trial.json").write_text(json.dumps({"number": self._segments, "status": "finished"}))
        return Trial(folder, {})


def summary_of(segment: Segment) -> Json:
    """What the agent says of the segment; the probe was on and lost nothing."""
    summary = segment.summary
    assert summary is not None
    probe = summary["probes"]["breakdown"]
    assert probe["status"] == "on", probe
    assert not any(probe["lost"].values()), probe["lost"]
    return summary


def tables_of(segment: Segment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transactions, the load's rows of the breakdown, and their waits."""
    rows, breakdown, waits = segment.transactions, segment.breakdown, segment.breakdown_waits
    assert rows is not None and breakdown is not None and waits is not None
    mine = breakdown[np.isin(breakdown["backend_pid"], summary_of(segment)["backend_pids"])]
    return rows, mine, waits[np.isin(waits["request"], mine["request"])]


def requests_in(rows: np.ndarray) -> int:
    """Round trips that rows of the breakdown stand for: one each, unless the record says how many."""
    names = rows.dtype.names or ()
    if "requests" not in names:
        return len(rows)
    return int(rows["requests"].sum(dtype=np.int64))
