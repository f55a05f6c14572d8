"""Who waited for a lock of whom, from looks; a chain begins with a process that waits for nobody.

Looks at locks come twice a second while anybody waits, so a shorter wait may be in none: the time in `lock` is exact
all the same, whose it was is not told then.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.analysis.watch.document import ChainRow, LockWait, RelationRow, SeenLockWait
from plimsoll.analysis.watch.heard import LockLook

PREPARED = 0  # the server's number for a blocker that is no process but a prepared transaction
STALE_NS = 1_500_000_000


@dataclass
class Wait:
    """One process in another's way."""

    waiter: int
    blocker: int
    kind: str
    mode: str
    relation: str | None
    since_ns: int
    last_ns: int
    looks: int = 1

    @property
    def ns(self) -> int:
        """How long, as far as looks tell."""
        return max(0, self.last_ns - self.since_ns)


class Locks:
    """Takes looks at locks as they come."""

    def __init__(self) -> None:
        self.waits: dict[tuple[int, int, str | None], Wait] = {}
        self._looks_by_relation: dict[str | None, int] = {}
        self.current: list[Wait] = []

    def look(self, at_ns: int, waiting: list[LockLook]) -> None:
        """Everybody who waits now; empty when the last of them has gone on."""
        self.current = []
        for row in waiting:
            self._looks_by_relation[row["relation"]] = self._looks_by_relation.get(row["relation"], 0) + 1
            for blocker in dict.fromkeys(row["blockers"]):
                self.current.append(self._wait(at_ns, int(blocker), row))

    def _wait(self, at_ns: int, blocker: int, row: LockLook) -> Wait:
        key = (int(row["pid"]), blocker, row["relation"])
        known = self.waits.get(key)
        if known is None or at_ns - known.last_ns > STALE_NS:
            since = row["since_ns"] if row["since_ns"] is not None else at_ns
            fresh = Wait(key[0], blocker, row["kind"], row["mode"], row["relation"], since, at_ns)
            if known is None or fresh.ns >= known.ns:
                self.waits[key] = fresh
                return fresh
        known.last_ns, known.looks = at_ns, known.looks + 1
        return known

    def by_relation(self) -> list[RelationRow]:
        """How often somebody was seen waiting for a lock on a relation; null where the lock does not tell which."""
        rows: list[RelationRow] = [
            {"relation": name, "looks": count} for name, count in self._looks_by_relation.items()
        ]
        return sorted(rows, key=lambda row: (-row["looks"], str(row["relation"])))

    def longest(self, most: int) -> list[SeenLockWait]:
        """The longest waits seen, over by now or not."""
        now = {id(wait) for wait in self.current}
        rows = sorted(self.waits.values(), key=lambda wait: (-wait.ns, wait.waiter, wait.blocker))
        return [{**_row(wait), "now": id(wait) in now} for wait in rows[:most]]


def _row(wait: Wait) -> LockWait:
    return {
        "waiter": wait.waiter,
        "blocker": wait.blocker,
        "kind": wait.kind,
        "mode": wait.mode,
        "relation": wait.relation,
        "ns": wait.ns,
        "looks": wait.looks,
    }


def chains(waits: list[Wait], most: int) -> list[ChainRow]:
    """Trees of those who wait now: {pid, depth, ns, relation...}, each blocker before those it blocks.

    Who waits for several stands under each of them once. A circle, which the server breaks after a second, begins with
    its lowest number.
    """
    blocked: dict[int, list[Wait]] = {}
    for behind in waits:
        blocked.setdefault(behind.blocker, []).append(behind)
    waiters = {behind.waiter for behind in waits}
    rows: list[ChainRow] = []
    shown: set[int] = set()

    def walk(pid: int, depth: int, wait: Wait | None) -> None:
        if wait is None:
            rows.append({"pid": pid, "depth": depth})
        else:
            rows.append({"pid": pid, "depth": depth, **_row(wait)})
        if pid in shown:
            return
        shown.add(pid)
        for behind in sorted(blocked.get(pid, []), key=lambda behind: (-behind.ns, behind.waiter)):
            walk(behind.waiter, depth + 1, behind)

    for root in sorted(blocked.keys() - waiters, key=lambda pid: (-len(blocked[pid]), pid)):
        walk(root, 0, None)
    for root in sorted(blocked.keys() - shown):
        if root not in shown:
            walk(root, 0, None)
    return rows[:most]
