"""Places in the whole pipeline: a stack for each trial, varied, filled up, killed; and nothing of it stays."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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
    (summary,) = out.glob("trials/*/measure/summary.json")
    totals = json.loads(summary.read_text())["probes"]["block"]["request_totals"]
    assert totals[devices["log"]]["wal"]["write"]["count"] >= 100 / 2, "a sync may carry two commits, not many more"
    assert "wal" not in totals.get(devices["disk"], {})
    assert totals[devices["log"]]["data"]["read"]["count"] > 0
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
