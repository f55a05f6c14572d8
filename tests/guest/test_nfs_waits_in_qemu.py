"""What operations on files of NFS wait for, in an emulated guest with Debian's kernels: replies are held back, so that
what an operation asks the server for is what it waits for.

The kernel's functions are told by their names, which are others in each kernel: these are the two that the rules of
crates/probe/src/file_waits/places.rs were written after. What a sync consists of is told by them, too.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import debian_kernels
import pytest
from debian_kernel import TOOLS
from nfs_in_qemu import MODULES, MOUNT, held_back

import guest
from plimsoll.analysis.files.times import Times, times
from plimsoll.record import Segment

pytestmark = pytest.mark.long
AGENT = Path(__file__).resolve().parents[2] / "target/release/plimsoll-agent"
SECONDS_MAX = 1800
# A call takes a CPU that is emulated beside other work up to a tenth of a second: what is held back has to be longer.
HELD_MS = 150
COUNT = 20  # operations of a load
ABSENT = -(2**63)
MOST = 0.9  # of the time of operations, on a machine on which a CPU is slow
# By what a load does: its mix, and all that it then waits for.
LOADS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "reads": ({"operation": "read", "bytes": 4096}, ("nfs_read",)),
    # Written in several calls, which the server need not keep, and then committed.
    "appends": ({"operation": "append", "bytes": 65536, "sync": "fsync"}, ("nfs_write", "nfs_commit")),
    # Of one page: a single call, which the server is to keep, so that there is nothing to be committed.
    "pages": ({"operation": "append", "bytes": 4096, "sync": "fdatasync"}, ("nfs_write",)),
    # Attributes and access of each folder on the way; the name itself by LOOKUP.
    "stats": ({"operation": "stat"}, ("nfs_attributes", "nfs_call")),
    # OPEN, SETATTR and CLOSE, behind the same way.
    "creates": ({"operation": "create", "bytes": 0}, ("nfs_call", "nfs_attributes")),
}


SYNCED = [load for load in LOADS if "sync" in LOADS[load][0]]


def _request(load: str) -> bytes:
    mix = [{**LOADS[load][0], "weight": 1}]
    workload = {"name": "files", "seed": 3, "count": 100, "file_bytes": 65536, "mix": mix}
    request = {"target": {"kind": "files", "folder": f"/nfs/{load}"}, "workload": workload}
    probes: dict[str, Any] = {"file_waits": {}, **({"sync": {}} if load in SYNCED else {})}
    more = {"clients": 1, "out": f"/out/{load}", "stop": {"transactions": COUNT}, "probes": probes}
    return "".join(f"{json.dumps(one)}\n" for one in (request, {**request, **more})).encode()


# Attributes are asked for each time (actimeo=0 of the mount). A verb has its input until it ends.
SCRIPT = f"""
{MOUNT.replace("vers=4.1", "vers=4.1,actimeo=0")}
agent() {{
    rm -f /tmp/told; mkfifo /tmp/told
    plimsoll-agent $1 </tmp/told >/out/$2-$1 2>/out/$2-$1-errors &
    asked=$!
    exec 3>/tmp/told
    sed -n $3p /mnt/requests/$2 >&3
    wait $asked || {{ cat /out/$2-$1-errors; exit 7; }}
    exec 3>&-
}}
for load in {" ".join(LOADS)}; do mkdir /mnt/$load /out/$load; chmod 777 /mnt/$load; agent populate $load 1; done
{held_back(HELD_MS)}
cat /proc/version >/out/version
for load in {" ".join(LOADS)}; do
    sync
    echo 3 >/proc/sys/vm/drop_caches
    agent load $load 2
