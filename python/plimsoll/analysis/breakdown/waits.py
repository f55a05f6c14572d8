"""What transactions waited for, by the server's own names; who ended those for another's sync; what reads were for."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from plimsoll.analysis.breakdown.join import Joined
from plimsoll.analysis.breakdown.parts import OTHER
from plimsoll.analysis.breakdown.reading import Reads, Wait, Waits, WaitSums
from plimsoll.record.summary import Probe

GROUP_COMMIT = "wal_wait"
BACKEND, UNKNOWN = "another backend", "unknown"
SHOWN_MAX = 12
NAMELESS = "(no name)"
READ: Final = "data_read"
# Why a backend waited, where that is known; from 3 on by what was asked of a server of NFS.
CAUSES = {
    1: ", read issued by itself",
    2: ", read already in flight",
    3: ", for a read by NFS",
    4: ", for a write by NFS",
    5: ", for a commit by NFS",
    6: ", for attributes by NFS",
    7: ", for another call of NFS",
}
NFS: Final = "nfs"
NFS_CAUSES = {"read": 3, "write": 4, "commit": 5, "attributes": 6, "call": 7}
# What is told of reads by their causes; 0 is a read of which the kernel did not tell.
READ_CAUSES = {"own": 1, "on_its_way": 2, "untold": 0}
REST = "(further kinds, beyond those that a row of the record holds)"


def wait_name(event: int, bucket: str, cause: int, names: Mapping[str, Any]) -> str:
    """The server's name of a wait event; 0 is none, and in `other_wait` the rest of a row with many kinds.

    Of a read it is said whether the backend asked the device, or waited for what was asked earlier or by others; of any
    wait on NFS what was asked of the server.
    """
    if event == 0:
        return REST if bucket == OTHER else NAMELESS
    return str(names.get(str(event)) or f"event {event:#010x}") + CAUSES.get(cause, "")


def roles(probed: Probe, backends: np.ndarray) -> dict[int, str]:
    """What each process of the server is: those with rows are backends."""
    known = {
        int(process["pid"]): str(process.get("what") or UNKNOWN)
        for process in probed.get("processes") or []
        if "pid" in process
    }
    return known | dict.fromkeys(np.unique(backends).tolist(), BACKEND)


def waits_of(joined: Joined, chosen: np.ndarray, probed: Probe, known: Mapping[int, str]) -> Waits:
    """Of the chosen transactions (a mask): `waits` by name and bucket, `payers` by role (`known`: by pid), and more."""
    # A wait of nobody has the owner -1, which is the place behind the last transaction.
    rows_of_chosen = joined.waits[np.append(chosen, False)[joined.wait_owner]]
    buckets, names = [str(name) for name in probed["buckets"]], probed.get("wait_names") or {}
    key = (
        (rows_of_chosen["wait"].astype(np.int64) << 16)
        | (rows_of_chosen["bucket"].astype(np.int64) << 8)
        | rows_of_chosen["cause"]
    )
    kinds, place = np.unique(key, return_inverse=True)
    count, ns = _sums(rows_of_chosen["count"], place, len(kinds)), _sums(rows_of_chosen["ns"], place, len(kinds))
    rows = [
        _row(kind, times, spent, buckets, names)
        for kind, times, spent in zip(kinds.tolist(), count.tolist(), ns.tolist(), strict=True)
    ]
    return {
        "waits": rows,
        "payers": _payers(rows_of_chosen, buckets, known),
        READ: _reads(rows_of_chosen, buckets),
        NFS: _on_nfs(rows_of_chosen),
    }


def _row(kind: int, count: int, ns: int, buckets: list[str], names: Mapping[str, Any]) -> Wait:
    event, bucket, cause = kind >> 16, buckets[kind >> 8 & 0xFF], kind & 0xFF
    return {"name": wait_name(event, bucket, cause, names), "bucket": bucket, "count": count, "ns": ns}


def _sums(values: np.ndarray, place: np.ndarray, length: int) -> np.ndarray:
    total = np.zeros(length, np.int64)
    np.add.at(total, place, values.astype(np.int64))
    return total


def _reads(waits: np.ndarray, buckets: list[str]) -> Reads:
    """Waits for data by whether the backend asked the device itself."""
    is_read = waits["bucket"] == (buckets.index(READ) if READ in buckets else -1)
    sums = {}
    for name, cause in READ_CAUSES.items():
        of_cause = is_read & (waits["cause"] == cause)
        for key in ("count", "ns"):
            sums[f"{name}_{key}"] = int(waits[key][of_cause].sum(dtype=np.int64))
    return cast(Reads, sums)


def _on_nfs(waits: np.ndarray) -> dict[str, WaitSums]:
    """Waits on NFS, in whichever bucket, by what was asked of the server; what did not happen is left out."""
    of_part = {part: waits[waits["cause"] == cause] for part, cause in NFS_CAUSES.items()}
    return {
        part: {"count": int(rows["count"].sum(dtype=np.int64)), "ns": int(rows["ns"].sum(dtype=np.int64))}
        for part, rows in of_part.items()
        if len(rows)
    }


def _payers(waits: np.ndarray, buckets: list[str], known: Mapping[int, str]) -> dict[str, WaitSums]:
    """Waits for another's sync, by the role of the process that ended the last of each row's."""
    if GROUP_COMMIT not in buckets:
        return {}
    of_commits = waits[waits["bucket"] == buckets.index(GROUP_COMMIT)]
    pids, place = np.unique(of_commits["waker_pid"], return_inverse=True)
    count, ns = _sums(of_commits["count"], place, len(pids)), _sums(of_commits["ns"], place, len(pids))
    by_role: dict[str, WaitSums] = {}
    for pid, times, spent in zip(pids.tolist(), count.tolist(), ns.tolist(), strict=True):
        role = by_role.setdefault(known.get(pid, UNKNOWN) if pid else UNKNOWN, {"count": 0, "ns": 0})
        role["count"] += times
        role["ns"] += spent
    return by_role


def together(trials: Sequence[Waits]) -> Waits:
    """Several trials' figures added up; the waits by time, the longest first, beyond SHOWN_MAX in one row."""
    waits: dict[tuple[str, str], WaitSums] = {}
    payers: dict[str, WaitSums] = {}
    for row in (row for trial in trials for row in trial["waits"]):
        _add(waits.setdefault((row["name"], row["bucket"]), {"count": 0, "ns": 0}), row)
    for role, paid in ((role, paid) for trial in trials for role, paid in trial["payers"].items()):
        _add(payers.setdefault(role, {"count": 0, "ns": 0}), paid)
    rows: list[Wait] = [{"name": name, "bucket": bucket, **sums} for (name, bucket), sums in waits.items()]
    rows.sort(key=lambda row: (-row["ns"], row["name"]))
    beyond: WaitSums = {
        "count": sum(row["count"] for row in rows[SHOWN_MAX:]),
        "ns": sum(row["ns"] for row in rows[SHOWN_MAX:]),
    }
    rest: Wait = {"name": f"({len(rows) - SHOWN_MAX} more)", "bucket": "", **beyond}
    return {
        "waits": rows[:SHOWN_MAX] + ([rest] if len(rows) > SHOWN_MAX else []),
        "payers": dict(sorted(payers.items(), key=lambda item: -item[1]["ns"])),
        READ: reads_together(trials),
        NFS: nfs_together(trials),
    }


def nfs_together(trials: Sequence[Waits]) -> dict[str, WaitSums]:
    """Several trials' waits on NFS added up."""
    sums: dict[str, WaitSums] = {}
    for part in NFS_CAUSES:
        for row in (trial[NFS][part] for trial in trials if part in trial[NFS]):
            _add(sums.setdefault(part, {"count": 0, "ns": 0}), row)
    return sums


def reads_together(trials: Sequence[Waits]) -> Reads:
    """Several trials' waits for data added up."""
    counts = [cast(Mapping[str, int], trial[READ]) for trial in trials]
    keys = [f"{name}_{key}" for name in READ_CAUSES for key in ("count", "ns")]
    return cast(Reads, {key: sum(one[key] for one in counts) for key in keys})


def _add(sums: WaitSums, row: WaitSums) -> None:
    sums["count"] += row["count"]
    sums["ns"] += row["ns"]
