"""What host and guest tell each other: one JSON object a line.

From the guest: `ready`, `event` (as an observer hears it), `clock`, `error`, `end`, and `beat`, so that silence means
that it hangs. From the host, a word a line: `clock`, `stop`, `dismissed` (the end was heard).

The fact that constrains it: a trial is an object of its plan, and both sides have the same plan; so its number is told.
"""

from __future__ import annotations

import json
from typing import Any

from plimsoll.experiment import Plan, PlannedTrial

CLOCK, STOP, DISMISSED = "clock", "stop", "dismissed"
BEAT_SECONDS = 10.0
_TRIAL = "trial number"


def event_line(name: str, info: dict[str, Any]) -> str:
    """One thing that happened, for the other side's observer."""
    told = {key: {_TRIAL: value.number} if isinstance(value, PlannedTrial) else value for key, value in info.items()}
    return json.dumps({"event": name, "info": told}, default=str)


def event_of(told: dict[str, Any], plan: Plan) -> tuple[str, dict[str, Any]]:
    """The event that a line tells of, its trial as this side's plan has it."""
    by_number = {trial.number: trial for trial in plan.trials}
    info = {
        key: by_number[value[_TRIAL]] if isinstance(value, dict) and _TRIAL in value else value
        for key, value in told["info"].items()
    }
    return str(told["event"]), info


def parsed(line: str) -> dict[str, Any] | None:
    """What a line tells; None of one that is none of ours."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
