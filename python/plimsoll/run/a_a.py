"""The newest A/A result of this machine, kept so that its spread can stand beside every later verdict."""

from __future__ import annotations

import json
import time
from typing import Any, cast

from plimsoll.environment.state import StateDir
from plimsoll.experiment import Source
from plimsoll.record import writer
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


def keep(state: StateDir, source: Source, run_id: str, verdict: dict[str, Any]) -> None:
    """Keeps the spread that an A/A run found, where it is this machine's: of the shipped experiment as it stands, on a
    server of its own. Of any other run nothing is kept."""
    spread = (verdict.get("a_a") or {}).get("within_run")
    is_shipped = source.experiment.name == EXPERIMENT and not source.changed
    if not spread or not is_shipped or source.experiment.target.dsn:
        return
    of_windows = (verdict.get("windows") or {}).get("noise")
    state.a_a.mkdir(parents=True, exist_ok=True)
    writer.write_json(state.a_a / NAME, {"run": run_id, "epoch_ns": time.time_ns(), **spread, "windows": of_windows})
