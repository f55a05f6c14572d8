"""The kernel's log and what the kernel holds, by the agent's `watch`: lines that are written to /dev/kmsg here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from watching import Watching

from plimsoll.record.npy import read_table

WARNINGS = 7  # the kernel takes ten lines in five seconds from a program, by default
KMSG = Path("/dev/kmsg")


@pytest.fixture(autouse=True)
def _kernel_tells(needs: Callable[..., None]) -> None:
    needs("root", "kernel log and slabinfo")


class KernelWatch(Watching):
    """Watches one of the three probes of the kernel itself, with samples ten times a second."""

    def __init__(self, out: Path, probe: str, asked: dict[str, Any]) -> None:
        super().__init__()
        self.out, self.probe, self.asked = out, probe, asked

    def request(self) -> dict[str, Any]:
        return {"out": str(self.out), "interval_ms": 100, "host": True, "probes": {self.probe: self.asked}}

    def _judge(self) -> None:
        assert self.result["status"] == "on"


def write(text: str) -> None:
    with KMSG.open("w") as log:  # each write is a record; without its end of line it could go on, and is not told yet
        log.write(f"{text}\n")


def test_each_warning_is_counted_and_named_with_its_time(tmp_path: Path) -> None:
    write("WARNING: of before, which is not of the segment")
    with KernelWatch(tmp_path, "kernel_log", {}) as watch:
        for number in range(WARNINGS):
            write(f"<4>WARNING: number {number} of a test")
        write("<6>a test is quiet")
    ours = [event for event in watch.result["events"] if event["text"].endswith("of a test")]
    assert [event["text"] for event in ours] == [f"WARNING: number {number} of a test" for number in range(WARNINGS)]
    assert {(event["class"], event["by"], event["level"]) for event in ours} == {("warning", "program", 4)}
    assert watch.result["lost"] == {"overwritten": 0, "unreadable": 0, "events": 0}
    table = read_table(tmp_path / "kernel_log.npy")
    assert table is not None and table["warning"][0] == 0 and table["warning"][-1] >= WARNINGS
    # The kernel's clock goes with that of the samples, but for what the two have drifted since the boot.
    assert all(abs(event["t_ns"] - table["t_ns"][-1]) < 60e9 for event in ours)
    # A later segment that goes on after the one before reads what was written between the two.
    write("<4>WARNING: between two segments")
    with KernelWatch(tmp_path, "kernel_log", {"after": watch.result["last"]}) as later:
        pass
    assert [event["text"] for event in later.result["events"]] == ["WARNING: between two segments"]


def test_open_files_and_slab_caches_are_those_that_the_kernel_tells(tmp_path: Path) -> None:
    with KernelWatch(tmp_path, "slabs", {"every_seconds": 3600}) as watch:
        pass
    table = read_table(tmp_path / "slabs.npy")
    assert table is not None
    assert len(np.unique(table["t_ns"])) == 1, "once, and not with every sample"
    names = watch.result["slabs"]
    told = {line.split()[0]: line.split() for line in Path("/proc/slabinfo").read_text().splitlines()[2:]}
    # Those of kmalloc have other names where a kernel has several of a size (CONFIG_RANDOM_KMALLOC_CACHES).
    lasting = {name for name, line in told.items() if int(line[2]) * int(line[3]) > 1 << 20}
    assert "dentry" in lasting and lasting <= {names[place] for place in table["slab"]}
    (dentry,) = table[table["slab"] == names.index("dentry")]
    assert dentry["objects"] == pytest.approx(int(told["dentry"][2]), rel=0.2)
