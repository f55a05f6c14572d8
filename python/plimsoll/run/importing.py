"""A packet capture becomes a record: the agent reads it, and run.json says whose it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plimsoll.analysis.captures.kind import KIND
from plimsoll.record import writer
from plimsoll.run import agent
from plimsoll.run.versions import versions

Json = dict[str, Any]


def import_capture(
    file: Path,
    out: Path,
    command: list[str],
    on_progress: Callable[[int, int], None],
    mountstats: tuple[str, str] | None = None,
) -> None:
    """Reads the capture into the run folder `out`. Raises AgentFailed, and then run.json says that it failed.

    `mountstats`: the client's texts before and after it.
    """
    folder = writer.trial_folder(out, 1) / "measure"
    folder.mkdir(parents=True)
    for name, text in zip(("before", "after"), mountstats or (), strict=False):
        writer.write_text(folder / f"mountstats-{name}.txt", text)
    document: Json = {
        "id": out.name,
        "kind": KIND,
        "experiment": KIND,
        "title": "Calls of NFS in a packet capture",
        "status": "running",
        "started_epoch_ns": time.time_ns(),
        "ended_epoch_ns": None,
        "seed": None,
        "command": command,
        "plimsoll": versions(),
        "quick": False,
        "capture": {"file": str(file), "bytes": file.stat().st_size},
    }
    plan: Json = {
        "trials": [{"number": 1, "block": 1, "position": 1, "treatment": "t1", "levels": {}}],
        "factors": [],
        "treatments": {"t1": {"label": "as captured", "levels": {}}},
    }
    writer.create_run(out, document, plan)
    status = "failed"
    try:
        agent.call(
            "import",
            {"file": str(file.absolute()), "out": str(folder.absolute())},
            on_line=lambda _, line: on_progress(int(line["bytes"]), int(line["of_bytes"])),
        )
        status = "finished"
    finally:
        trial = {"number": 1, "block": 1, "treatment": "t1", "duplicate": False, "status": status, "reason": None}
        writer.write_trial(out, trial)
        writer.write_run(out, document | {"status": status, "ended_epoch_ns": time.time_ns()})
