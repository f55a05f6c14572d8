"""Windows of treatments that do not fit at once, on real servers: a group at a time, killed in the second, judged."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from laboratory import Laboratory

from plimsoll.analysis import analyse
from plimsoll.record import Run, open_run

NEEDS = ("root", "cgroup memory", "freezer", "swap", "postgresql", "server user")
LITTLE_MEMORY = str(Path(__file__).with_name("little_memory.py"))
SERVER_MIB = 192 + 256  # with its load
ROUNDS = 6
DESIGN = f"""[probes]
page_cache = false
breakdown = false

[design]
kind = "windows"
blocks = 2
rounds = {ROUNDS}
window_seconds = 0.2
lead_in_seconds = 0.05
stop = "never"
duplicate = false

[[factors]]
path = "workload.clients"
levels = [1, 2, 4]
"""


@pytest.fixture(scope="module", autouse=True)
def _three_treatments(laboratory: Laboratory) -> None:
    text = laboratory.experiment.read_text()
    laboratory.experiment.write_text(text[: text.index("[design]")].replace("48 MiB", "16 MiB") + DESIGN)


def _spans(run: Run) -> dict[int, tuple[int, int]]:
    """When each block's windows began and ended."""
    spans: dict[int, list[int]] = {}
    for trial in run.trials:
        rows = np.load(trial.path / "measure/windows.npy")
        spans.setdefault(trial.block, []).extend((int(rows["opened_ns"].min()), int(rows["drained_ns"].max())))
    return {block: (min(times), max(times)) for block, times in spans.items()}


def test_a_kill_in_the_second_group_leaves_nothing_and_the_first_is_not_done_again(laboratory: Laboratory) -> None:
    out, little = laboratory.state / "groups", (LITTLE_MEMORY, str(2 * SERVER_MIB + 100))
    argv = ("run", str(laboratory.experiment), "--out", str(out), "--seed", "1", "--no-page")
    process = laboratory.start(*argv, program=little)
    table = out / "trials/0003/measure/windows.npy"
    until = time.monotonic() + 120
    while not table.exists() or len(table.read_bytes()) < 512:  # a window of the second group
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    laboratory.call("undo")
    assert laboratory.left_behind() == [] and laboratory.call("undo").startswith("Nothing")
    began = [trial.status for trial in open_run(out).trials]
    assert began == ["finished"] * 2 + ["not run"] * 6
    first = [(out / f"trials/000{number}/trial.json").read_bytes() for number in (1, 2)]
    # With all the memory there is: it goes on in the groups that it began in.
    laboratory.call("run", "--resume", str(out), "--no-page")
    assert laboratory.left_behind() == []
    assert first == [(out / f"trials/000{number}/trial.json").read_bytes() for number in (1, 2)]
    run = open_run(out)
    assert run.data["status"] == "finished" and "fell_back" not in run.data
    assert [trial.status for trial in run.trials] == ["finished"] * 8
    assert run.plan["groups"]["members"] == [["t1", "t2"], ["t1", "t3"]]
    assert "3 servers at once, each with its load, need 1344 MiB" in run.plan["groups"]["why"]
    of_block = {trial.block: {one.treatment for one in run.trials if one.block == trial.block} for trial in run.trials}
    assert sorted(map(sorted, of_block.values())) == [["t1", "t2"]] * 2 + [["t1", "t3"]] * 2
    spans = _spans(run)
    assert all(spans[block][1] < spans[block + 1][0] for block in (1, 2, 3)), "one group after the other"
    for trial in run.trials:
        done = int(np.load(trial.path / "measure/windows.npy")["done"].sum())
        assert done == trial.measure.identity["done"] > 0 and trial.data["windows"]["rounds"] == ROUNDS
        assert trial.measure.identity["planned"] == sum(
            trial.measure.identity[key] for key in ("done", "failed", "skipped", "lost")
        )
    verdict = json.loads(json.dumps(analyse(run)))
    assert verdict["exclusions"] == [], verdict["exclusions"]
    pairs = {(pair["first"], pair["second"]): pair for pair in verdict["comparisons"][0]["pairs"]}
    assert pairs["2", "4"]["through"] == "t1" and "through" not in pairs["1", "2"]
    assert pairs["2", "4"]["ratio"] == pytest.approx(pairs["1", "4"]["ratio"] / pairs["1", "2"]["ratio"])
    assert verdict["windows"]["groups"]["members"] == run.plan["groups"]["members"]


def test_the_plan_shows_the_groups_with_their_numbers(laboratory: Laboratory) -> None:
    little = (LITTLE_MEMORY, str(2 * SERVER_MIB + 100))
    process = laboratory.start("plan", str(laboratory.experiment), "--seed", "1", program=little)
    output, error = process.communicate(timeout=120)
    assert process.returncode == 0, output + error
    said = " ".join(output.split())
    assert "memory 896 MiB" in said and "need 1344 MiB of memory and 996 MiB are available" in said
    assert "so each block has one of 2 groups, which share clients 1: group 1: clients 2 group 2: clients 4" in said
