"""A capture as the agent and as tshark have it, and in what they differ; tshark knows nothing of the agent."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from plimsoll.record import MISSING, read_table
from plimsoll.run import agent


class Seen(NamedTuple):
    """A call as one of the two has it."""

    operation: str
    took_ns: int | None
    status: int | None


def by_agent(capture: Path, folder: Path) -> tuple[dict[int, Seen], dict[str, int]]:
    """Its calls of NFS by number, and its totals."""
    result = agent.call("import", {"file": str(capture), "out": str(folder)})
    told = json.loads((folder / "nfs.json").read_text())
    rows = read_table(folder / "nfs_calls.npy")
    assert rows is not None
    seen, of_nfs = {}, 0
    for row in rows:
        operation = told["operations"][int(row["operation"])]
        if operation["protocol"] not in ("nfs3", "nfs4", "nfs4.0", "nfs4.1", "nfs4.2"):
            continue
        of_nfs += 1
        replied = int(row["reply_ns"])
        took = None if replied == MISSING else replied - int(row["sent_last_ns"])
        status = None if took is None else int(row["status"])
        seen[int(row["xid"])] = Seen(operation["name"], took, status)
    assert len(seen) == of_nfs
    return seen, result["totals"]


def _field(protocol: ElementTree.Element, name: str) -> str | None:
    found = next((one for one in protocol.iter("field") if one.get("name") == name), None)
    return None if found is None else found.get("show")


def by_tshark(capture: Path, reorders: bool) -> tuple[dict[int, Seen], int]:
    """Its calls by number, and how often it saw one sent again."""
    options = ["-o", f"tcp.reassemble_out_of_order:{reorders}", "-o", "rpc.defragment_rpc_over_tcp:TRUE"]
    # A client's port is any privileged one, some of which tshark takes for a protocol of its own.
    options += ["-d", "tcp.port==2049,rpc"]
    text = subprocess.check_output(
        ["tshark", "-n", "-r", capture, *options, "-Y", "rpc", "-T", "pdml", "-J", "rpc nfs"], stderr=subprocess.DEVNULL
    )
    calls: dict[int, str] = {}
    replies: dict[int, tuple[int, int]] = {}
    again = 0
    for packet in ElementTree.fromstring(text).iter("packet"):
        protocols = [one for one in packet.findall("proto") if one.get("name") in ("rpc", "nfs")]
        for place, protocol in enumerate(protocols):
            if protocol.get("name") != "rpc" or (xid_text := _field(protocol, "rpc.xid")) is None:
                continue
            xid = int(xid_text, 16)
            behind = protocols[place + 1] if place + 1 < len(protocols) else None
            if behind is None or behind.get("name") != "nfs":
                continue
            if _field(protocol, "rpc.msgtyp") == "0":
                again += xid in calls
                calls[xid] = _operation(behind)
            elif xid not in replies and (time := _field(protocol, "rpc.time")) is not None:
                status = (
                    _field(behind, "nfs.status") or _field(behind, "nfs.nfsstat3") or _field(behind, "nfs.nfsstat4")
                )
                replies[xid] = (round(float(time) * 1e9), int(status or "0"))
    seen = {xid: Seen(name, *(replies.get(xid) or (None, None))) for xid, name in calls.items()}
    return seen, again


def _operation(nfs: ElementTree.Element) -> str:
    """Of a compound the main one; the names are tshark's."""
    fields = {one.get("name"): one.get("showname") or "" for one in nfs.iter("field")}
    told = fields.get("nfs.procedure_v3") or fields.get("nfs.main_opcode") or fields.get("nfs.procedure_v4") or ""
    return told.rpartition(": ")[2].rpartition(" (")[0]


def given_up(ours: dict[int, Seen], theirs: dict[int, Seen]) -> int:
    """Calls and replies that tshark lacks."""
    missing = sum(xid not in theirs for xid in ours)
    without_reply = (ours[xid] for xid, one in theirs.items() if one.took_ns is None and xid in ours)
    return missing + sum(mine.took_ns is not None for mine in without_reply)


def differing(ours: dict[int, Seen], theirs: dict[int, Seen]) -> dict[str, tuple[Seen | None, Seen]]:
    """What tshark has and the agent lacks or has otherwise: the agent's and tshark's."""
    found: dict[str, tuple[Seen | None, Seen]] = {}
    for xid, one in theirs.items():
        mine = ours.get(xid)
        known = mine is not None and (mine.operation if one.took_ns is None else mine) == (
            one.operation if one.took_ns is None else one
        )
        if not known:
            found[hex(xid)] = (mine, one)
    return found
