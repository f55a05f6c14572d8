"""Places in the whole pipeline: a stack for each trial, varied, filled up, killed; and nothing of it stays."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from block_trace import requests_watched
from laboratory import Laboratory
from loop_file_system import call

NEEDS = ("root", "server user", "postgresql", "loop devices and mkfs.ext4", "mkfs.xfs")
FILES = """
format = 1
name = "on-places"
title = "What carries files?"

[environment.places.disk]
image = "320 MiB"
image_blocks = "reserved"

[target]
server = "files"
files = {data = "disk"}

[workload]
name = "files"
clients = 2
count = 4
file_size = "64 KiB"
direct = true
mix = [{operation = "read", bytes = "4 KiB"}, {operation = "append", bytes = 4096}]

[probes]
page_cache = false
breakdown = false
double_caching = false

[warmup]
until = "none"

[measure]
seconds = SECONDS

[design]
blocks = 1

[[factors]]
path = "environment.places.disk.file_system"
levels = ["ext4", "xfs"]
"""
SERVER = """
format = 1
name = "parts"
title = "Where does each part lie?"

[environment.places.disk]
image = "IMAGE"
image_blocks = "reserved"

[environment.places.log]
image = "128 MiB"
image_blocks = "reserved"

[target.files]
data = "disk"
wal = "log"
tablespaces = {pgbench_accounts = "log"}

[target.settings]
min_wal_size = "32MB"
max_wal_size = "64MB"

[workload]
name = "bank"
scale = 1

[probes]
page_cache = false
breakdown = false
double_caching = false
block = true

[warmup]
until = "none"

[measure]
transactions = 100

[design]
blocks = 1
"""


def written(laboratory: Laboratory, text: str) -> str:
    path = laboratory.state / "places.toml"
    path.write_text(text)
    return str(path)


def trials(out: Path) -> list[dict[str, Any]]:
    return [json.loads((folder / "trial.json").read_text()) for folder in sorted((out / "trials").glob("[0-9]*[0-9]"))]


def left(laboratory: Laboratory) -> list[str]:
    loops = [line for line in call("losetup", "--list", "--noheadings", "-O", "BACK-FILE").splitlines()]
    return [*laboratory.left_behind(), *(line for line in loops if str(laboratory.state) in line)]


def test_a_stack_for_each_trial_and_its_picture(laboratory: Laboratory) -> None:
    out = laboratory.state / "varied"
    laboratory.call("run", written(laboratory, FILES.replace("SECONDS", "0.3")), "--out", str(out))
    done = trials(out)
    assert [one["status"] for one in done] == ["finished", "finished"]
    assert sorted(one["layout"]["places"]["disk"]["file_system"] for one in done) == ["ext4", "xfs"]
    assert sorted(one["server"]["settings"]["file system"] for one in done) == ["ext4", "xfs"]
    layouts = json.loads((out / "verdict.json").read_text())["layout"]
    assert sorted(layout["title"] for layout in layouts) == ["file_system: ext4", "file_system: xfs"]
    assert "Where the files lay" in (out / "report" / "index.html").read_text()
    assert left(laboratory) == []


def test_a_front_that_is_killed_leaves_a_stack_that_undo_takes_away(laboratory: Laboratory) -> None:
    out = laboratory.state / "killed"
    front = laboratory.start("run", written(laboratory, FILES.replace("SECONDS", "60")), "--no-page", "--out", str(out))
    until = time.monotonic() + 60
    while not list(laboratory.state.glob("work/*.at-disk/plimsoll-*/data/*")):
        assert time.monotonic() < until and front.poll() is None, front.communicate()
        time.sleep(0.05)
    front.send_signal(signal.SIGKILL)
    front.communicate(timeout=60)
    assert [found for found in left(laboratory) if found.startswith("mount")]
    laboratory.call("undo")
    assert left(laboratory) == []


def test_parts_of_a_server_lie_on_their_places(laboratory: Laboratory) -> None:
    out = laboratory.state / "parts"
    laboratory.call("run", written(laboratory, SERVER.replace("IMAGE", "192 MiB")), "--no-page", "--out", str(out))
    (done,) = trials(out)
    assert done["status"] == "finished", done["reason"]
    assert done["layout"]["parts"] == {"data": "disk", "wal": "log", "tablespaces.pgbench_accounts": "log"}
    assert any("lie on one device" in text for text in done["caveats"])
    # Counts prove it: the log is written on its own device and nowhere else, and the accounts are read from there.
    devices = {name: place["devices"][0]["name"] for name, place in done["layout"]["places"].items()}
    assert set(devices.values()) <= set(done["device_counters"]["after"])
    (summary,) = out.glob("trials/0001/measure/summary.json")
    totals = json.loads(summary.read_text())["probes"]["block"]["request_totals"]
    assert totals[devices["log"]]["wal"]["write"]["count"] >= 100 / 2, "a sync may carry two commits, not many more"
    assert "wal" not in totals.get(devices["disk"], {})
    assert totals[devices["log"]]["data"]["read"]["count"] > 0
    assert left(laboratory) == []


def test_the_log_is_written_sequentially_on_its_device(laboratory: Laboratory, needs: Callable[..., None]) -> None:
    """By the kernel's tracepoint: each write begins where the one before ended, or on the page that it ended in."""
    needs("tracefs")
    out, text = laboratory.state / "sequential", SERVER.replace("IMAGE", "192 MiB")
    # A journal would be written in between, and a table that lies there is another part. Groups of 128 MiB, so that a
    # segment of the log lies in one piece.
    text = text.replace('tablespaces = {pgbench_accounts = "log"}', "")
    text = text.replace(
        'image = "128 MiB"',
        'image = "128 MiB"\nmkfs = {journal = "none", block_size = 4096}\nmount = {lazytime = true}',
    )
    with requests_watched(laboratory.state / "requests", f"plimsoll-test-{os.getpid()}") as watched:
        laboratory.call("run", written(laboratory, text), "--no-page", "--out", str(out))
    (done,) = trials(out)
    assert done["status"] == "finished", done["reason"]
    name = done["layout"]["places"]["log"]["devices"][0]["name"]
    device = Path("/sys/block", name, "dev").read_text().strip().replace(":", ",")
    (summary,) = out.glob("trials/0001/measure/summary.json")
    told = json.loads(summary.read_text())
    writes = [
        one for one in watched.requests
        if one.device == device and "W" in one.kind and one.beyond > one.first and one.program == "postgres"
        and told["started_ns"] <= one.at_ns <= told["ended_ns"]
    ]  # fmt: skip
    totals = told["probes"]["block"]["request_totals"][name]
    counted = {kind: totals.get(kind, {}).get("write", {"count": 0})["count"] for kind in ("wal", "metadata", "data")}
    log, inode = ([one for one in writes if ("M" in one.kind) == is_meta] for is_meta in (False, True))
    print(f"{len(log)} writes of the log and {len(inode)} of its inode by the tracepoint, {counted} by the probe")
    assert len(log) >= 50 and counted["data"] == 0
    assert abs(len(log) - counted["wal"]) <= 1 and abs(len(inode) - counted["metadata"]) <= 1, "but for one at an end"
    assert len({one.first for one in inode}) <= 1, "beside the log its file's inode alone, which lies where it lay"
    page = 8192 // 512
    jumps = [
        (before, after)
        for before, after in itertools.pairwise(log)
        if not before.beyond - page <= after.first <= before.beyond
    ]
    assert len(jumps) <= 1, f"one from a segment's end to the next segment: {jumps}"
    assert sum(one.beyond - one.first for one in log) * 512 < 16 << 20, "so that there is no second segment to go to"
    assert left(laboratory) == []


