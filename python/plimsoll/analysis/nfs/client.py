"""Calls of NFS as the kernel's client counts them, from its tracepoint: queue, reply and whole time by operation, and
whether they are the calls that the packets show.

The fact that constrains it: a call is one of both where RPC's number is. The packets are taken from before the
tracepoint is until after it, and both reach beyond the two readings of the client's account; so a call that lies
within those has to be in both, and of others nobody can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from plimsoll.analysis.captures.mountstats import ON_THE_WIRE
from plimsoll.analysis.nfs.document import NfsAgreement, NfsBoth, NfsClient, NfsClientOperation
from plimsoll.analysis.nfs.means import over, percentile, percentile_over
from plimsoll.analysis.nfs.trial import SLACK_NS, NfsTasks, NfsTrial
from plimsoll.record import MISSING
from plimsoll.record.verdict import Mean

SOURCE: Final = "rpc_stats_latency"
# Of a call, by the column that has it.
TIMES: Final = {"queue_ns": "backlog_ns", "reply_ns": "rtt_ns", "whole_ns": "execute_ns"}
PERCENTS: Final = (50, 95, 99)


@dataclass(frozen=True)
class Joined:
    """The calls of one trial by both: places of the same ones in the two tables, and those that only one has."""

    tasks: np.ndarray
    packets: np.ndarray
    client_only: Counter[str]
    capture_only: Counter[str]
    at_edges: int  # calls that may be in one alone


def wire_names(one: NfsTasks) -> list[str]:
    """What the client's operations are in packets."""
    return [ON_THE_WIRE.get(name, name) if protocol == "nfs4" else name for protocol, name in one.names]


def _counted(names: Sequence[str], places: np.ndarray) -> Counter[str]:
    found: Counter[str] = Counter()
    for place, count in enumerate(np.bincount(places, minlength=len(names)).tolist()):
        if count:
            found[names[place] if place < len(names) else "unknown"] += count
    return found


