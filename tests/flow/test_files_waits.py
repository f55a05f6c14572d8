"""Where an operation's time goes, from the kernel to the page: a mix on ext4 with a journal, watched by default."""

from __future__ import annotations

import json
from pathlib import Path

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

[workload]
name = "files"
clients = 2
count = 8
file_size = "64 KiB"
mix = [
    {{operation = "append", bytes = 512, sync = "fsync"}},
    {{operation = "stat"}},
]

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


def test_appends_wait_for_the_journal_and_the_page_says_so(laboratory: Laboratory) -> None:
    path = laboratory.state / "waits.toml"
    with loop_file_system("ext4", 2048 * MIB) as ext4:  # sparse: appends are reckoned with more than they write
        path.write_text(EXPERIMENT.format(place=ext4.point))
        answer = json.loads(laboratory.call("run", str(path), "--json", "--out", "waits"))
    folder = Path(answer["run"])
    (trial,) = open_run(folder).trials
    assert trial.status == "finished", trial.data.get("reason")
    verdict = json.loads((folder / "verdict.json").read_text())
    (found,) = verdict["file_waits"]["treatments"].values()
    assert (found["missed"], found["lost"], found["trials"]) == (0, 0, 1)
    for one in found["operations"]:
        whole = sum(mean["value"] for mean in one["parts_ns"].values())
        assert whole == pytest.approx(one["latency_ns"]["value"], rel=1e-9)
        assert one["operations"] > 0
    append, stat = found["operations"]
    assert (append["kind"], stat["kind"]) == ("append", "stat")
    assert append["parts_ns"]["journal"]["value"] > 0.2 * append["latency_ns"]["value"]
    assert "journal" not in stat["parts_ns"] and "device" not in stat["parts_ns"]
    page = (folder / "report" / "index.html").read_text()
    assert 'id="section-file_waits"' in page and "waiting for the journal" in page and "jbd2_log_wait_commit" in page
    assert "Of an operation&#39;s time: as given: append" in page
