"""A finished trial that has what its probes said, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plimsoll.record import Trial


def trial(folder: Path, number: int, done: int = 100, **probes: Any) -> Trial:
    measure = folder / f"{number}/measure"
    measure.mkdir(parents=True)
    identity = {"planned": done, "done": done, "failed": 0, "skipped": 0, "lost": 0}
    document = {"format": 1, "started_ns": 0, "ended_ns": 10**9, "identity": identity, "probes": probes}
    (measure / "summary.json").write_text(json.dumps(document))
    (folder / f"{number}/trial.json").write_text(json.dumps({"status": "finished"}))
    return Trial(folder / str(number), {"number": number})
