"""What a packet capture of NFS held: capture.json, a pure function of the record (schema/capture.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from plimsoll.analysis.captures.density import Cell, cells, groups_of
from plimsoll.analysis.captures.document import CaptureDocument, ClassRow, Connection, Ended, OperationRow
from plimsoll.analysis.captures.mountstats import Compared, both_accounts
from plimsoll.record import MISSING, RecordError, Run, read_table
from plimsoll.record.run import read_json

Json = dict[str, Any]
FORMAT = 1
CONNECTIONS_SHOWN = 50


def analyse_capture(run: Run) -> CaptureDocument:
    """The document. Raises RecordError where the import left too little."""
    if not run.trials:
        raise RecordError(f"{run.path}: nothing was imported; import the capture again")
    folder = run.trials[0].measure.path
    told, calls = read_json(folder / "nfs.json"), read_table(folder / "nfs_calls.npy")
    if told is None or calls is None:
        raise RecordError(f"{folder}: no nfs.json or nfs_calls.npy: the import was stopped; import the capture again")
    totals = cast(dict[str, int], told["totals"])
    asked = run.data.get("capture") or {}
    answered = calls["reply_ns"] != MISSING
    reply_ns = np.where(answered, calls["reply_ns"] - calls["sent_ns"], 0)
    connections = _connections(told, calls)
    operations = _operations(told, calls, answered, reply_ns)
    return {
        "format": FORMAT,
        "run": str(run.data.get("id") or run.path.name),
        "status": run.data.get("status"),
        "file": asked.get("file"),
        "ended": cast(Ended, told["ended"]),
        "seconds": (totals["last_ns"] - totals["first_ns"]) / 1e9,
        "totals": totals,
        "operations": operations,
        "classes": _classes(told, calls, answered, reply_ns),
        "scatter": list(_scatter(told, calls, answered, reply_ns, totals)),
        "connections": connections[:CONNECTIONS_SHOWN],
        "connections_left_out": max(0, len(connections) - CONNECTIONS_SHOWN),
        "both_accounts": _both_accounts(folder, operations),
        "caveats": _caveats(told, totals),
    }


def _both_accounts(folder: Path, operations: list[OperationRow]) -> list[Compared] | None:
    texts = [folder / f"mountstats-{name}.txt" for name in ("before", "after")]
    if not all(text.exists() for text in texts):
        return None
    before, after = (text.read_text(encoding="utf-8") for text in texts)
    counts = [(row["protocol"], row["name"], row["calls"], row["retransmissions"]) for row in operations]
    return both_accounts(before, after, counts)


def _percentile(values: np.ndarray, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None


def _operations(told: Json, calls: np.ndarray, answered: np.ndarray, reply_ns: np.ndarray) -> list[OperationRow]:
    rows: list[OperationRow] = []
    for number, operation in enumerate(told["operations"]):
        of_it = calls["operation"] == number
        mine, replies = calls[of_it], reply_ns[of_it & answered]
        if not len(mine):
            continue
        failed = (mine["status"] != 0) | (mine["rpc_status"] != 0)
        rows.append(
            {
                "protocol": operation["protocol"],
                "name": operation["name"],
                "calls": len(mine),
                "unanswered": len(mine) - len(replies),
                "retransmissions": int(mine["retransmissions"].sum()),
                "errors": int(np.count_nonzero(failed)),
                "asked_bytes": int(mine["asked_bytes"].sum(dtype=np.int64)),
                "answered_bytes": int(mine["answered_bytes"].sum(dtype=np.int64)),
                "reply_ns_p50": _percentile(replies, 50),
                "reply_ns_p95": _percentile(replies, 95),
            }
        )
    return sorted(rows, key=lambda row: (-row["calls"], row["protocol"], row["name"]))


def _classes(told: Json, calls: np.ndarray, answered: np.ndarray, reply_ns: np.ndarray) -> list[ClassRow]:
    """By what files are to a database, of those whose names were seen."""
    names = sorted({str(one["class"]) for one in told["named_files"]})
    of_file = np.full(int(told["files"]) + 1, len(names))  # the last one: no file, and names that were not seen
    for one in told["named_files"]:
        of_file[int(one["file"])] = names.index(str(one["class"]))
    classes = of_file[np.minimum(calls["file"], int(told["files"]))]
    rows: list[ClassRow] = []
    for place, file_class in enumerate(names):
        for number in np.unique(calls["operation"][classes == place]).tolist():
            of_it = (classes == place) & (calls["operation"] == number)
            replies = reply_ns[of_it & answered]
            rows.append(
                {
                    "file_class": file_class,
                    "name": told["operations"][number]["name"],
                    "calls": int(np.count_nonzero(of_it)),
                    "answered_bytes": int(calls["answered_bytes"][of_it].sum(dtype=np.int64)),
                    "reply_ns_p50": _percentile(replies, 50),
                    "reply_ns_p95": _percentile(replies, 95),
                }
            )
    return sorted(rows, key=lambda row: (row["file_class"], -row["calls"], row["name"]))


def _scatter(
    told: Json, calls: np.ndarray, answered: np.ndarray, reply_ns: np.ndarray, totals: dict[str, int]
) -> Iterator[Cell]:
    groups = groups_of([str(one["name"]) for one in told["operations"]], calls["operation"])
    sent_s = (calls["sent_ns"] - totals["first_ns"]) / 1e9
    return cells(sent_s[answered], reply_ns[answered] / 1e6, groups[answered])


def _connections(told: Json, calls: np.ndarray) -> list[Connection]:
    ends = told["connections"]
    known = calls["connection"][calls["connection"] < len(ends)]
    counts = np.bincount(known, minlength=len(ends)).tolist()
    rows = [cast(Connection, {**one, "calls": count}) for one, count in zip(ends, counts, strict=True)]
    return sorted(rows, key=lambda row: (-row["calls"], row["client"], row["server"]))


def _caveats(told: Json, totals: dict[str, int]) -> list[str]:
    """What is not what went over the wire."""
    ended = told["ended"]
    lines = {
        "gaps": "gaps in TCP streams that nothing filled: {:,} ({lost_bytes:,} bytes); the capture lost packets, "
        "and calls and replies with them",
        "records_lost": "messages given up within such gaps: {:,}",
        "datagrams_lost": "datagrams that lack a fragment: {:,}",
        "replies_without_call": "replies without their call: {:,} (sent before the capture began, or lost)",
        "unanswered": "calls without a reply in the capture: {:,}; reply times are those of the others",
        "packets_cut": "packets longer than what the capture has of them: {:,}; what was cut off is not told",
        "partial": "calls that could not be read to their end: {:,} (cut, encrypted, or an unknown operation)",
        "messages_unread": "messages that are not of NFS or the programs beside it, or make no sense: {:,}",
    }
    found = [
        text.format(totals[key], **{"lost_bytes": totals["lost_bytes"]}) for key, text in lines.items() if totals[key]
    ]
    if ended["how"] == "cut":
        found.insert(0, "the file ends within a packet: whoever captured was stopped, or the file was cut")
    if ended["how"] == "damaged":
        found.insert(
            0,
            f"the file makes no sense from byte {ended['at_byte']:,} on ({ended['reason']}): what follows is not told",
        )
    return found
