"""A server at work as lines and looks, made by hand."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
S = 1_000_000_000
NAMES = {"100": "IO:WALSync", "101": "Lock:transactionid", "102": "Client:ClientRead", "103": "IO:DataFileRead"}


def backend(
    pid: int, cpu: float = 0, queue: float = 0, waits: dict[tuple[int, str], float] | None = None, **more: Any
) -> Json:
    """What a process grew by; times in seconds."""
    rows = [
        {"event": event, "bucket": bucket, "count": 1, "ns": int(spent * S)}
        for (event, bucket), spent in (waits or {}).items()
    ]
    found = {"pid": pid, "what": None, "transactions": 0, "requests": 0, "waits": rows, "now": None}
    return found | {"cpu_ns": int(cpu * S), "run_queue_ns": int(queue * S)} | more


def line(second: int, *processes: Json, lasted: float = 1.0) -> Json:
    """The line at the end of a second."""
    return {"t_ns": second * S, "lasted_ns": int(lasted * S), "names": NAMES, "processes": list(processes)}


def seen(pid: int, query: int, event: str | None = None, since: float | None = None, **more: Any) -> list[Any]:
    """A process in a look."""
    kind, state = more.get("kind", "client backend"), more.get("state", "active")
    at = None if since is None else int(since * S)
    return [pid, kind, state, query, event, more.get("leader"), at, at, 0]


def look(second: float, *rows: list[Any], **more: Any) -> Json:
    """A look at a moment."""
    return {"t_ns": int(second * S), "took_ns": 1_000_000, "idle": 3, "seen": list(rows), **more}


QUERIES = {
    str(number): {"text": text, "query_id": None, "cut": False}
    for number, text in enumerate(["select ?", "update a", "<script>alert(1)</script>"])
}
SESSIONS = {"0": ["shop", "anna", "<b>till</b>"]}
