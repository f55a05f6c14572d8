"""Building and finding the data sets a plan needs (target/dataset.py says what one is).

Built without a memory limit, and then evicted from the page cache: a clone must start cold.
"""

from __future__ import annotations

import functools
import json
import time
from pathlib import Path
from typing import Any

import psycopg

from plimsoll.environment import Fault, Group, Journal, StateDir, page_cache, server, work_dir
from plimsoll.environment.group_limits import make_cage
from plimsoll.experiment import Experiment, Plan
from plimsoll.experiment.workload import Script
from plimsoll.run import agent, planning
from plimsoll.run.embedded_load import alone, build_database
from plimsoll.run.observer import Observer
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.signals import Interrupts
from plimsoll.run.surroundings import launch_outside
from plimsoll.target import Connection, PostgresServer, ServerFailed, bank
from plimsoll.target.dataset import BUILD_SETTINGS, Dataset, describe_new, find, keep, key_of
from plimsoll.target.embedded import DuckServer

LOADERS = 2


class LoadedWrong(ValueError):
    """Data that were just made break a condition that they are to hold."""


def key_for(settings: Experiment) -> str | None:
    """The key of a treatment's data set; None where its server is not installed or the agent refuses the workload."""
    version = planning.server_version(settings)
    if version is None or refusal(settings) is not None:
        return None
    data = data_request(settings)
    description = _described(json.dumps({"workload": data})) if data else None
    if isinstance(description, str):
        return None
    server = "duckdb" if planning.is_embedded(settings) else "pg"
    return key_of(data, description, settings.workload.setup_sql(), version, server)


def missing_bytes(plan: Plan, state: StateDir) -> list[int]:
    """Sizes of the data sets that this plan needs and that are not kept."""
    if plan.experiment.target.dsn:
        return []
    return [planning.data_bytes(one) for key, one in _needed(plan).items() if not find(state.datasets, key)]


def refusals(plan: Plan) -> list[str]:
    """What the agent will not do of this plan, in its words."""
    return sorted({reason for one in plan.treatments if (reason := refusal(one.settings))})


def refusal(settings: Experiment) -> str | None:
    """Why the agent refuses a workload (a size it cannot make, a script's command); None when it takes it."""
    done = {"workload": workload_request(settings), **settings.workload.how_sent()}
    data = data_request(settings)
    for request in (done, {"workload": data} if data else None):
        description = _described(json.dumps(request)) if request else None
        if isinstance(description, str):
            return description
    return None


@functools.cache
def _described(request: str) -> dict[str, Any] | str:
    """The agent's description of a workload (a request as JSON), or its refusal; asked once."""
    try:
        return agent.call("describe", json.loads(request))
    except agent.AgentFailed as error:
        if error.code != agent.EXIT_BAD_REQUEST:
            raise
        return error.message


def build_all(plan: Plan, state: StateDir, observer: Observer, interrupts: Interrupts) -> dict[str, Dataset]:
    """Every data set of the plan by its key, built where it is not kept, cold in the page cache."""
    built = {}
    for key, settings in _needed(plan).items():
        dataset = find(state.datasets, key) or build(settings, key, state, observer, interrupts)
        page_cache.evict(dataset.path)
        built[key] = dataset
    return built


def _needed(plan: Plan) -> dict[str, Experiment]:
    """One treatment's settings for each data set the plan needs, by key: target/dataset.py says what decides it."""
    kept = [one.settings for one in plan.treatments if not one.settings.workload.loads_itself()]
    return {key: settings for settings in kept if (key := key_for(settings))}


