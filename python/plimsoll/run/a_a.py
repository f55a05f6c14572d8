"""The newest A/A result of this machine, kept so that its spread can stand beside every later verdict."""

from __future__ import annotations

import json
from typing import Any

from plimsoll.environment.state import StateDir
from plimsoll.record import writer

NAME = "newest.json"


def newest(state: StateDir) -> dict[str, Any] | None:
    """The stored spread (schema/record.md, run.json `a_a`); None when no A/A run was made here."""
    try:
        spread = json.loads((state.a_a / NAME).read_text())
    except (OSError, ValueError):
        return None
    return spread if isinstance(spread, dict) else None


def store(state: StateDir, spread: dict[str, Any]) -> None:
    """Keeps the spread of a finished A/A run."""
    state.a_a.mkdir(parents=True, exist_ok=True)
    writer.write_json(state.a_a / NAME, spread)
