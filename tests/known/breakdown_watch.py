"""The breakdown's probe around requests whose moments the client noted, and what must hold of any record."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from breakdown_truth import children, rest
from watching import SECONDS, Watching

from plimsoll.record.npy import read_table

QUEUED, UNKNOWN, CUT, ABORTED, UNREADABLE_END = 1, 2, 4, 8, 16
NONE, OWN_READ, ON_ITS_WAY = 0, 1, 2
MS, US = 1_000_000, 1_000
_NEVER_A_WAIT = ("cpu_user", "cpu_kernel", "run_queue")


@dataclass(frozen=True)
class Wait:
    """One kind of blocked interval of a request."""

    name: str
    bucket: str
    cause: int
    count: int
    ns: int
    waker_pid: int


@dataclass(frozen=True)
class Request:
    """A row of breakdown.npy with its waits: a request, or a transaction of several."""

    backend_pid: int
    flags: int
    arrived_ns: int
    ended_ns: int
    cpu_ns: int
    run_queue_ns: int
    after_ns: int
    requests: int
    waits: tuple[Wait, ...]

    @property
    def whole_ns(self) -> int:
        return self.ended_ns - self.arrived_ns

    @property
    def missed_ns(self) -> int:
        """By how much the parts miss the whole."""
        return self.whole_ns - self.cpu_ns - self.run_queue_ns - sum(wait.ns for wait in self.waits)

    def blocked_ns(self, *buckets: str) -> int:
        return sum(wait.ns for wait in self.waits if wait.bucket in buckets)

    def elsewhere_ns(self, *buckets: str) -> int:
        """Blocked in any other bucket."""
        return sum(wait.ns for wait in self.waits if wait.bucket not in buckets)

    def wait(self, name: str) -> Wait:
        """The only one of this wait event."""
        (found,) = (wait for wait in self.waits if wait.name == name)
        return found


@dataclass(frozen=True)
class Asked:
    """A request as its client saw it."""

    pid: int
    sent_ns: int
    got_ns: int
    rows: list[tuple[Any, ...]]


def ask(connection: psycopg.Connection, text: str) -> Asked:
    """Sends one simple query and takes its answer."""
    sent = time.monotonic_ns()
    cursor = connection.execute(text)
    got = time.monotonic_ns()
    rows = cursor.fetchall() if cursor.description else []
    return Asked(connection.info.backend_pid, sent, got, rows)


class Asking:
    """`ask` in a thread of its own."""

    def __init__(self, connection: psycopg.Connection, text: str) -> None:
        self._answer: queue.Queue[Asked | BaseException] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(connection, text), daemon=True)
        self._thread.start()

    def _run(self, connection: psycopg.Connection, text: str) -> None:
        try:
            self._answer.put(ask(connection, text))
        except BaseException as error:
            self._answer.put(error)

    def answer(self) -> Asked:
        """Waits for it."""
        found = self._answer.get(timeout=SECONDS)
        self._thread.join(SECONDS)
        if isinstance(found, BaseException):
            raise found
        return found


class Breakdown(Watching):
    """The agent's verb `watch` on a cluster's server; `with` starts and ends it. Afterwards: `requests`, `result`."""

    probe = "breakdown"

    def __init__(self, data_directory: Path, out: Path, rows: str = "requests", by_system_call: bool = False) -> None:
        super().__init__()
        self.data_directory, self.out, self.rows = data_directory, out, rows
        self.by_system_call = by_system_call
        self.requests: list[Request] = []
        # Requests count once the tables are there, and the last backend has to have reached its wait for the client.
        self.begun, self.ending = self._wait_for_the_tables, self._all_rest

    def request(self) -> dict[str, Any]:
        """Tables go to `out`."""
        self.out.mkdir(parents=True, exist_ok=True)
        probe = {"data_directory": str(self.data_directory), "rows": self.rows, "by_system_call": self.by_system_call}
        probes = {"breakdown": probe}
        return {"out": str(self.out), "interval_ms": 100, "probes": probes}

    def _judge(self) -> None:
        assert self.result["status"] == "on", self.result
        self.requests = self._load()
        self._holds_whatever_was_done()

    def _wait_for_the_tables(self) -> None:
        """Requests count from the first sample on, which makes the tables."""
        until = time.monotonic() + SECONDS
        while not (self.out / "breakdown_waits.npy").exists():
            assert time.monotonic() < until, "the probe makes no tables"
            time.sleep(0.005)

    def _all_rest(self) -> None:
        postmaster = int((self.data_directory / "postmaster.pid").read_text().split()[0])
        for pid in children(postmaster):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                rest(pid)

    # What it found

    def _load(self) -> list[Request]:
        rows, waits = (read_table(self.out / name) for name in ("breakdown.npy", "breakdown_waits.npy"))
        assert rows is not None and waits is not None
        kinds: dict[int, list[Wait]] = {}
        for row in waits:
            name, bucket = self.result["wait_names"][str(row["wait"])], self.result["buckets"][row["bucket"]]
            wait = Wait(name, bucket, *(int(row[column]) for column in ("cause", "count", "ns", "waker_pid")))
            kinds.setdefault(int(row["request"]), []).append(wait)
        columns = ("backend_pid", "flags", "arrived_ns", "ended_ns", "cpu_ns", "run_queue_ns", "after_ns", "requests")
        numbered = [(int(row["request"]), [int(row[column]) for column in columns]) for row in rows]
        assert [number for number, _ in numbered] == list(range(len(rows)))
        assert set(kinds) <= set(range(len(rows)))
        return [Request(*values, tuple(kinds.get(number, ()))) for number, values in numbered]

    def of(self, pid: int, among: Callable[[Request], bool] = lambda _: True) -> list[Request]:
        """The requests of a backend."""
        return [each for each in self.requests if each.backend_pid == pid and among(each)]

    def the(self, asked: Asked) -> Request:
        """The one request that a client's call was: it came between the moments that the client noted.

        The server may note its end after the client had the answer: where a hypervisor takes the CPU in between, a
        millisecond after. One that a backend found there before it had come to wait for it counts from the answer
        before, and may so begin before it was sent.
        """
        inside = self.of(
            asked.pid,
            lambda each: (
                asked.sent_ns <= each.ended_ns <= asked.got_ns
                and (asked.sent_ns <= each.arrived_ns or bool(each.flags & QUEUED))
            ),
        ) or self.of(asked.pid, lambda each: asked.sent_ns <= each.arrived_ns <= asked.got_ns)
        assert len(inside) == 1, (asked, self.of(asked.pid))
        return inside[0]

    def _holds_whatever_was_done(self) -> None:
        counts = self.result["request_counts"]
        assert not any(self.result["lost"].values()), self.result["lost"]
        assert counts["rows"] == len(self.requests), counts
        assert counts["seen"] == counts["recorded"] == sum(each.requests for each in self.requests), counts
        if counts["arrivals_unseen"]:
            print(f"unseen: {counts}")
        assert counts["queued"] == sum(bool(each.flags & QUEUED) for each in self.requests), counts
        last: dict[int, int] = {}
        for each in self.requests:
            assert each.missed_ns == 0, f"the parts miss the whole by {each.missed_ns} ns: {each}"
            assert min(each.whole_ns, each.cpu_ns, each.run_queue_ns, each.after_ns) >= 0, each
            assert all(wait.ns >= 0 and wait.count > 0 for wait in each.waits), each
            assert all(wait.bucket not in _NEVER_A_WAIT for wait in each.waits), each
            assert each.arrived_ns >= last.get(each.backend_pid, 0), f"overlaps the one before: {each}"
            last[each.backend_pid] = each.ended_ns


def lands(request: Request, found_ns: int, truth_ns: int, *buckets: str, elsewhere_ns: int) -> None:
    """Within 2 % or 50 us of the truth, and no more than a moment blocked in any other bucket."""
    print(f"{'+'.join(buckets)}: {found_ns / MS:.3f} ms of {truth_ns / MS:.3f}; {request}")
    assert abs(found_ns - truth_ns) <= max(truth_ns // 50, 50 * US), (found_ns, truth_ns, request)
    assert request.elsewhere_ns(*buckets) <= elsewhere_ns, request
