"""Building and finding the data sets a plan needs (target/dataset.py says what one is).

Built without a memory limit, outside any group, and then evicted from the page cache: a clone must start cold.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from plimsoll.environment import Fault, Journal, StateDir, page_cache, server, work_dir
from plimsoll.environment.discover import PostgresInstall, servers
from plimsoll.experiment import Experiment, Plan
from plimsoll.experiment.model import Zipf
from plimsoll.run import agent, planning
from plimsoll.run.observer import Observer
from plimsoll.run.signals import Interrupts
from plimsoll.run.surroundings import launch_outside, own
from plimsoll.target import PostgresServer, ServerFailed
from plimsoll.target.dataset import BUILD_SETTINGS, Dataset, describe_new, find, keep, key_of

LOADERS = 2


def workload_request(settings: Experiment) -> dict[str, Any]:
    """The agent's `workload` object (schema/agent.md)."""
    workload = settings.workload
    request: dict[str, Any] = {
        "name": workload.name,
        "size_bytes": planning.data_bytes(settings),
        "seed": workload.seed,
        "keys": {"zipf": workload.keys.zipf} if isinstance(workload.keys, Zipf) else workload.keys,
        "access": workload.access,
        "draw": workload.draw,
    }
    return request if workload.mix is None else {**request, "mix": workload.mix}


def _key(settings: Experiment, install: PostgresInstall) -> str:
    workload = workload_request(settings)
    return key_of(workload, agent.call("describe", {"workload": workload}), install.version)


def kept_sizes(plan: Plan, state: StateDir) -> set[int]:
    """Sizes (bytes, as the plan resolves them) whose data set is kept already."""
    found = set()
    for settings in _one_of_each(plan):
        install = planning.choose_server(settings, servers())
        if install is None or settings.target.dsn or refusal(settings):
            continue
        if find(state.datasets, _key(settings, install)):
            found.add(planning.data_bytes(settings))
    return found


def refusals(plan: Plan) -> list[str]:
    """What the agent will not do of this plan, in its words, by data set."""
    return [reason for settings in _one_of_each(plan) if (reason := refusal(settings))]


def refusal(settings: Experiment) -> str | None:
    """Why the agent refuses a workload (a size it cannot make); None when it takes it."""
    try:
        agent.call("describe", {"workload": workload_request(settings)})
    except agent.AgentFailed as error:
        if error.code != agent.EXIT_BAD_REQUEST:
            raise
        return error.message
    return None


def build_all(plan: Plan, state: StateDir, observer: Observer, interrupts: Interrupts) -> dict[int, Dataset]:
    """Every data set of the plan by its size in bytes, built where it is not kept, cold in the page cache."""
    built = {}
    for settings in _one_of_each(plan):
        install = planning.choose_server(settings, servers())
        assert install is not None  # the plan has checked it
        key = _key(settings, install)
        dataset = find(state.datasets, key) or build(settings, install, key, state, observer, interrupts)
        page_cache.evict(dataset.path)
        built[planning.data_bytes(settings)] = dataset
    return built


def _one_of_each(plan: Plan) -> list[Experiment]:
    """One treatment's settings for each data set the plan needs."""
    return list({planning.data_bytes(one.settings): one.settings for one in plan.treatments}.values())


def build(
    settings: Experiment,
    install: PostgresInstall,
    key: str,
    state: StateDir,
    observer: Observer,
    interrupts: Interrupts,
) -> Dataset:
    """Builds one data set and moves it into the cache when it is whole."""
    started = time.monotonic()
    user = planning.server_user()
    uid, gid = own(user)
    name = f"build-{key}"
    folder = state.work / name
    state.check_traversable(user)
    workload = workload_request(settings)
    with interrupts.must_finish():
        journal = Journal.create(state, name)
    try:
        work_dir.make(state, journal, folder, uid=uid, gid=gid)
        server.record(journal, folder / "data")
        cluster = PostgresServer(Path(install.bin_dir), folder / "data", folder, user, launch_outside)
        try:
            cluster.initdb()
            cluster.configure(BUILD_SETTINGS, None)
            cluster.start()
            cluster.create_database()
            request = {"target": cluster.connection.as_request(), "workload": workload, "parallel": LOADERS}
            result = agent.call("populate", request, on_line=lambda _agent, line: observer.event("dataset", line=line))
            cluster.checkpoint()
            cluster.stop()
        except (ServerFailed, agent.AgentFailed) as error:
            what = f"data set {key} could not be built: {error}; the server's log ends: {cluster.log_tail(1500)}"
            raise Fault(
                what, remedy=f"free disk and memory, see ./plimsoll doctor; nothing of it was kept in {folder}"
            ) from None
        cluster.log.unlink(missing_ok=True)
        page_cache.evict(folder)
        described = describe_new(key, workload, install.version, result, time.monotonic() - started)
        return keep(state.datasets, folder, described)
    finally:
        with interrupts.must_finish():
            journal.put_back_all()
