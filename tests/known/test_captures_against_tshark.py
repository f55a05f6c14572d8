"""Ten captures with known calls, decoded by the agent and by tshark, which knows nothing of it.

They agree on every call, operation and reply time. tshark's time of a reply is from the packet that completes the call
to the packet that completes the reply. Where packets are lost or reordered tshark gives messages up that lie whole in
the capture; those are few and counted, and that the agent's are right is known from the generator (crates/nfs/tests).
It also gives up some whose marker or head is cut, so these captures are cut everywhere else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from plimsoll.record import MISSING, read_table
from plimsoll.run import agent

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "target/release/examples/nfs_capture"
NFS3 = [
    "NULL",
    "GETATTR",
    "SETATTR",
    "LOOKUP",
    "ACCESS",
    "READLINK",
    "READ",
    "WRITE",
    "CREATE",
    "MKDIR",
    "SYMLINK",
    "MKNOD",
    "REMOVE",
    "RMDIR",
    "RENAME",
    "LINK",
    "READDIR",
    "READDIRPLUS",
    "FSSTAT",
    "FSINFO",
    "PATHCONF",
    "COMMIT",
]
# What tshark may give up, by what was done to the capture.
GIVEN_UP_MAX = {"moved": 0.06, "lossy": 0.10}

pytestmark = pytest.mark.long


class Seen(NamedTuple):
    """A call as one of the two has it."""

    operation: str
    took_ns: int | None
    status: int | None


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, int]]]:
    """The captures, and how many calls each has whole."""
    if shutil.which("tshark") is None:
        pytest.fail("tshark is not installed; setup/packages-test-long.txt has it")
    build = ["cargo", "build", "--release", "--locked", "--offline", "-p", "plimsoll-nfs", "--examples"]
    subprocess.run([*build, "--target-dir", "target"], cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("captures")
    told = subprocess.check_output([GENERATOR, folder], text=True)
    return folder, {one["name"]: one for one in map(json.loads, told.splitlines())}


def _by_agent(capture: Path, folder: Path) -> tuple[dict[int, Seen], dict[str, int]]:
    result = agent.call("import", {"file": str(capture), "out": str(folder)})
    told = json.loads((folder / "nfs.json").read_text())
    rows = read_table(folder / "nfs_calls.npy")
    assert rows is not None
    seen = {}
    for row in rows:
        replied = int(row["reply_ns"])
        took = None if replied == MISSING else replied - int(row["sent_last_ns"])
        status = None if took is None else int(row["status"])
        seen[int(row["xid"])] = Seen(told["operations"][int(row["operation"])]["name"], took, status)
    assert len(seen) == len(rows)
    return seen, result["totals"]


def _field(protocol: ElementTree.Element, name: str) -> str | None:
    found = next((one for one in protocol.iter("field") if one.get("name") == name), None)
    return None if found is None else found.get("show")


def _by_tshark(capture: Path, reorders: bool) -> tuple[dict[int, Seen], int]:
    """Its calls by number, and how often it saw one sent again."""
    options = ["-o", f"tcp.reassemble_out_of_order:{reorders}", "-o", "rpc.defragment_rpc_over_tcp:TRUE"]
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
                calls[xid] = _operation(protocol, behind)
            elif xid not in replies and (time := _field(protocol, "rpc.time")) is not None:
                status = (
                    _field(behind, "nfs.status") or _field(behind, "nfs.nfsstat3") or _field(behind, "nfs.nfsstat4")
                )
                replies[xid] = (round(float(time) * 1e9), int(status or "0"))
    seen = {xid: Seen(name, *(replies.get(xid) or (None, None))) for xid, name in calls.items()}
    return seen, again


def _operation(rpc: ElementTree.Element, nfs: ElementTree.Element) -> str:
    if (procedure := _field(nfs, "nfs.procedure_v3")) is not None:
        return NFS3[int(procedure)]
    main = _field(nfs, "nfs.main_opcode")
    names = {"3": "ACCESS", "5": "COMMIT", "9": "GETATTR", "15": "LOOKUP", "18": "OPEN", "25": "READ", "34": "SETATTR"}
    return names.get(str(main), "WRITE" if main == "38" else f"operation {main} of {rpc.get('showname')}")


NAMES = ("nfs3", "nfs3-udp", "nfs40", "nfs41", "nfs42-cooked", "nfs3-fragments")
DAMAGED = ("nfs3-moved", "nfs41-moved", "nfs3-lossy", "nfs41-lossy")


@pytest.mark.parametrize("name", [*NAMES, *DAMAGED])
def test_both_have_every_call(name: str, captures: tuple[Path, dict[str, dict[str, int]]], tmp_path: Path) -> None:
    folder, known = captures
    capture = folder / f"{name}.pcap"
    ours, totals = _by_agent(capture, tmp_path)
    theirs, again = _by_tshark(capture, reorders=name.endswith("moved"))
    answered = sum(one.took_ns is not None for one in ours.values())
    assert (len(ours) >= known[name]["calls"], answered >= known[name]["answered"]) == (True, True)
    given_up = max((share for kind, share in GIVEN_UP_MAX.items() if name.endswith(kind)), default=0.0)
    missing = [xid for xid in ours if xid not in theirs]
    without_reply = [xid for xid in theirs if theirs[xid].took_ns is None and ours[xid].took_ns is not None]
    assert len(missing) + len(without_reply) <= given_up * 2 * len(ours), (len(missing), len(without_reply))
    assert not set(theirs) - set(ours), "tshark has calls that the agent lacks"
    differing = {}
    for xid, one in theirs.items():
        expected = one if one.took_ns is not None else one._replace(took_ns=ours[xid].took_ns, status=ours[xid].status)
        if ours[xid] != expected:
            differing[hex(xid)] = (ours[xid], one)
    assert not differing, (len(differing), list(differing.items())[:5])
    if not given_up:
        assert totals["retransmissions"] == again == known[name]["again"]
    assert len(Counter(one.operation for one in ours.values())) >= 8
