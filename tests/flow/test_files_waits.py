"""Where an operation's time goes, from the kernel to the page: a mix on ext4 with a journal, watched by default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory
from loop_file_system import MIB, loop_file_system

from plimsoll.record import open_run

NEEDS = ("root", "bpf", "loop devices and mkfs.ext4")
EXPERIMENT = """
format = 1
name = "waits"
title = "What do appends wait for?"

[target]
server = "files"
files = {{data = "{place}"}}

{workload}

[probes]
page_cache = false

[warmup]
until = "none"

[measure]
seconds = 2

[design]
blocks = 1
repeat_share_max = 0
"""
MIX = """
[workload]
name = "files"
clients = 2
count = 8
file_size = "64 KiB"
mix = [
    {operation = "append", bytes = 512, sync = "fsync"},
    {operation = "stat"},
]
"""
SERVING = """
[workload]
name = "file_serving"
clients = 2
"""
RING = """
[workload]
name = "files"
engine = "io_uring"
clients = 4
count = 8
file_size = "64 KiB"
mix = [{operation = "append", bytes = 512, sync = "fsync"}]
"""


def watched(laboratory: Laboratory, name: str, workload: str) -> tuple[dict[str, Any], str]:
    """Where the time of a load on ext4 went, and the page of it."""
    path = laboratory.state / f"{name}.toml"
    with loop_file_system("ext4", 2048 * MIB) as ext4:  # sparse: appends are reckoned with more than they write
        path.write_text(EXPERIMENT.format(place=ext4.point, workload=workload))
        answer = json.loads(laboratory.call("run", str(path), "--json", "--out", name))
    folder = Path(answer["run"])
    (trial,) = open_run(folder).trials
    assert trial.status == "finished", trial.data.get("reason")
    verdict = json.loads((folder / "verdict.json").read_text())
    (found,) = verdict["file_waits"]["treatments"].values()
    return found, (folder / "report" / "index.html").read_text()


def test_lines_of_a_file_server_wait_for_what_they_are_to_do(laboratory: Laboratory) -> None:
    found, page = watched(laboratory, "waits-serving", SERVING)
    assert (found["missed"], found["lost"]) == (0, 0)
    by_kind = {one["kind"]: one for one in found["operations"]}
    for one in by_kind.values():
        whole = sum(mean["value"] for mean in one["parts_ns"].values())
        assert whole == pytest.approx(one["latency_ns"]["value"], rel=1e-9)
    flush, lookup = by_kind["Flush"]["parts_ns"], by_kind["QUERY_PATH_INFORMATION"]["parts_ns"]
    slept = sum(mean["value"] for name, mean in flush.items() if name not in ("lag", "cpu", "run_queue"))
    assert slept > 0.5 * by_kind["Flush"]["latency_ns"]["value"], "what is to be durable waits"
    assert "journal" not in lookup or lookup["journal"]["value"] < slept, "a name is looked up"
    assert 'id="section-file_waits"' in page and "Flush" in page


def test_operations_on_a_ring_wait_for_their_completion(laboratory: Laboratory) -> None:
    found, page = watched(laboratory, "waits-ring", RING)
    (append,) = found["operations"]
    assert set(append["parts_ns"]) == {"lag", "completion"}
    assert append["parts_ns"]["completion"]["value"] > 0.5 * append["latency_ns"]["value"]
    assert "switches were missed" not in page, "no thread was watched"
    assert "waiting for the completion" in page and "take engine = &#34;sync&#34; for more" in page


def test_appends_wait_for_the_journal_and_the_page_says_so(laboratory: Laboratory) -> None:
    found, page = watched(laboratory, "waits", MIX)
    assert (found["missed"], found["lost"], found["trials"]) == (0, 0, 1)
    for one in found["operations"]:
        whole = sum(mean["value"] for mean in one["parts_ns"].values())
        assert whole == pytest.approx(one["latency_ns"]["value"], rel=1e-9)
        assert one["operations"] > 0
    append, stat = found["operations"]
    assert (append["kind"], stat["kind"]) == ("append", "stat")
    assert append["parts_ns"]["journal"]["value"] > 0.2 * append["latency_ns"]["value"]
    assert "journal" not in stat["parts_ns"] and "device" not in stat["parts_ns"]
    assert 'id="section-file_waits"' in page and "waiting for the journal" in page and "jbd2_log_wait_commit" in page
    assert "Of an operation&#39;s time: as given: append" in page
