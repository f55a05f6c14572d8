"""The newest A/A result of this machine, kept so that its spread can stand beside every later verdict."""

from __future__ import annotations

import json
import time
from typing import Any, cast

from plimsoll.environment.state import StateDir
from plimsoll.experiment import Source, load
from plimsoll.record import writer
from plimsoll.record.trial import FINISHED
from plimsoll.record.verdict import StoredEquals

NAME = "newest.json"
EXPERIMENT = "a-a"


def newest(state: StateDir) -> StoredEquals | None:
    """The stored spread (schema/record.md, run.json `a_a`); None when no A/A run was made here."""
    try:
        spread = json.loads((state.a_a / NAME).read_text())
    except (OSError, ValueError):
        return None
    return cast(StoredEquals, spread) if isinstance(spread, dict) else None


def keep(state: StateDir, source: Source, run_id: str, verdict: dict[str, Any]) -> str | None:
    """Keeps the spread that an A/A run found, where it is this machine's: of the shipped experiment as it stands, on a
    server of its own, with all of its trials. Of any other run nothing is kept. Why not, of one that still may be."""
    spread = (verdict.get("a_a") or {}).get("within_run")
    if source.experiment.target.is_of_somebody_else or not _is_shipped(source):
        return None
    trials = verdict.get("trials") or []
    missing = sum(trial["status"] != FINISHED for trial in trials)
    if missing or not spread:
        lacks = f"{missing} of its {len(trials)} trials have no result" if missing else "it has no pair of equals"
        return f"this A/A is not kept as that of the machine: {lacks}"
    of_windows = (verdict.get("windows") or {}).get("noise")
    state.a_a.mkdir(parents=True, exist_ok=True)
    writer.write_json(state.a_a / NAME, {"run": run_id, "epoch_ns": time.time_ns(), **spread, "windows": of_windows})
    return None


def _is_shipped(source: Source) -> bool:
    """Whether it is the shipped experiment but for the number of blocks: also of a run that goes on, or of a copy."""
    if source.experiment.name != EXPERIMENT or source.changed:
        return False
    shipped = load(EXPERIMENT, quick=source.quick, blocks=source.experiment.design.blocks)
    return shipped.experiment.model_dump(mode="json") == source.experiment.model_dump(mode="json")