done
umount /nfs
tell $files/threads 0
"""


@pytest.fixture(scope="module", params=sorted(debian_kernels.NEWEST_OF))
def waited(
    request: pytest.FixtureRequest, needs: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Segment]:
    """What each load left."""
    needs("qemu", "tc", "Debian 6.1 and 6.12 kernel packages")
    room = tmp_path_factory.mktemp("modules")
    kernel = debian_kernels.bootable(request.param, MODULES, room)
    tc = Path(shutil.which("tc", path=TOOLS["PATH"]) or "")
    disk = {f"requests/{load}": _request(load) for load in LOADS}
    outcome = guest.run(kernel, SCRIPT, [AGENT, tc], "ext4", disk, SECONDS_MAX, processors=1)
    told = f"after {outcome.seconds:.0f} s, exit {outcome.exit}\n{outcome.console[-4000:]}"
    assert outcome.exit == 0, told
    assert kernel.version in outcome.text("version")
    found = {}
    for load in LOADS:
        folder = room / load
        folder.mkdir()
        for name, content in outcome.files.items():
            if name.startswith(f"{load}/"):
                (folder / name.removeprefix(f"{load}/")).write_bytes(content)
        segment = Segment(folder, "measure")
        probe = segment.probes["file_waits"]
        assert probe["status"] == "on" and not any(probe["lost"].values()), probe
        for place in sorted(probe["places"], key=lambda place: -place["ns"]):
            print(load, place["bucket"], place["count"], f"{place['ns'] / 1e6:.1f} ms", place["stack"])
        found[load] = segment
    return found


def _times(segment: Segment) -> Times:
    """The parts of its operations."""
    parts = times(segment)
    assert parts is not None and len(parts.latency) == COUNT
    return parts


@pytest.mark.parametrize("load", LOADS)
def test_what_is_asked_of_the_server_is_what_is_waited_for(waited: dict[str, Segment], load: str) -> None:
    told = _times(waited[load])
    parts, performed = told.parts, told.latency.sum() - told.parts["lag"].sum()
    share = Counter({name: float(values.sum() / performed) for name, values in parts.items() if name != "lag"})
    print({name: round(value, 3) for name, value in share.most_common() if value > 0.001})
    expected = LOADS[load][1]
    assert {name for name, _ in share.most_common(len(expected))} == set(expected)
    assert sum(share[name] for name in expected) > MOST
    assert all(share[name] > 0.05 for name in expected)


@pytest.mark.parametrize("load", SYNCED)
def test_a_sync_is_split_into_its_writes_and_the_servers_commit(waited: dict[str, Segment], load: str) -> None:
    segment = waited[load]
    probe, rows = segment.probes["sync"], segment.syncs
    assert probe["status"] == "on" and not any(probe["lost"].values()) and not probe["absent"], probe
    assert rows is not None and len(rows) == COUNT
    ((call,),) = (totals.items() for totals in probe["sync_totals"].values())
    told = {"writeback", "writing", "write_io", "flush", "commit", "run_queue", "cpu", "other_wait"}
    assert call[0] == LOADS[load][0]["sync"] and set(call[1]["parts_ns"]) == told
    # Every moment is in one part, in each call: what has no such part has no time.
    assert probe["open_ns_max"] == 0
    assert (sum(rows[f"{part}_ns"] for part in told) == rows["ns"]).all()
    assert (rows["journal_ns"] == ABSENT).all() and (rows["metadata_ns"] == ABSENT).all()
    print(load, {part: f"{rows[f'{part}_ns'].mean() / 1e6:.2f} ms" for part in sorted(told)})
    held_ns = HELD_MS * 1e6
    assert (rows["write_io_ns"] >= 0.99 * held_ns).all(), "each waits for its own pages, which the server holds back"
    assert (rows["writing_ns"] > 0).all()
    committed = rows["commit_ns"]
    assert (committed >= 0.99 * held_ns).all() if load == "appends" else not committed.any()
    assert (rows["write_io_ns"] + committed).sum() > MOST * rows["ns"].sum()
    # The other probe, which tells waits by names and has them of the load's thread, has as much.
    by_names = _times(segment).parts["nfs_commit"].sum()
    assert abs(by_names - committed.sum()) <= 0.01 * by_names
