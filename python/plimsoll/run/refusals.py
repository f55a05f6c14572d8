"""What a server refuses of a workload whatever the trial: told from what ends one trial only, with the remedy.

An SQLSTATE decides, never the server's words. A statement that is wrong, or names what is not there, is so in every
trial with the same statements on the same kind of server; memory, CPUs, clients and rates do not mend it.
"""

from __future__ import annotations

import json
from typing import Any

from plimsoll.experiment import Experiment, size
from plimsoll.run.agent import AgentFailed

# The classes of SQLSTATEs, and single ones, that say so of a statement: syntax error or access rule violation;
# invalid schema name; feature not supported.
_OF_STATEMENTS = ("42", "3F", "0A000")
# What of a workload changes no statement.
_BESIDE = {"clients", "threads", "describe", "retries_max", "reconnect", "seed"}


class TrialFailed(Exception):
    """This trial has no result; the next one goes on."""


class StoodStill(TrialFailed):
    """A window's transactions had not ended after so many seconds, which is a result: it counts as the worst."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(what)
        self.seconds = seconds


class Refused(TrialFailed):
    """The server refuses the workload's statements, and would in every trial that shares them."""

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


def by_agent(error: AgentFailed, settings: Experiment) -> Refused | None:
    """A call of the agent that the server refused; None where the next trial may do better."""
    if error.sqlstate is None or not error.sqlstate.startswith(_OF_STATEMENTS):
        return None
    return Refused(error.message, remedy=settings.workload.remedy({error.sqlstate}))


def of_segment(summary: dict[str, Any], settings: Experiment) -> Refused | None:
    """A segment in which nothing was done because the server refused every transaction; None otherwise."""
    identity, errors = summary.get("identity") or {}, summary.get("errors") or []
    if identity.get("done") != 0 or not identity.get("failed") or not errors:
        return None
    if not all(str(error["sqlstate"]).startswith(_OF_STATEMENTS) for error in errors):
        return None
    said = "; ".join(f"{error['message']} (SQLSTATE {error['sqlstate']})" for error in errors)
    return Refused(
        f"every transaction failed: {said}", remedy=settings.workload.remedy({e["sqlstate"] for e in errors})
    )


def shared(settings: Experiment) -> str:
    """Of all that decides whether a server takes a workload's statements, a key: equal keys are refused alike.

    Settings that are numbers or sizes (memory, costs, times) are left out; words and switches may decide (row_security,
    search_path), so that treatments which differ in one have different keys.
    """
    workload = settings.workload.model_dump(mode="json", exclude=_BESIDE)
    target = settings.target
    words = {name: value for name, value in target.settings.items() if not _is_amount(value)}
    return json.dumps(
        [workload, target.server, target.version, target.dsn or target.url, words], sort_keys=True, default=str
    )


def _is_amount(value: object) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int | float) or size.is_size(value))
