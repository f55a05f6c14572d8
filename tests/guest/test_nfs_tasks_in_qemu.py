"""The same run by the kernel's tracepoint and by packets: NFS in one emulated guest with Debian's kernels.

What is compared is alike but for the client's own part: its clock for a call begins before the packet is made and ends
when a worker has been given the CPU and has read the reply's number, and the packet's times are those at the device.
On an emulated and busy machine that part takes milliseconds now and then. So replies are held back on their way
(netem, behind which packets are taken as they arrive) for times that it is small against. And one call is under way at
a time: of several, a reply that overtakes another is seen at the device, and reaches the client only after that one.
And the guest has one CPU: of two, which are threads of the host's, one may stand still while the other goes on, and the
worker that reads the reply be on that one.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import debian_kernels
import numpy as np
import pytest
from debian_kernel import TOOLS
from nfs_in_qemu import BLOCK, MODULES, MOUNT, held_back

import guest
from plimsoll.analysis.captures.mountstats import ON_THE_WIRE
from plimsoll.analysis.nfs import client
from plimsoll.analysis.nfs.trial import NfsTasks, NfsTrial
from plimsoll.record import MISSING, read_table
from plimsoll.words.nfs.sentences import agreement_words

pytestmark = pytest.mark.long
AGENT = Path(__file__).resolve().parents[2] / "target/release/plimsoll-agent"
SECONDS_MAX = 1800  # of which a quiet machine takes two minutes
READS, WRITES = 101, 53
HELD_MS, AROUND_MS = 400, 200  # each reply for so long, evenly around it
FEW = 10  # of an operation: percentiles of fewer calls say nothing
WITHIN = 0.05
REQUEST = {
    "out": "/out/series",
    "interval_ms": 1000,
    "target": {"kind": "files", "folder": "/nfs"},
    "probes": {"nfs_calls": {}},
}
SCRIPT = f"""
{MOUNT}
mkdir -p /out/series
cat /proc/version >/out/version
grep ' /nfs ' /proc/mounts >/out/mount
{held_back(HELD_MS, AROUND_MS)}
{guest.BEGIN_WATCHING}
sleep 2
dd if=/nfs/data of=/dev/null bs={BLOCK} count={READS} iflag=direct || exit 6
dd if=/mnt/source of=/nfs/written bs={BLOCK} count={WRITES} oflag=direct || exit 7
ls -l /nfs >/out/listed
sleep 2
{guest.END_WATCHING}
umount /nfs
tell $files/threads 0
"""


@dataclass(frozen=True)
class Watched:
    """Of one run: calls by packets and by the tracepoint, the names of their operations, and what the probe says."""

    packets: np.ndarray
    tasks: np.ndarray
    packet_names: list[str]
    task_names: list[str]
    probe: dict[str, Any]
    told: dict[str, Any]  # nfs.json

    def analysed(self) -> NfsTrial:
        """As a trial has it; how far the clock of packets is from the other is taken from the calls themselves."""
        order = np.argsort(self.packets["xid"]), np.argsort(self.tasks["xid"])
        packets, tasks = self.packets[order[0]], self.tasks[order[1]]
        sent = tasks["ended_ns"] - tasks["execute_ns"] + tasks["backlog_ns"]
        offset = int(np.median(packets["sent_ns"] - sent))
        segment: Any = SimpleNamespace(told={"epoch_minus_monotonic_ns": offset}, identity={})
        return NfsTrial(1, self.told, self.probe, packets, segment, None, NfsTasks(self.probe["tasks"], tasks))

    def replied(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Times to the reply in nanoseconds, of the packets and of the tasks, call by call of those with this name."""
        order = np.argsort(self.packets["xid"]), np.argsort(self.tasks["xid"])
        packets, tasks = self.packets[order[0]], self.tasks[order[1]]
        chosen = np.array([self.task_names[place] == name for place in tasks["operation"]])
        return (packets["reply_first_ns"] - packets["sent_ns"])[chosen], tasks["rtt_ns"][chosen]


