"""What loads on files are asked to leave out: record, verdict and page say so.

Verification of what phases read is a factor here, so that both levels are in one run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from laboratory import Laboratory

from plimsoll.record import Run, open_run

NEEDS = ("root",)

EXPERIMENT = """
format = 1
name = "asked"
title = "What is it asked?"

[target]
server = "files"

{workload}

[probes]
page_cache = false
breakdown = false
double_caching = false

[warmup]
until = "none"

{measure}

[design]
kind = "full factorial"
blocks = 1
repeat_share_max = 0

[[factors]]
path = "workload.{factor}"
label = "{factor}"
levels = {levels}
"""
PHASES = """
[workload]
name = "raw_storage"
size = "4 MiB"
phases = ["putc", "rewrite", "read", "seeks"]
seeks = 100
"""


def run(laboratory: Laboratory, workload: str, factor: str, levels: list[Any], measure: str = "") -> tuple[Run, str]:
    """A run of one trial a level, and its page."""
    path = laboratory.state / f"asked-{factor}.toml"
    filled = {"workload": workload, "factor": factor, "levels": json.dumps(levels), "measure": measure}
    path.write_text(EXPERIMENT.format(**filled))
    answer = json.loads(laboratory.call("run", str(path), "--json", "--out", f"asked-{factor}"))
    folder = Path(answer["run"])
    found = open_run(folder)
    assert [trial.status for trial in found.trials] == ["finished"] * len(levels), [t.data for t in found.trials]
    return found, (folder / "report" / "index.html").read_text()


def by_level(found: Run, factor: str) -> dict[Any, Any]:
    """Trials by the level of the one factor."""
    return {trial.planned["resolved"]["workload"][factor]: trial for trial in found.trials}


def test_phases_that_do_not_verify_are_called_that(laboratory: Laboratory) -> None:
    found, page = run(laboratory, PHASES, "verify", [True, False])
    trials = by_level(found, "verify")
    told = {
        verify: {entry["pass"]: segment.verification["checked"] for entry, segment in trial.passes}
        for verify, trial in trials.items()
    }
    chunks = 4 * 2**20 // 8192
    assert told[True] == {"putc": 0, "rewrite": chunks, "read": chunks, "seeks": 100}
    assert told[False] == dict.fromkeys(told[True], 0)
    written = {verify: trial.passes[1][1].told["totals"]["bytes_written"] for verify, trial in trials.items()}
    assert written[True] == written[False] == 4 * 2**20, "what is written is the same"
    # At the end of a trial every chunk is looked at, whatever the phases did.
    assert all(check["ok"] for trial in trials.values() for check in trial.data["checks"])
    treatments = json.loads((found.path / "verdict.json").read_text())["phases"]["treatments"]
    verified = {
        trial.planned["treatment"]: trial.planned["resolved"]["workload"]["verify"] for trial in trials.values()
    }
    for name, mine in treatments.items():
        reads = {phase: one["is_verified"] for phase, one in mine.items() if phase != "putc"}
        assert reads == dict.fromkeys(("rewrite", "read", "seeks"), verified[name])
    assert "Not verified, for what was read was not compared with what was written: " in page
