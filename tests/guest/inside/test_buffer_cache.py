"""The experiment buffer-cache on a real cgroup version 2; what it recorded is judged outside, where that is quick."""

import os
import shutil
from pathlib import Path

import pytest

from plimsoll.environment import StateDir
from plimsoll.experiment.reading.source import load
from plimsoll.run.observer import Silent
from plimsoll.run.runner import Runner

ROOT = Path("/sys/fs/cgroup")
ROOM = Path(os.environ.get("PLIMSOLL_ROOM", "/nonexistent"))
# Small and short: every page fault is a system call of the host here. test_cgroup_v2.py builds its data set outside.
SETTINGS = [
    'environment.memory="96 MiB"',
    'environment.swap="32 MiB"',
    'workload.size=["24 MiB"]',
    "workload.clients=1",  # on one CPU a second one makes the load generator the limit, which gives no verdict
    'target.settings.shared_buffers=["4 MiB","16 MiB"]',
    'target.settings.max_wal_size="256MB"',
    'warmup.until="none"',
    "warmup.prewarm=false",
    "design.duplicate=false",
]


def _recorded(blocks: int, seconds: int) -> None:
    before = (ROOT / "cgroup.subtree_control").read_text()
    state, out = StateDir().prepare(), ROOM / "disk" / f"blocks-{blocks}"
    source = load("buffer-cache", quick=True, sets=[*SETTINGS, f"measure.seconds={seconds}"], blocks=blocks)
    assert Runner(source, out, state, Silent(), ["test"], 1).run() == "finished"
    shutil.copytree(out, ROOM / "kept" / out.name)
    assert [path for path in ROOT.iterdir() if path.is_dir()] == []
    assert (ROOT / "cgroup.subtree_control").read_text() == before
    assert not list(state.work.iterdir()) and len(Path("/proc/swaps").read_text().splitlines()) == 1


def test_a_block_of_two_caches():
    _recorded(1, 1)


@pytest.mark.long
def test_three_blocks_of_two_caches():
    _recorded(3, 3)