def fill(connection: Connection, settings: Experiment, observer: Observer) -> dict[str, Any]:
    """Makes the tables in the connection's schema; the agent's result, empty where there is nothing for it to do.

    Order entry has conditions that hold only until the first Delivery, so they are checked here, and decision support's
    prices before any refresh function. Raises LoadedWrong.
    """
    result: dict[str, Any] = {}
    if data := data_request(settings):
        request = {"target": connection.as_request(), "workload": data, "parallel": LOADERS}
        result = agent.call("populate", request, on_line=lambda _agent, line: observer.event("dataset", line=line))
    if isinstance(settings.workload, Script):
        _set_up(connection, settings.workload)
    if settings.workload.is_checked_as_loaded:
        request = {"target": connection.as_request(), "workload": data_request(settings), "segments": []}
        _refuse_broken(agent.call("check", request).get("checks", []))
    return result


def _set_up(connection: Connection, workload: Script) -> None:
    """The user's own SQL. Raises Fault in the server's words where it refuses them."""
    try:
        bank.run_sql(connection, workload.setup_text or "")
    except psycopg.Error as error:
        if error.sqlstate is None or workload.setup is None:
            raise  # the connection or the server, and not the text
        remedy = f"fix {workload.setup}; none of the data was kept"
        raise Fault(f"workload.setup: {workload.setup}: {str(error).strip()}", remedy=remedy) from None


def _refuse_broken(checks: list[dict[str, Any]]) -> None:
    broken = [f"{one['name']} (found {one['found']})" for one in checks if not one["ok"]]
    if broken or not checks:
        raise LoadedWrong(f"the loaded data fail these checks: {', '.join(broken) or 'none was made'}")


def _cluster(settings: Experiment, folder: Path, user: str, cage: Group | None) -> PostgresServer:
    install = planning.choose_server(settings)
    assert install is not None  # key_for has found it
    launch = cage.exec_in if cage is not None else launch_outside
    return PostgresServer(Path(install.bin_dir), folder / "data", folder, user, launch)


def _fill_cluster(cluster: PostgresServer, settings: Experiment, observer: Observer) -> dict[str, Any]:
    cluster.initdb()
    cluster.configure(BUILD_SETTINGS, None)
    cluster.start()
    cluster.create_database()
    result = fill(cluster.connection, settings, observer)
    cluster.checkpoint()
    cluster.stop()
    return result


def build(settings: Experiment, key: str, state: StateDir, observer: Observer, interrupts: Interrupts) -> Dataset:
    """Builds one data set and moves it into the cache when it is whole."""
    started = time.monotonic()
    user = planning.server_user()
    uid, gid = planning.own(user)
    name = f"build-{key.rsplit('-', 1)[1]}"  # short: the socket's path may have 107 bytes
    folder = state.work / name
    state.check_traversable(user)
    data = data_request(settings)
    with interrupts.must_finish():
        journal = Journal.create(state, name)
    try:
        work_dir.make(state, journal, folder, mode=0o755)
        cage = make_cage(name, journal)
        server.record(journal, folder / "data")
        if planning.is_embedded(settings):
            made: DuckServer | PostgresServer = alone(folder, (uid, gid), cage.exec_in if cage is not None else None)
        else:
            made = _cluster(settings, folder, user, cage)
        try:
            if isinstance(made, DuckServer):
                result, checks = build_database(made, data or {}, (uid, gid), observer)
                _refuse_broken(checks)
            else:
                result = _fill_cluster(made, settings, observer)
        except (ServerFailed, agent.AgentFailed, LoadedWrong, psycopg.Error) as error:
            what = f"data set {key} could not be built: {error}; the server's log ends: {made.log_tail(1500)}"
            raise Fault(
                what, remedy=f"free disk and memory, see ./plimsoll doctor; nothing of it was kept in {folder}"
            ) from None
        if cage is not None:
            cage.kill()  # what SQL of the user's has started does not see the data set again
        made.leave_only_data()
        page_cache.evict(folder)
        seconds = time.monotonic() - started
        version = planning.server_version(settings) or ""
        described = describe_new(key, data, planning.data_bytes(settings), version, result, seconds)
        return keep(state.datasets, folder, described)
    finally:
        with interrupts.must_finish():
            journal.put_back_all()
