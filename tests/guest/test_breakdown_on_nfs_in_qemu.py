"""What waits of a backend on NFS are for, in an emulated guest with Debian's kernels: replies are held back.

The constraint: a server of PostgreSQL takes minutes to start where each instruction is emulated. So a small program
stands for it (backend_on_nfs.c), of which it is known what each of its requests asks the server of NFS for.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import debian_kernels
import numpy as np
import pytest
from debian_kernel import TOOLS
from nfs_in_qemu import MODULES, MOUNT, held_back

import guest
from plimsoll.record.npy import read_table

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "target/release/plimsoll-agent"
EVENTS = ROOT / "crates/probe/src/postgres_waits/15.txt"
SECONDS_MAX = 1800
HELD_NS = 150_000_000
CLOCK_NS, QUEUED = 1_000, 1
# The first is answered before the backend is known.
ASKED = "n" + "rsap" * 5
NFS_READ, NFS_WRITE, NFS_COMMIT, NFS_ATTRIBUTES, NFS_CALL = ON_NFS = range(3, 8)
# By what is asked for: the bucket that all of its waits on NFS are in, and what it has to wait for once at least.
EXPECTED: dict[str, tuple[str, set[int]]] = {
    "r": ("data_read", {NFS_READ}),
    "s": ("wal_sync", {NFS_WRITE, NFS_COMMIT}),
    "a": ("unattributed", {NFS_ATTRIBUTES}),
    "p": ("data_read", set()),
}
REQUEST = {"out": "/out", "interval_ms": 1000, "probes": {"breakdown": {"data_directory": "/nfs/cluster"}}}


def _event(kind: str, name: str) -> int:
    """PostgreSQL 15's number of a wait event."""
    numbers = {"Client": 0x06000000, "IO": 0x0A000000}
    (line,) = (line for line in EVENTS.read_text().splitlines() if line.startswith(f"{kind}: "))
    return numbers[kind] + line.removeprefix(f"{kind}: ").split().index(name)


TOLD = (("Client", "ClientRead"), ("IO", "DataFileRead"), ("IO", "WALWrite"), ("IO", "WALSync"))
# Attributes are asked for each time (actimeo=0 of the mount, and no delegations).
SCRIPT = f"""
echo 0 >/proc/sys/fs/leases-enable
{MOUNT.replace("vers=4.1", "vers=4.1,actimeo=0")}
mkdir -p /mnt/cluster/global /mnt/cluster/base /mnt/cluster/pg_wal
dd if=/dev/zero of=/mnt/cluster/base/table bs=1M count=4 2>/dev/null
chmod -R 777 /mnt/cluster
mkfifo /tmp/go
(cd /nfs/cluster && exec backend_on_nfs {" ".join(hex(_event(*of)) for of in TOLD)} {ASKED} </tmp/go >/out/asked) &
server=$!
exec 4>/tmp/go
until [ "$(readlink /proc/$server/exe)" = /bin/backend_on_nfs ]; do sleep 0.2; done
echo $server >/mnt/cluster/postmaster.pid
cat /proc/version >/out/version
{held_back(HELD_NS // 1_000_000)}
{guest.BEGIN_WATCHING}
echo go >&4
wait $server || exit 6
{guest.END_WATCHING}
umount /nfs
tell $files/threads 0
"""


@dataclass(frozen=True)
class Row:
    """A request: what it asked for, how long the client waited for it, and its waits by bucket and cause."""

    asked: str
    client_ns: int
    row: np.void
    waits: Counter[tuple[str, int]]

    @property
    def whole_ns(self) -> int:
        return int(self.row["ended_ns"] - self.row["arrived_ns"])


@pytest.fixture(scope="module", params=sorted(debian_kernels.NEWEST_OF))
def rows(
    request: pytest.FixtureRequest, needs: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> list[Row]:
    """The requests of the backend but its first."""
    needs("qemu", "tc", "clang", "Debian 6.1 and 6.12 kernel packages")
    room = tmp_path_factory.mktemp("breakdown-on-nfs")
    program = room / "backend_on_nfs"
    subprocess.run(
        ["clang", "-O1", "-rdynamic", "-o", program, Path(__file__).with_name("backend_on_nfs.c")], check=True
    )
    modules = room / "modules"
    modules.mkdir()
    kernel = debian_kernels.bootable(request.param, MODULES, modules)
    tc = Path(shutil.which("tc", path=TOOLS["PATH"]) or "")
    disk = {"request": f"{json.dumps(REQUEST)}\n".encode(), "cluster/PG_VERSION": b"15\n"}
    outcome = guest.run(kernel, SCRIPT, [AGENT, tc, program], "ext4", disk, SECONDS_MAX, processors=1)
    told = f"after {outcome.seconds:.0f} s, exit {outcome.exit}\n{outcome.text('errors')}\n{outcome.console[-4000:]}"
    assert outcome.exit == 0, told
    assert kernel.version in outcome.text("version")
    probe = json.loads(outcome.text("lines").splitlines()[-1])["probes"]["breakdown"]
    assert probe["status"] == "on" and not probe["absent"] and not any(probe["lost"].values()), probe
    assert probe["boundaries"]["waits"] == "my_wait_event_info"
    for name in ("breakdown.npy", "breakdown_waits.npy"):
        (room / name).write_bytes(outcome.files[name])
    table, waits = read_table(room / "breakdown.npy"), read_table(room / "breakdown_waits.npy")
    asked = [line.split() for line in outcome.text("asked").splitlines()]
    assert table is not None and waits is not None and len(table) == len(asked) == len(ASKED), told
    found = []
    for row, (what, client_ns) in list(zip(table, asked, strict=True))[1:]:
        of_row: Counter[tuple[str, int]] = Counter()
        for wait in waits[waits["request"] == row["request"]]:
            of_row[probe["buckets"][wait["bucket"]], int(wait["cause"])] += int(wait["ns"])
        found.append(Row(what, int(client_ns), row, of_row))
        print(what, f"{int(client_ns) / 1e6:.1f}", {key: f"{ns / 1e6:.1f} ms" for key, ns in of_row.items()})
    return found


def test_parts_are_all_of_a_requests_time(rows: list[Row]) -> None:
    for one in rows:
        parts = int(one.row["cpu_ns"]) + int(one.row["run_queue_ns"]) + sum(one.waits.values())
        assert abs(one.whole_ns - parts) <= CLOCK_NS, one
        # One that was there before the backend waited for it counts from the answer before.
        assert one.whole_ns <= one.client_ns or one.row["flags"] & QUEUED, one


@pytest.mark.parametrize("asked", EXPECTED)
def test_a_wait_on_nfs_says_what_it_is_for(rows: list[Row], asked: str) -> None:
    bucket, causes = EXPECTED[asked]
    of_kind = [one for one in rows if one.asked == asked]
    assert len(of_kind) == ASKED.count(asked)
    for one in of_kind:
        on_nfs = {key: ns for key, ns in one.waits.items() if key[1] in ON_NFS}
        assert all(key[0] == bucket for key in on_nfs) and bool(on_nfs) == bool(causes), one
        for cause in causes:
            assert one.waits[bucket, cause] >= 0.99 * HELD_NS, one
    assert sum(ns for one in of_kind for key, ns in one.waits.items() if key[1] in ON_NFS) >= (
        0.9 * sum(one.whole_ns for one in of_kind) if causes else 0
    )
