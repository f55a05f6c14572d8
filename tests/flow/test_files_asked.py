"""What loads on files are asked to leave out, or to have as processes have it: record, verdict and page say so.

Verification of what phases read, and tables of file descriptors of the clients' own. Each is a factor here, so that
both levels are in one run.
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
# A file is made, written, read and renamed by each client, again and again.
SCRIPT = r"""Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" NT_STATUS_OK
NTCreateX "\clients\client1" 0x1 0x2 1 NT_STATUS_OK
Close 1 NT_STATUS_OK
NTCreateX "\clients\client1\a" 0x40 0x2 2 NT_STATUS_OK
WriteX 2 0 65536 65536 NT_STATUS_OK
ReadX 2 100 61440 61440 NT_STATUS_OK
LockX 2 0 10 NT_STATUS_OK
UnlockX 2 0 10 NT_STATUS_OK
Close 2 NT_STATUS_OK
NTCreateX "\clients\client1\b" 0x40 0x1 3 NT_STATUS_OBJECT_NAME_NOT_FOUND
Rename "\clients\client1\a" "\clients\client1\b" NT_STATUS_OK
"""
SERVING = """
[workload]
name = "file_serving"
loadfile = "{script}"
clients = 3
passes = 20
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


def test_clients_with_tables_of_descriptors_of_their_own_do_the_same(laboratory: Laboratory) -> None:
    script = laboratory.state / "client.txt"
    script.write_text(SCRIPT)
    levels, measure = ["shared", "own"], "[measure]\nseconds = 120"
    found, _ = run(laboratory, SERVING.format(script=script), "descriptor_tables", levels, measure)
    told = {level: trial.measure.told for level, trial in by_level(found, "descriptor_tables").items()}
    counts = {level: {kind: one["done"] for kind, one in summary["by_kind"].items()} for level, summary in told.items()}
    assert sum(counts["own"].values()) == 3 * 20 * SCRIPT.count("\n") and counts["own"] == counts["shared"]
    for summary in told.values():
        del summary["totals"]["system_calls"]  # what is not there is looked for in the folder of all, which others fill
    assert [told["own"][key] for key in ("totals", "verification")] == [
        told["shared"][key] for key in ("totals", "verification")
    ]
    tables = {level: summary["facts"]["descriptor_table"] for level, summary in told.items()}
    assert tables == {"shared": "one of all clients", "own": "one of each client"}
