"""The picture of a server at work: the agent's live lines and looks at pg_stat_activity go in, one document comes out.

The same code makes the terminal's picture while the server is watched and, from the record, the one of the report. The
time of backends is exact (live_sums.py); whose time it was is a sample where it was not one query all along
(live_queries.py). Lines and looks have one clock, CLOCK_MONOTONIC, and may come in any order but each kind in its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.analysis.breakdown.parts import CLIENT, CPU, PLAIN, in_order
from plimsoll.analysis.watch.curve import merged
from plimsoll.analysis.watch.document import (
    BackendRow,
    Clients,
    Now,
    PictureDocument,
    ProcessRow,
    QueryRow,
    QueryText,
    Session,
    Sharing,
    Stretch,
    Whose,
)
from plimsoll.analysis.watch.heard import AgentLine, Look, NowHeard, ProcessGrown, SeenRow
from plimsoll.analysis.watch.locks import Locks, chains
from plimsoll.analysis.watch.queries import Queries, Query, Seen, margin
from plimsoll.analysis.watch.sums import WORKER, Sums, bucket_rows, is_watched, largest, wait_rows

KEPT_MAX, KEPT = 10_000, 2_000
WAITS, SHOWN_WAITS = 20, 3
STRETCHES_MAX = 240
NOTHING_TO_DO = "Activity:"
IDLE_IN_TRANSACTION = ("idle in transaction", "idle in transaction (aborted)")


@dataclass
class Backend:
    """A process of the server over the time watched."""

    what: str | None
    sums: Sums = field(default_factory=Sums)
    now: NowHeard | None = None
    last_ns: int = 0


class Picture:
    """Takes lines and looks; `document` may be asked for at any time."""

    def __init__(self, own_pids: set[int] | None = None) -> None:
        self.own_pids = own_pids if own_pids is not None else set()
        self.own = Sums()
        self.names: dict[str, str] = {}
        self.whole = Sums()
        self.lasted_ns = 0
        self.last_ns: int | None = None
        self.seconds: list[Stretch] = []
        self.texts: dict[int, QueryText] = {}
        self.sessions: dict[int, Session] = {}
        self._backends: dict[int, Backend] = {}
        self._roles: dict[str, Sums] = {}
        self._role_pids: dict[str, set[int]] = {}
        self._forgotten = Sums()
        self._bucket_ns: dict[str, dict[str, int]] = {}
        self._queries, self._locks = Queries(), Locks()
        self._looked = False
        self._seen: dict[int, SeenRow] = {}
        self._idle: int | None = None
        self._seen_ns = 0
        self._known: dict[int, SeenRow] = {}

    # --- what comes in ----------------------------------------------------------------------------------------------

    def line(self, line: AgentLine) -> None:
        """One of the agent's lines."""
        self.names |= line.get("names", {})
        end, lasted = int(line["t_ns"]), int(line["lasted_ns"])
        grown: dict[int, dict[str, int]] = {}
        second = Sums()
        for process in line["processes"]:
            pid, sums = int(process["pid"]), Sums.of(process, self.names)
            if pid in self.own_pids:
                self.own.add(sums)
                continue
            self._add(pid, process, sums, end)
            if is_watched(process):
                second.add(sums)
                grown[pid] = sums.buckets
            for (name, bucket), (_, ns) in sums.events.items():
                of = self._bucket_ns.setdefault(name, {})
                of[bucket] = of.get(bucket, 0) + ns
        self.whole.add(second)
        # With a budget only slices of the time are watched, and the sums are of those.
        watched = int(line.get("watched_ns", lasted))
        self.lasted_ns += watched
        self.last_ns = end
        self.seconds.append(
            {
                "t_ns": end,
                "span_ns": lasted,
                "lasted_ns": watched,
                "transactions": second.transactions,
                "buckets": second.buckets,
            }
        )
        self._queries.interval(end - lasted, end, grown)
        self._forget(end)

    def _add(self, pid: int, process: ProcessGrown, sums: Sums, end: int) -> None:
        what = process["what"]
        if what is not None and not is_watched(process):
            self._roles.setdefault(what, Sums()).add(sums)
            self._role_pids.setdefault(what, set()).add(pid)
            return
        mine = self._backends.setdefault(pid, Backend(what))
        mine.sums.add(sums)
        mine.now, mine.last_ns = process.get("now"), end

    def _forget(self, now_ns: int) -> None:
        """Of a server that opens a connection for each transaction only the largest and newest are kept one by one."""
        if len(self._backends) <= KEPT_MAX:
            return
        order = sorted(self._backends, key=lambda pid: -self._backends[pid].sums.busy_ns)
        for pid in order[KEPT:]:
            if self._backends[pid].last_ns < now_ns:
                self._forgotten.add(self._backends.pop(pid).sums)
        self._known = {pid: row for pid, row in self._known.items() if pid in self._backends}

    def look(self, look: Look) -> None:
        """One of the looks."""
        self.texts |= {int(number): text for number, text in look.get("queries", {}).items()}
        self.sessions |= {int(number): one for number, one in look.get("sessions", {}).items()}
        self._looked, self._idle, self._seen_ns = True, int(look["idle"]), int(look["t_ns"])
        self._seen = {row[0]: row for row in look["seen"]}
        self._known |= self._seen
        wanted = [row for row in look["seen"] if row[1] in ("client backend", WORKER)]
        seen = {row[0]: Seen(row[3], row[2], row[4], row[6]) for row in wanted}
        self._queries.look(int(look["t_ns"]), seen, {row[0]: row[8] for row in wanted})
        if "locks" in look:
            self._locks.look(int(look.get("locks_t_ns") or look["t_ns"]), look["locks"])

    def close(self) -> None:
        """Nothing comes any more."""
        self._queries.close()

    # --- what comes out ---------------------------------------------------------------------------------------------

    @property
    def looked(self) -> bool:
        """Whether there was a look."""
        return self._looked

    def document(self, top: int) -> PictureDocument:
        """The picture; every list has at most `top` rows, the largest first. Times are nanoseconds."""
        bucket_of = {name: max(of, key=lambda bucket: of[bucket]) for name, of in self._bucket_ns.items()}
        queries, sharing = self._queries.shares(bucket_of)
        current = self._locks.current if self._looked else []
        return {
            "watched_ns": self.lasted_ns,
            "transactions": self.whole.transactions,
            "requests": self.whole.requests,
            "transactions_per_second": self._per_second(self.whole.transactions),
            "busy_ns": self.whole.busy_ns,
            "busy_backends": self._mean(self.whole.busy_ns),
            "client_ns": self.whole.client_ns,
            "clients": self.clients(),
            "buckets": bucket_rows(self.whole, self.lasted_ns),
            "plain": {name: PLAIN.get(name, "") for name in in_order(set(self.whole.buckets))},
            "waits": wait_rows(self.whole, self.lasted_ns, WAITS),
            "queries": self._query_rows(queries, sharing, top) if self._looked else None,
            "sharing": sharing if self._looked else None,
            "backends": self._backend_rows(top),
            "backends_left_out": max(0, self._leading() - top),
            "chains": chains(current, top),
            "lock_waits": self._locks.longest(top),
            "relations": self._locks.by_relation()[:top],
            "processes": self._process_rows(),
            "seconds": merged(self.seconds, STRETCHES_MAX),
        }

    def _per_second(self, count: int) -> float | None:
        return count / self.lasted_ns * 1e9 if self.lasted_ns else None

    def _mean(self, ns: float) -> float | None:
        return ns / self.lasted_ns if self.lasted_ns else None

    def clients(self) -> Clients:
        """What they do at the last look, or at the last line: then who is idle is not told."""
        if self._looked:
            states = [row[2] for row in self._seen.values() if row[1] == "client backend"]
            waiting = sum(state in IDLE_IN_TRANSACTION for state in states)
            return {"busy": len(states) - waiting, "idle_in_transaction": waiting, "idle": self._idle}
        now = [
            backend.now
            for backend in self._backends.values()
            if backend.last_ns == self.last_ns and backend.what is None
        ]
        waiting = sum(state is not None and state.get("bucket") == CLIENT for state in now)
        busy = sum(state is not None for state in now) - waiting
        return {"busy": busy, "idle_in_transaction": waiting, "idle": None}

    def _query_rows(self, queries: dict[int, Query], sharing: Sharing, top: int) -> list[QueryRow]:
        # Of what is shared out: the last line waits for a look behind it.
        sampled = sharing["sampled_ns"]
        busy = sharing["exact_ns"] + sampled
        rows: list[QueryRow] = []
        for number, query in queries.items():
            ns, text = query.busy_ns, self.texts.get(number)
            exact = sum(value for name, value in query.exact.items() if name != CLIENT)
            rows.append(
                {
                    "text": text["text"] if text else None,
                    "cut": bool(text and text["cut"]),
                    "query_id": text["query_id"] if text else None,
                    "busy_ns": ns,
                    "exact_ns": exact,
                    "share": ns / busy if busy else None,
                    "margin": margin(query, sharing["sessions_seen"], busy, sampled),
                    "looks": query.looks,
                    "backends": len(query.backends),
                    "buckets": query.buckets,
                    "mostly": largest({name: ns for name, ns in query.buckets.items() if name != CLIENT}),
                    "client_ns": query.buckets.get(CLIENT, 0),
                    "sessions": [self.sessions.get(place) for place, _ in query.sessions.most_common(SHOWN_WAITS)],
                }
            )
        rows.sort(key=lambda row: (-row["busy_ns"], -row["client_ns"], -row["looks"], str(row["text"])))
        return rows[:top]

    def _leading(self) -> int:
        return sum(self._leader_of(pid) is None for pid in self._backends)

    def _leader_of(self, pid: int) -> int | None:
        """Of a parallel worker, whose work it does, where a look told."""
        row = self._known.get(pid)
        return row[5] if row is not None and row[5] != pid and self._backends[pid].what == WORKER else None

    def _backend_rows(self, top: int) -> list[BackendRow]:
        workers: dict[int, list[int]] = {}
        for pid in self._backends:
            if (leader := self._leader_of(pid)) in self._backends and leader is not None:
                workers.setdefault(leader, []).append(pid)
        under = {pid for under_leader in workers.values() for pid in under_leader}
        rows: list[BackendRow] = []
        for pid, backend in self._backends.items():
            if pid in under:
                continue
            helpers = sorted(workers.get(pid, []))
            sums = Sums()
            for each in (backend.sums, *(self._backends[worker].sums for worker in helpers)):
                sums.add(each)
            rows.append(
                {
                    "pid": pid,
                    "what": backend.what,
                    "workers": helpers,
                    "transactions": sums.transactions,
                    "busy_ns": sums.busy_ns,
                    "busy": self._mean(sums.busy_ns),
                    "client_ns": sums.client_ns,
                    "buckets": sums.buckets,
                    "mostly": largest({name: ns for name, ns in sums.buckets.items() if name != CLIENT}, 2),
                    "now": self._now(pid, backend),
                    **self._identity(pid),
                }
            )
        rows.sort(key=lambda row: (-(row["busy_ns"] + row["client_ns"]), row["pid"]))
        return rows[:top]

    def _now(self, pid: int, backend: Backend) -> Now | None:
        """What it does at the last line, or null: it waits for its client, or ended.

        What began before the watch is as old as that for the kernel's probe; the server's own clock knows it older.
        """
        if backend.now is None or backend.last_ns != self.last_ns:
            return None
        name = backend.now.get("event")
        known = self.names.get(str(name)) if not isinstance(name, str) or name.isdigit() else name
        return {
            "state": backend.now.get("state"),
            "event": known,
            "bucket": backend.now.get("bucket"),
            "since_ns": max([int(backend.now.get("since_ns") or 0), *self._older(pid, backend.now.get("bucket"))]),
            "transaction_ns": backend.now.get("transaction_ns"),
        }

    def _older(self, pid: int, bucket: str | None) -> list[int]:
        """For how long a wait has lasted by the server's word, where it has one."""
        if bucket == "lock":
            return [wait.ns for wait in self._locks.current if wait.waiter == pid]
        row = self._seen.get(pid)
        if bucket == CLIENT and row is not None and row[2] in IDLE_IN_TRANSACTION and row[6] is not None:
            return [self._seen_ns - row[6]]
        return []

    def _identity(self, pid: int) -> Whose:
        """Whose it is and its query, its last one where it is idle now; nulls where no look saw it."""
        row = self._known.get(pid)
        if row is None:
            return {"query": None, "database": None, "user": None, "application": None, "state": None}
        database, user, application = self.sessions.get(row[8]) or (None, None, None)
        known = self.texts.get(row[3])
        text = known["text"] if known else None
        state = self._seen[pid][2] if pid in self._seen else "idle"
        return {"query": text, "database": database, "user": user, "application": application, "state": state}

    def _process_rows(self) -> list[ProcessRow]:
        """The server's processes that carry no client's work. That they wait for having nothing to do is not told."""
        rows: list[ProcessRow] = []
        for what, sums in self._roles.items():
            waits = [
                row for row in wait_rows(sums, self.lasted_ns, WAITS) if not row["event"].startswith(NOTHING_TO_DO)
            ]
            cpu = sums.buckets.get(CPU, 0)
            pids = self._role_pids[what]
            tasks = [self._identity(pid)["query"] for pid in sorted(pids) if pid in self._known]
            rows.append(
                {
                    "what": what,
                    "processes": len(pids),
                    "cpu_ns": cpu,
                    "on_cpu": self._mean(cpu),
                    "waits": waits[:SHOWN_WAITS],
                    "at_work_on": tasks[:SHOWN_WAITS],
                }
            )
        return sorted(rows, key=lambda row: (-row["cpu_ns"], row["what"]))
