"""What watching a server leaves behind, written as it comes (schema/breakdown.md).

One trial with one segment, so that whatever reads a run reads this one. Nothing is synced while the server is watched:
a sync of ours would be in its way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll.record import writer
from plimsoll.record.table import Table

Json = dict[str, Any]
NONE = 0xFFFFFFFF
_TIME, _NUMBER = "<i8", "<u4"
_COLUMNS: dict[str, list[tuple[str, str]]] = {
    "live": [
        ("t_ns", _TIME), ("lasted_ns", _TIME), ("watched_ns", _TIME), ("pid", _NUMBER), ("role", _NUMBER),
        ("transactions", _NUMBER), ("requests", _NUMBER), ("cpu_ns", _TIME), ("run_queue_ns", _TIME),
    ],
    "live_waits": [
        ("t_ns", _TIME), ("pid", _NUMBER), ("wait", _NUMBER), ("bucket", "<u1"), ("count", _NUMBER), ("ns", _TIME),
    ],
    "looks": [("look", _NUMBER), ("t_ns", _TIME), ("took_ns", _TIME), ("idle", _NUMBER), ("locks_t_ns", _TIME)],
    "seen": [
        ("look", _NUMBER), ("pid", _NUMBER), ("kind", "<u1"), ("state", "<u1"), ("query", _NUMBER), ("event", "<u2"),
        ("leader_pid", _NUMBER), ("since_ns", _TIME), ("transaction_ns", _TIME), ("session", _NUMBER),
    ],
    "locks": [
        ("look", _NUMBER), ("pid", _NUMBER), ("blocker_pid", _NUMBER), ("kind", "<u1"), ("mode", "<u1"),
        ("relation", "<u2"), ("since_ns", _TIME),
    ],
}  # fmt: skip
MISSING = -(2**63)


class LiveTables:
    """The tables of one watch; names stand once, in activity.json, and rows have their places."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._tables = {name: Table(folder / f"{name}.npy", columns) for name, columns in _COLUMNS.items()}
        self._lists: dict[str, list[Any]] = {
            name: [] for name in ("roles", "buckets", "kinds", "states", "events", "lock_kinds", "modes", "relations")
        }
        self._places: dict[tuple[str, Any], int] = {}
        self._place("roles", None)
        self._place("events", None)
        self._place("relations", None)
        self._texts: Json = {"queries": {}, "sessions": {}}
        self._looks = 0
        self._last_line: Json | None = None
        self._names: Json = {}

    def _place(self, of: str, name: Any) -> int:
        key = (of, name)
        if key not in self._places:
            self._places[key] = len(self._lists[of])
            self._lists[of].append(name)
        return self._places[key]

    def line(self, line: Json) -> None:
        """One of the agent's lines. The row of process 0 is the line itself."""
        at = int(line["t_ns"])
        self._names |= line.get("names") or {}
        self._last_line = line
        lasted = int(line["lasted_ns"])
        rows = [(at, lasted, int(line.get("watched_ns", lasted)), 0, 0, 0, 0, 0, 0)]
        waits = []
        for process in line["processes"]:
            pid, role = int(process["pid"]), self._place("roles", process["what"])
            counts = (process.get("transactions") or 0, process.get("requests") or 0)
            rows.append((at, 0, 0, pid, role, *counts, process.get("cpu_ns") or 0, process.get("run_queue_ns") or 0))
            for wait in process.get("waits") or []:
                bucket = self._place("buckets", wait["bucket"])
                waits.append((at, pid, int(wait["event"] or 0), bucket, wait["count"], wait["ns"]))
        self._tables["live"].add(rows)
        self._tables["live_waits"].add(waits)

    def look(self, look: Json) -> None:
        """One look with those that it saw."""
        number, self._looks = self._looks, self._looks + 1
        for key in ("queries", "sessions"):
            self._texts[key] |= look.get(key) or {}
        row = (number, look["t_ns"], look["took_ns"], look["idle"], look.get("locks_t_ns", MISSING))
        self._tables["looks"].add([row])
        self._tables["seen"].add([self._seen(number, *entry) for entry in look["seen"]])
        locks = []
        for entry in look.get("locks") or []:
            names = [self._place("lock_kinds", entry["kind"]), self._place("modes", entry["mode"])]
            names.append(self._place("relations", entry["relation"]))
            since = MISSING if entry["since_ns"] is None else entry["since_ns"]
            locks += [(number, entry["pid"], blocker, *names, since) for blocker in entry["blockers"]]
        self._tables["locks"].add(locks)

    def _seen(
        self, look: int, pid: int, kind: str, state: str, query: int, event: str | None, leader: int | None,
        since: int | None, transaction: int | None, session: int,
    ) -> tuple[int, ...]:  # fmt: skip
        times = [MISSING if value is None else value for value in (since, transaction)]
        places = (self._place("kinds", kind), self._place("states", state), query, self._place("events", event))
        return (look, pid, *places, leader or 0, *times, session)

    def close(self, own_pids: set[int], session: Json | None) -> None:
        """No row comes any more; the names are written."""
        for table in self._tables.values():
            table.close()
        document = {"format": 1, **self._lists, **self._texts, "wait_names": self._names}
        document |= {"own_pids": sorted(own_pids), "session": session, "last_line": self._last_line}
        writer.write_json(self._folder / "activity.json", document)
