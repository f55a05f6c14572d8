"""Building a data set (target/dataset.py says what one is): what every kind of server shares.

Built without a memory limit, and then evicted from the page cache: a clone must start cold.
"""

from __future__ import annotations

import functools
import hashlib
import json
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Generic

import psycopg

from plimsoll.environment import Fault, Group, Journal, StateDir, server
from plimsoll.environment.folders import work_dir
from plimsoll.environment.groups.group_limits import make_cage
from plimsoll.environment.memory import page_cache
from plimsoll.experiment import Experiment
from plimsoll.run import agent
from plimsoll.run.host import HERE
from plimsoll.run.observer import Observer
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.servers.kind import AnyServer
from plimsoll.run.signals import Interrupts
from plimsoll.run.sizes import data_bytes, memory_bytes
from plimsoll.target import ServerFailed
from plimsoll.target.dataset import Dataset, describe_new, keep, key_of


class LoadedWrong(ValueError):
    """Data that were just made break a condition that they are to hold."""


class DatasetBuilder(ABC, Generic[AnyServer]):
    """How a kind of server fills a data set."""

    prefix: str  # what goes before the version in a data set's name

    @abstractmethod
    def version(self, settings: Experiment) -> str | None:
        """Of the server; None where none of the wanted version is installed."""

    @abstractmethod
    def server_to_fill(self, settings: Experiment, folder: Path, user: str, cage: Group | None) -> AnyServer:
        """The server in its work folder, not started; `cage`: what its processes are to be in."""

    @abstractmethod
    def fill_dataset(self, server: AnyServer, settings: Experiment, observer: Observer) -> dict[str, Any]:
        """Makes the tables and stops the server; what the agent's `populate` tells.

        Raises ServerFailed, AgentFailed, LoadedWrong or psycopg.Error.
        """

    def dataset_key(self, settings: Experiment) -> str | None:
        """None also where its server is not installed or its workload is refused, which the plan tells."""
        version = None if settings.workload.loads_itself() else self.version(settings)
        return None if version is None else self.key_for(settings, version)

    def key_for(self, settings: Experiment, version: str) -> str | None:
        """The key of data that are made for servers of a version; None where the workload is refused."""
        if refusal(settings) is not None:
            return None
        data = data_request(settings)
        description = _described(json.dumps({"workload": data})) if data else None
        if isinstance(description, str):
            return None
        workload = settings.workload
        rows = workload.rows_from(memory_bytes(settings))
        return key_of(rows, description, workload.setup_sql(), version, self.prefix)

    def build(
        self, settings: Experiment, key: str, state: StateDir, observer: Observer, interrupts: Interrupts
    ) -> Dataset:
        """Builds one data set and moves it into the cache when it is whole."""
        started = time.monotonic()
        user = HERE.server_user()
        name = building_name(state, key)
        folder = state.work / name
        state.check_traversable(user)
        with interrupts.must_finish():
            journal = Journal.create(state, name)
        try:
            work_dir.make(state, journal, folder, mode=0o755)
            cage = make_cage(name, journal)
            server.record(journal, folder / "data")
            made = self.server_to_fill(settings, folder, user, cage)
            try:
                result = self.fill_dataset(made, settings, observer)
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
            version = self.version(settings) or ""
            described = describe_new(key, data_request(settings), data_bytes(settings), version, result, seconds)
            return keep(state.datasets, folder, described)
        finally:
            with interrupts.must_finish():
                journal.put_back_all()


def building_name(state: StateDir, key: str) -> str:
    """What a data set's journal, folder and group are called while it is built: not as where another state folder's run
    builds the same data set at the same time. Short, since a socket's path may have 107 bytes."""
    return f"build-{hashlib.sha256(f'{state.root}:{key}'.encode()).hexdigest()[:12]}"


def refusal(settings: Experiment) -> str | None:
    """Why the agent refuses a workload (a size it cannot make, a script's command); None when it takes it."""
    done, data = workload_request(settings), data_request(settings)
    of_load = {"workload": done, **settings.workload.how_sent()} if done else None
    for request in (of_load, {"workload": data} if data else None):
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


def refuse_broken(checks: list[dict[str, Any]]) -> None:
    """Raises LoadedWrong where a check of new data fails, or there is none."""
    broken = [f"{check['name']} (found {check['found']})" for check in checks if not check["ok"]]
    if broken or not checks:
        raise LoadedWrong(f"the loaded data fail these checks: {', '.join(broken) or 'none was made'}")