def test_a_place_that_fills_up_fails_its_trial_and_says_which(laboratory: Laboratory) -> None:
    text = SERVER.replace("IMAGE", "192 MiB").replace('image = "128 MiB"', 'image = "56 MiB"')
    text = text.replace("transactions = 100", "seconds = 60").replace("scale = 1\n", "scale = 1\nclients = 4\n")
    text = text.replace('"64MB"', '"16GB"').replace('tablespaces = {pgbench_accounts = "log"}', "")
    out = laboratory.state / "full"
    laboratory.call("run", written(laboratory, text), "--no-page", "--out", str(out), code=None)
    (done,) = trials(out)
    assert done["status"] == "failed"
    assert "at-log is full" in done["reason"] and "make its image larger" in done["reason"], done["reason"]
    assert left(laboratory) == []


def test_a_plan_that_cannot_be_had_makes_nothing(laboratory: Laboratory, needs: Callable[..., None]) -> None:
    del needs
    text = FILES.replace("SECONDS", "1").replace("[target]", "mount = {sloppy = true}\n\n[target]", 1)
    text = text.replace('image_blocks = "reserved"\n', "")
    process = laboratory.start("run", written(laboratory, text), "--out", str(laboratory.state / "none"))
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    assert (
        "environment.places.disk.mount.sloppy: ext4 refuses it" in error.replace("\n", " ") and left(laboratory) == []
    )


@pytest.mark.parametrize("how", ["windows"])
def test_servers_in_windows_each_have_their_own_images(laboratory: Laboratory, how: str) -> None:
    text = SERVER.replace("IMAGE", "192 MiB").replace("transactions = 100", "seconds = 1")
    text = text.replace("blocks = 1", f'kind = "{how}"\nblocks = 1\nrounds = 2\n')
    text += '[[factors]]\npath = "environment.places.disk.mount.data"\nlevels = ["ordered", "journal"]\n'
    out = laboratory.state / "windows"
    laboratory.call("run", written(laboratory, text), "--no-page", "--out", str(out))
    assert json.loads((out / "run.json").read_text()).get("fell_back", []) == []
    done = trials(out)
    assert [one["status"] for one in done] == ["finished", "finished"]
    assert sorted(one["layout"]["places"]["disk"]["mount_given"][0] for one in done) == ["data=journal", "data=ordered"]
    assert left(laboratory) == []
