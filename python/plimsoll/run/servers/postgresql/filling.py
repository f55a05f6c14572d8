"""Filling the tables of a PostgreSQL by the agent, and by the user's own SQL."""

from __future__ import annotations

from typing import Any

import psycopg

from plimsoll.environment import Fault
from plimsoll.experiment import Experiment
from plimsoll.run import agent
from plimsoll.run.observer import Observer
from plimsoll.run.requests import LOADERS, data_request
from plimsoll.run.servers.datasets import refuse_broken
from plimsoll.target import Connection, bank


def fill(connection: Connection, settings: Experiment, observer: Observer) -> dict[str, Any]:
    """Makes the tables in the connection's schema; the agent's result, empty where there is nothing for it to do.

    Some workloads have conditions that hold only until their first transaction, so they are checked here. Raises
    LoadedWrong.
    """
    result: dict[str, Any] = {}
    if data := data_request(settings):
        request = {"target": connection.as_request(), "workload": data, "parallel": LOADERS}
        result = agent.call("populate", request, on_line=lambda _agent, line: observer.event("dataset", line=line))
    if settings.workload.is_users_own:
        _set_up(connection, settings)
    if settings.workload.is_checked_as_loaded:
        request = {"target": connection.as_request(), "workload": data_request(settings), "segments": []}
        refuse_broken(agent.call("check", request).get("checks", []))
    return result


def _set_up(connection: Connection, settings: Experiment) -> None:
    """The user's own SQL. Raises Fault in the server's words where it refuses them."""
    file = settings.workload.setup_path()
    try:
        bank.run_sql(connection, settings.workload.setup_sql() or "")
    except psycopg.Error as error:
        if error.sqlstate is None or file is None:
            raise  # the connection or the server, and not the text
        remedy = f"fix {file}; none of the data was kept"
        raise Fault(f"workload.setup: {file}: {str(error).strip()}", remedy=remedy) from None
