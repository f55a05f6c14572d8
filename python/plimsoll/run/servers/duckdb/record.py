"""The work of a decision-support test on an embedded server, and its record, from the lines that the driver told. Pure.

The fact that constrains it: queries.json, transactions.npy and summary.json mean what the agent's mean
(schema/record.md), so that whatever reads a test need not know who performed it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.analysis.decision_support.formulas import REFRESH
from plimsoll.analysis.decision_support.trial import NAMES
from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.record.format import FORMAT
from plimsoll.record.transactions import OUTCOMES

Json = dict[str, Any]
OF_STATUS: Final = {status: OUTCOMES.index(status) for status in ("done", "failed", "skipped")} | {
    "timed out": OUTCOMES.index("failed")
}
TIMED_OUT: Final = "57014"
EXAMPLES_MAX: Final = 10


def sessions_of(works: list[Json]) -> list[list[Json]]:
    """What the driver has to know of the work, by session."""
    sessions: list[list[Json]] = [[] for _ in range(1 + max(work["connection"] for work in works))]
    for work in works:
        sessions[work["connection"]].append({key: work[key] for key in ("index", "sql", "function") if key in work})
    return sessions


def sets_needed(works: list[Json]) -> dict[str, int]:
    """How many sets each refresh function takes."""
    return {name: sum(work["name"] == name for work in works) for name in REFRESH}


@dataclass
class Progress:
    """How far a test has come: what has ended, what is under way."""

    works: list[Json]
    ended: dict[int, Json] = field(default_factory=dict)
    under_way: dict[int, int] = field(default_factory=dict)

    def see(self, line: Json) -> None:
        """A line of the driver's."""
        if line["event"] == "began":
            self.under_way[line["index"]] = line["t_ns"]
        elif line["event"] == "ended":
            self.under_way.pop(line["index"], None)
            self.ended[line["index"]] = line

    def identity(self) -> dict[str, int]:
        """Planned, and what of it has become what."""
        outcomes = [OF_STATUS[line["status"]] for line in self.ended.values()]
        return {"planned": len(self.works)} | {name: outcomes.count(code) for code, name in enumerate(OUTCOMES)}

    def at(self) -> list[Json]:
        """What each session is at, as a progress line has it."""
        known = ("stream", "connection", "place", "name")
        return [
            {key: self.works[index][key] for key in known} | {"began_ns": began_ns}
            for index, began_ns in sorted(self.under_way.items())
        ]

    def begun(self) -> list[Json]:
        """What was begun and has ended."""
        return [line for line in self.ended.values() if line["status"] != "skipped"]


def queries(workload: DecisionSupport, test: str, progress: Progress) -> Json:
    """queries.json."""
    begun = progress.begun()
    asked = workload.streams_request(test)
    return {
        "format": FORMAT,
        **{key: asked[key] for key in ("test", "streams", "refresh")},
        "explained": asked["explain"],
        "timeout_seconds": asked["timeout_seconds"],
        "began_ns": min((line["start_ns"] for line in begun), default=None),
        "ended_ns": max((line["end_ns"] for line in begun), default=None),
        "queries": [
            _entry(work, progress.ended[work["index"]]) for work in progress.works if work["index"] in progress.ended
        ],
    }


def _entry(work: Json, ended: Json) -> Json:
    known = ("index", "stream", "connection", "place", "name", "title", "parameters")
    is_done = ended["status"] == "done"
    entry = {key: work[key] for key in known} | {
        "began_ns": ended.get("start_ns"),
        "ended_ns": ended.get("end_ns"),
        "rows": ended.get("rows") if is_done else None,
        "bytes": None,  # no message brings the rows
        "own_ns": ended.get("own_ns"),
        "status": ended["status"],
        "error": ended.get("error"),
        "set": ended.get("set"),
    }
    return entry | {
        key: ended[key] for key in ("orders", "lines", "verified") if is_done and ended.get(key) is not None
    }


def verification(progress: Progress) -> Json:
    """What the refresh functions left, beside what they should have."""
    asked = [line for line in progress.begun() if line.get("verified")]
    wrong = [line for line in asked if not line["verified"]["ok"]]
    examples = [
        {
            "index": line["index"],
            "message": f"after {progress.works[line['index']]['name']} of set {line['set']} there are "
            f"{line['verified']['orders']} of its orders and {line['verified']['lines']} lines, and "
            f"{line['verified']['prices_wrong']} have a wrong price",
        }
        for line in wrong[:EXAMPLES_MAX]
    ]
    return {"checked": len(asked), "wrong": len(wrong), "examples": examples}