def _once(numbers: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    alone: np.ndarray = counts[inverse] == 1
    return alone


def joined(one: NfsTrial, tasks: NfsTasks) -> Joined | None:
    """None where the record does not tell when the client's account was read."""
    before, after = one.report.get("before_ns"), one.report.get("after_ns")
    offset = one.segment.told.get("epoch_minus_monotonic_ns")
    if not before or not after or offset is None:
        return None
    rows, calls = tasks.rows, one.calls
    of_client = np.array(["callback" not in protocol for protocol, _ in one.names] + [True])
    asked = of_client[np.minimum(calls["operation"], len(one.names))]
    # Two connections may come upon the same number: then nobody can tell which is which.
    in_tasks, in_packets = _once(rows["xid"]), _once(calls["xid"])
    _, mine, theirs = np.intersect1d(
        np.where(in_tasks, rows["xid"].astype(np.int64), -1),
        np.where(in_packets & asked, calls["xid"].astype(np.int64), -2),
        return_indices=True,
    )
    alone, captured = np.ones(len(rows), bool), asked.copy()
    alone[mine], captured[theirs] = False, False
    begun = rows["ended_ns"] + offset - rows["execute_ns"]
    must_be_captured = in_tasks & (rows["transmissions"] > 0) & (begun >= before[0])
    replied = calls["reply_ns"]
    must_be_counted = in_packets & one.answered & (replied > before[0]) & (replied <= after[0] - SLACK_NS)
    client_only, capture_only = alone & must_be_captured, captured & must_be_counted
    return Joined(
        mine,
        theirs,
        _counted(wire_names(tasks), rows["operation"][client_only]),
        _counted([name for _, name in one.names], np.minimum(calls["operation"][capture_only], len(one.names))),
        int(np.count_nonzero(alone & ~must_be_captured) + np.count_nonzero(captured & ~must_be_counted)),
    )


def differs_in(one: NfsTrial) -> list[str]:
    """Operations of which the tracepoint or the capture has a call that the other ought to have, with nothing lost."""
    if one.tasks is None or one.lost or one.tasks.lost or (found := joined(one, one.tasks)) is None:
        return []
    return sorted({*found.client_only, *found.capture_only})


def of_treatment(trials: Sequence[NfsTrial]) -> NfsClient | None:
    """Of the trials in which the tracepoint could be had; None where there is none."""
    mine = [(one, one.tasks) for one in trials if one.tasks is not None]
    if not mine:
        return None
    lost: Counter[str] = Counter()
    for _, tasks in mine:
        lost.update(tasks.lost)
    names = list(dict.fromkeys(name for _, tasks in mine for name in tasks.names))
    operations = [_operation(mine, name) for name in names]
    return {
        "source": SOURCE,
        "trials": [one.number for one, _ in mine],
        "calls": sum(len(tasks.rows) for _, tasks in mine),
        "operations": sorted(operations, key=lambda row: (-row["calls"], row["name"])),
        "agreement": _agreement(mine),
        "lost": dict(lost),
    }


def _operation(mine: Sequence[tuple[NfsTrial, NfsTasks]], operation: tuple[str, str]) -> NfsClientOperation:
    rows = [tasks.of(operation) for _, tasks in mine]
    replied = [of_one[of_one["rtt_ns"] >= 0] for of_one in rows]
    times = {
        f"{name}_p{percent}": percentile_over((of_one[column] for of_one in replied), percent)
        for name, column in TIMES.items()
        for percent in PERCENTS
    }
    return {
        "protocol": operation[0],
        "name": operation[1],
        "calls": sum(map(len, rows)),
        "per_transaction": over(
            len(of_one) / one.transactions for (one, _), of_one in zip(mine, rows, strict=True) if one.transactions
        ),
        "unanswered": sum(map(len, rows)) - sum(map(len, replied)),
        "retransmissions": sum(int(np.maximum(of_one["transmissions"].astype(int) - 1, 0).sum()) for of_one in rows),
        "errors": sum(int(np.count_nonzero(of_one["error"])) for of_one in rows),
        "times": times,
    }


def _agreement(mine: Sequence[tuple[NfsTrial, NfsTasks]]) -> NfsAgreement | None:
    """Of all trials together; None where it cannot be told of one of them."""
    found = [(one, tasks, join) for one, tasks in mine if (join := joined(one, tasks)) is not None]
    if len(found) < len(mine):
        return None
    client_only: Counter[str] = Counter()
    capture_only: Counter[str] = Counter()
    both: Counter[str] = Counter()
    for _, tasks, join in found:
        client_only.update(join.client_only)
        capture_only.update(join.capture_only)
        both.update(_counted(wire_names(tasks), tasks.rows["operation"][join.tasks]))
    pairs = [_reply_times(one, tasks, join) for one, tasks, join in found]
    rows: list[NfsBoth] = []
    for name in sorted({*both, *client_only, *capture_only}):
        of_name = [
            (by_client[chosen], by_capture[chosen])
            for by_client, by_capture, names in pairs
            for chosen in (names == name,)
        ]
        rows.append(
            {
                "operation": name,
                "both": both[name],
                "client_only": client_only[name],
                "capture_only": capture_only[name],
                "compared": sum(len(by_client) for by_client, _ in of_name),
                "client_reply_ns": _middle_and_high(by_client for by_client, _ in of_name),
                "capture_reply_ns": _middle_and_high(by_capture for _, by_capture in of_name),
                "longer_ns_p50": over((percentile(first - second, 50) for first, second in of_name), floor=None),
                "shorter": sum(int(np.count_nonzero(first < second)) for first, second in of_name),
            }
        )
    return {"operations": rows, "at_edges": sum(join.at_edges for _, _, join in found)}


def _middle_and_high(trials: Iterable[np.ndarray]) -> dict[str, Mean | None]:
    known = list(trials)
    return {f"p{percent}": percentile_over(known, percent) for percent in (50, 95)}


def _reply_times(one: NfsTrial, tasks: NfsTasks, join: Joined) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of calls that were sent once and answered: by the client, by the capture up to the reply's first byte (the client
    looks at its clock as it has read the reply's number), and their operations."""
    rows, calls = tasks.rows[join.tasks], one.calls[join.packets]
    once = (rows["transmissions"] == 1) & (calls["retransmissions"] == 0)
    chosen = once & (rows["rtt_ns"] >= 0) & (calls["reply_first_ns"] != MISSING)
    rows, calls = rows[chosen], calls[chosen]
    names = np.array(wire_names(tasks), dtype=object)[rows["operation"]]
    return rows["rtt_ns"], calls["reply_first_ns"] - calls["sent_ns"], names