@pytest.fixture(scope="module", params=sorted(debian_kernels.NEWEST_OF))
def watched(
    request: pytest.FixtureRequest, needs: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> Watched:
    needs("qemu", "tc", "Debian 6.1 and 6.12 kernel packages")
    room = tmp_path_factory.mktemp("modules")
    kernel = debian_kernels.bootable(request.param, MODULES, room)
    tc = Path(shutil.which("tc", path=TOOLS["PATH"]) or "")
    disk = {
        "request": f"{json.dumps(REQUEST)}\n".encode(),
        "data": bytes(range(256)) * (BLOCK // 256) * READS,
        "source": bytes(WRITES * BLOCK),
    }
    outcome = guest.run(kernel, SCRIPT, [AGENT, tc], "ext4", disk, SECONDS_MAX, processors=1)
    told = f"after {outcome.seconds:.0f} s, exit {outcome.exit}\n{outcome.text('errors')}\n{outcome.console[-4000:]}"
    assert outcome.exit == 0, told
    assert kernel.version in outcome.text("version")
    last = json.loads(outcome.text("lines").splitlines()[-1])
    assert last["event"] == "watched", told
    probe = last["probes"]["nfs_calls"]
    print(f"{outcome.text('version')}{outcome.text('mount')}{json.dumps(probe)}\n{told}")
    assert probe["status"] == "on" and "tasks" not in probe["absent"], probe
    tables = []
    for name in ("nfs_calls", "nfs_tasks"):
        path = room / f"{name}.npy"
        path.write_bytes(outcome.files[f"series/{name}.npy"])
        tables.append(read_table(path))
    told_of_calls = json.loads(outcome.text("series/nfs.json"))
    return Watched(
        tables[0],
        tables[1],
        [str(one["name"]) for one in told_of_calls["operations"]],
        [str(one["name"]) for one in probe["tasks"]["operations"]],
        probe,
        told_of_calls,
    )


def test_the_self_test_holds_and_nothing_is_lost(watched: Watched) -> None:
    tasks = watched.probe["tasks"]
    assert tasks["checks"] and all(check["ok"] for check in tasks["checks"])
    assert not any(tasks["lost"].values()) and not any(watched.probe["lost"].values())
    assert tasks["rows"] == len(watched.tasks)
    assert {one["program"] for one in tasks["operations"]} == {100003}
    assert {one["version"] for one in tasks["operations"]} == {4}


def test_the_calls_are_the_same_ones(watched: Watched) -> None:
    by_packets = Counter(watched.packet_names[place] for place in watched.packets["operation"].tolist())
    by_tasks = Counter(watched.task_names[place] for place in watched.tasks["operation"].tolist())
    print(by_packets, by_tasks)
    on_the_wire: Counter[str] = Counter()
    for name, count in by_tasks.items():
        on_the_wire[ON_THE_WIRE.get(name, name)] += count
    assert by_packets == on_the_wire
    assert by_packets["READ"] == READS and by_packets["WRITE"] == WRITES
    assert sorted(watched.packets["xid"].tolist()) == sorted(watched.tasks["xid"].tolist())


def test_the_analysis_finds_the_same_calls_in_both(watched: Watched) -> None:
    trial = watched.analysed()
    mine = client.of_treatment([trial])
    assert mine is not None and mine["agreement"] is not None
    print(agreement_words(mine), mine)
    assert client.differs_in(trial) == [] and mine["agreement"]["at_edges"] == 0
    of_each = {row["operation"]: row for row in mine["agreement"]["operations"]}
    assert (of_each["READ"]["both"], of_each["WRITE"]["both"]) == (READS, WRITES)
    assert not any(row["shorter"] for row in of_each.values())
    assert sum(row["calls"] for row in mine["operations"]) == len(watched.tasks)


def test_replies_take_the_same_time_by_both(watched: Watched) -> None:
    compared = 0
    for name in watched.task_names:
        packets, tasks = watched.replied(name)
        assert (tasks != MISSING).all() and (tasks >= packets).all(), (
            f"{name}: the client's own clock is around the packets"
        )
        if len(packets) < FEW:
            continue
        found = {percent: [float(np.percentile(one, percent)) for one in (packets, tasks)] for percent in (50, 95)}
        own = np.percentile(tasks - packets, (50, 95)) / 1e3
        print(
            name, len(packets), {percent: [round(ns / 1e6, 3) for ns in both] for percent, both in found.items()}, own
        )
        for percent, (by_packets, by_tasks) in found.items():
            assert by_tasks == pytest.approx(by_packets, rel=WITHIN), f"{name}: p{percent}"
        compared += 1
    assert compared >= 2, "reads and writes"


def test_a_calls_parts_are_no_more_than_the_whole(watched: Watched) -> None:
    tasks = watched.tasks
    assert (tasks["backlog_ns"] >= 0).all()
    assert (tasks["backlog_ns"] + tasks["rtt_ns"] <= tasks["execute_ns"]).all()
    assert (tasks["transmissions"] == 1).all() and not watched.packets["retransmissions"].any()
    reads = np.array([watched.task_names[place] == "READ" for place in tasks["operation"]])
    assert (tasks["received_bytes"][reads] > 0).all() and tasks["received_bytes"][reads].max() > BLOCK
