"""Runs with known calls of NFS: rows, what their numbers mean, and the client's own account of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.record import MISSING, Run, open_run, writer

Json = dict[str, Any]
TIMES = ("sent_ns", "sent_last_ns", "reply_first_ns", "reply_ns")
NUMBERS = ("connection", "xid", "operation", "compound", "file", "call_bytes", "reply_bytes", "asked_bytes")
NUMBERS += ("answered_bytes", "retransmissions", "further_replies", "status")
COLUMNS = [
    *((name, "<i8") for name in TIMES),
    *((name, "<u4") for name in NUMBERS),
    ("rpc_status", "u1"),
    ("flags", "u1"),
]
TASK_TIMES = ("ended_ns", "backlog_ns", "rtt_ns", "execute_ns")
TASK_NUMBERS = ("operation", "xid", "pid", "transmissions", "sent_bytes", "received_bytes", "error")
TASK_COLUMNS = [*((name, "<i8") for name in TASK_TIMES), *((name, "<u4") for name in TASK_NUMBERS)]
TRANSACTIONS = [("start_ns", "<i8"), ("end_ns", "<i8"), ("kind", "u1")]
START_NS = 1_700_000_000_000_000_000
S, MS = 10**9, 10**6
OPERATIONS = ("READ", "GETATTR", "WRITE", "COMMIT", "SEQUENCE")
READ, GETATTR, WRITE, COMMIT, SEQUENCE = range(5)
FILES = ({"file": 1, "path": "/data/base/5/1", "class": "data"}, {"file": 2, "path": "/wal/x", "class": "wal"})
MOUNTSTATS = """\
device server:/export mounted on /mnt/db with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tbytes:\t{bytes}
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\tper-op statistics
\t        READ: {read} {read} 0 0 0 0 0 0 0
\t     GETATTR: {getattr} {getattr} 0 0 0 0 0 0 0
\t       WRITE: {write} {write} 0 0 0 0 0 0 0
\t      COMMIT: {commit} {commit} 0 0 0 0 0 0 0
\t    SEQUENCE: 0 0 0 0 0 0 0 0 0
"""


def calls(*rows: tuple[int, float, float | None], size: int = 8192) -> np.ndarray:
    """Rows of (operation, when it was sent in seconds of the segment, how many ms its reply took or None)."""
    found = np.zeros(len(rows), COLUMNS)
    found["file"] = 0xFFFFFFFF
    for row, (operation, sent_s, took_ms) in zip(found, rows, strict=True):
        row["operation"] = operation
        row["sent_ns"] = START_NS + int(sent_s * S)
        row["reply_ns"] = MISSING if took_ms is None else row["sent_ns"] + int(took_ms * MS)
        if operation in (READ, WRITE):
            row["asked_bytes"] = row["answered_bytes"] = size
            row["file"] = 1 if operation == READ else 2
    return found


def numbered(rows: np.ndarray) -> np.ndarray:
    """The same calls with a number of RPC each, and a reply that is one packet."""
    rows["xid"], rows["reply_first_ns"] = np.arange(len(rows)) + 7, rows["reply_ns"]
    return rows


def tasks(rows: np.ndarray, queue_ms: float = 0.5, own_ms: float = 0.1) -> np.ndarray:
    """The same calls as the client has them: each waited before it was sent, and had its reply a little later."""
    found = np.zeros(len(rows), TASK_COLUMNS)
    found["operation"], found["xid"], found["transmissions"] = rows["operation"], rows["xid"], 1
    found["backlog_ns"] = int(queue_ms * MS)
    reply = rows["reply_first_ns"] - rows["sent_ns"] + int(own_ms * MS)
    is_replied = rows["reply_ns"] != MISSING
    found["rtt_ns"] = np.where(is_replied, reply, MISSING)
    found["execute_ns"] = np.where(is_replied, reply, 0) + int(2 * queue_ms * MS)
    # Half of what it waited it had waited as it was sent, and the other half was after its reply.
    found["ended_ns"] = rows["sent_ns"] - START_NS + np.where(is_replied, reply, 0) + int(queue_ms * MS)
    return found


def account(rows: np.ndarray, moved: tuple[int, ...] = (0,) * 8, off: dict[str, int] | None = None) -> str:
    """What a client says that made these calls; `off`: by how much it says otherwise."""
    counts = {name: int(np.count_nonzero(rows["operation"] == place)) for place, name in enumerate(OPERATIONS)}
    counts = {name: count + (off or {}).get(name, 0) for name, count in counts.items()}
    return MOUNTSTATS.format(
        bytes=" ".join(map(str, moved)),
        read=counts["READ"],
        getattr=counts["GETATTR"],
        write=counts["WRITE"],
        commit=counts["COMMIT"],
    )


def segment(
    folder: Path, rows: np.ndarray, transactions: int = 10, moved: tuple[int, ...] = (0,) * 8,
    off: dict[str, int] | None = None, edges: tuple[float, float] = (0.0, 100.0), **more: Any,
) -> None:  # fmt: skip
    """The measured segment of a trial; `edges`: when the client's account was read, in seconds of the segment."""
    folder.mkdir(parents=True)
    np.save(folder / "nfs_calls.npy", rows)
    if (of_client := more.pop("tasks", None)) is not None:
        np.save(folder / "nfs_tasks.npy", of_client)
        names = more.pop("task_names", OPERATIONS)
        operations = [{"program": 100003, "version": 4, "procedure": 1, "name": name} for name in names]
        more["tasks"] = {"operations": operations, "lost": more.pop("tasks_lost", {"records": 0})}
    totals = {"replies_without_call": more.pop("replies_without_call", 0)}
    told = {
        "operations": [{"protocol": "nfs4.2", "name": name} for name in OPERATIONS],
        "files": 3,
        "named_files": list(FILES),
        "totals": totals,
    }
    (folder / "nfs.json").write_text(json.dumps(told))
    (folder / "mountstats-before.txt").write_text(account(rows[:0]))
    (folder / "mountstats-after.txt").write_text(account(rows, moved, off))
    mount = {
        "place": "/mnt/db",
        "source": "server:/export",
        "device": "0:38",
        "server": "10.0.0.2:2049",
        "options": "rw,noatime,rw,vers=4.2,rsize=8192,wsize=8192,hard,proto=tcp,sec=sys,addr=10.0.0.2",
        "is_targets": True,
    }
    at = [START_NS + int(edge * S) for edge in edges]
    probe: Json = {"status": "on", "mounts": [mount], "lost": {"dropped": 0, "gaps": 0}, "programs": "packet socket"}
    probe |= {"before_ns": [at[0] - MS, at[0]], "after_ns": [at[1], at[1] + MS], **more}
    identity = {"planned": transactions, "done": transactions, "failed": 0, "skipped": 0, "lost": 0}
    summary: Json = {"format": 1, "kinds": ["one", "other"], "identity": identity, "probes": {"nfs_calls": probe}}
    summary |= {"epoch_minus_monotonic_ns": START_NS, "started_ns": 0, "ended_ns": 100 * S}
    (folder / "summary.json").write_text(json.dumps(summary))


def run(folder: Path, factors: list[Json], trials: list[tuple[int, dict[str, str], np.ndarray, Json]]) -> Run:
    """A run of trials, each (block, its levels, its calls, more of its segment)."""
    treatments: Json = {}
    planned = []
    for number, (block, levels, rows, more) in enumerate(trials, start=1):
        name = ",".join(levels.values())
        treatments[name] = {"label": name, "levels": levels}
        planned.append({"number": number, "block": block, "position": 1, "treatment": name, "levels": levels})
        segment(writer.trial_folder(folder, number) / "measure", rows, **more)
        writer.write_trial(folder, {**planned[-1], "duplicate": False, "status": "finished", "reason": None})
    plan = {"trials": planned, "factors": factors, "treatments": treatments}
    writer.create_run(folder, {"id": "known", "kind": "experiment", "status": "finished"}, plan)
    return open_run(folder)


def factor(path: str, *labels: str) -> Json:
    """A factor of a plan."""
    return {
        "path": path,
        "label": path,
        "paths": [path],
        "levels": [{"label": label, "value": label} for label in labels],
    }


def used(found: Run) -> Json:
    """Each trial stands for its block and treatment."""
    return {(trial.block, trial.treatment): {"number": trial.number} for trial in found.trials}