def transactions(progress: Progress, pid: int) -> list[tuple[Any, ...]]:
    """Rows of transactions.npy: one for each piece of work that has ended, in the order of their ends."""
    codes = [entry["sqlstate"] for entry in errors(progress)]
    rows = []
    for index, ended in progress.ended.items():
        work, planned_ns = progress.works[index], ended["planned_ns"]
        begun = ended["status"] != "skipped"
        rows.append(
            (
                index,
                planned_ns,
                ended.get("start_ns", planned_ns),
                ended.get("end_ns", planned_ns),
                0,
                work["connection"],
                pid,
                begun,
                begun,
                0,
                codes.index(_code(ended)) + 1 if "error" in ended else 0,
                NAMES.index(work["name"]),
                OF_STATUS[ended["status"]],
            )
        )
    return rows


def errors(progress: Progress) -> list[Json]:
    """The kinds of failure, each with its first message; DuckDB names a class where PostgreSQL has a code."""
    kinds: dict[str, Json] = {}
    for ended in progress.ended.values():
        if "error" in ended:
            code = _code(ended)
            entry = kinds.setdefault(code, {"sqlstate": code, "message": ended["error"], "count": 0})
            entry["count"] += 1
    return list(kinds.values())


def _code(ended: Json) -> str:
    return TIMED_OUT if ended["status"] == "timed out" else str(ended["error_class"])


def _by_kind(progress: Progress) -> Json:
    by_name = {name: dict.fromkeys((*OUTCOMES, "statements", "retries"), 0) for name in NAMES}
    for index, ended in progress.ended.items():
        kind = by_name[progress.works[index]["name"]]
        kind[OUTCOMES[OF_STATUS[ended["status"]]]] += 1
        kind["statements"] += ended["status"] != "skipped"
    return by_name


def summary(workload: DecisionSupport, test: str, progress: Progress, told: Json, surroundings: Json) -> Json:
    """summary.json. `told`: what the driver told at the end; `surroundings`: `samples`, `sample_late_ns_max`, `probes`,
    `devices`, `cpus_allowed`, `epoch_minus_monotonic_ns`, `pid`, `is_stopped`, `seed` (of the test)."""
    begun = progress.begun()
    lags = sorted(line["start_ns"] - line["planned_ns"] for line in begun)
    own = [line["own_ns"] for line in begun if line.get("own_ns") is not None]
    connections = 1 + max(work["connection"] for work in progress.works)
    return {
        "format": FORMAT,
        "workload": workload.name,
        "kinds": list(NAMES),
        "first_index": 0,
        "next_index": len(progress.works),
        "started_ns": told["released_ns"],
        "ended_ns": max((line["end_ns"] for line in begun), default=told["released_ns"]),
        "epoch_minus_monotonic_ns": surroundings["epoch_minus_monotonic_ns"],
        "identity": progress.identity(),
        "by_kind": _by_kind(progress),
        "errors": errors(progress),
        "health": {
            "cpu_user_ns": told["own_cpu_user_ns"],
            "cpu_system_ns": told["own_cpu_system_ns"],
            "load_cpu_user_ns": told["own_cpu_user_ns"],
            "load_cpu_system_ns": told["own_cpu_system_ns"],
            "threads": connections,
            "lag_ns": {"p50": _percentile(lags, 50), "p99": _percentile(lags, 99), "max": _percentile(lags, 100)},
            "records_dropped": 0,
            "samples": surroundings["samples"],
            "sample_late_ns_max": surroundings["sample_late_ns_max"],
            "thread_cpus": [],
            "cpus_allowed": surroundings["cpus_allowed"],
            "memory_bytes_max": told["memory_bytes_max"],
            "connections_lost": 0,
        },
        "ended_by": "told" if surroundings["is_stopped"] else "transactions",
        "verification": verification(progress),
        "totals": {},
        "backend_pids": [surroundings["pid"]] * connections,
        "devices": surroundings["devices"],
        "rows": {"recorded": len(progress.ended), "all_below_index": len(progress.works), "sample_one_in": 1},
        "retries": 0,
        "reconnects": 0,
        "facts": {
            "scale_factor": workload.scale_factor,
            "seed": surroundings["seed"],
            "ranges": workload.ranges,
            **workload.streams_request(test),
            "server": "duckdb",
            "driver_own_ns": sum(own),
            "driver_own_queries": len(own),
        },
        "probes": surroundings["probes"],
    }


def _percentile(values: list[int], hundredths: int) -> int:
    """The smallest that at least so many in a hundred do not exceed; 0 of nothing, as the agent has it."""
    place = max(0, -(-len(values) * hundredths // 100) - 1)
    return values[place] if values else 0
