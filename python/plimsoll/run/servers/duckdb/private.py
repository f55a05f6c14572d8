"""Private DuckDB databases: how one is built, laid out and opened."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from plimsoll.environment import Group
from plimsoll.environment.folders.clone import clone_tree
from plimsoll.experiment import Experiment
from plimsoll.run.host import HERE
from plimsoll.run.observer import Observer
from plimsoll.run.requests import data_request
from plimsoll.run.servers import double_caching
from plimsoll.run.servers.datasets import DatasetBuilder, refuse_broken
from plimsoll.run.servers.duckdb.alone import alone, build_database, make_folder, other_owner
from plimsoll.run.servers.duckdb.at_work import DuckAtWork
from plimsoll.run.servers.duckdb.refresh_sets import RefreshSets
from plimsoll.run.servers.private import PrivateAtWork, PrivateKind
from plimsoll.run.sizes import memory_bytes
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.trial.at_work import trial_folder
from plimsoll.run.trial.log import TrialLog
from plimsoll.target.dataset import Dataset
from plimsoll.target.duckdb_server import DuckServer

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


class PrivateDuck(DatasetBuilder[DuckServer], PrivateKind[DuckServer]):
    """A database of each trial's own, in the process of its driver."""

    prefix = "duckdb"
    caveats: ClassVar[tuple[str, ...]] = (
        "DuckDB: its tables have no keys and no indexes, so that its load test has less to do than PostgreSQL's",
        "DuckDB runs inside its clients' process: only the kernel's figures of its time are known, no breakdown by "
        "query",
    )

    def version(self, settings: Experiment) -> str | None:
        """Of Plimsoll's own library: it needs no installation."""
        del settings
        return metadata.version("duckdb")

    def server_to_fill(self, settings: Experiment, folder: Path, user: str, cage: Group | None) -> DuckServer:
        del settings
        return alone(folder, HERE.account(user), cage.exec_in if cage is not None else None)

    def fill_dataset(self, server: DuckServer, settings: Experiment, observer: Observer) -> dict[str, Any]:
        owner = HERE.account(HERE.server_user())
        result, checks = build_database(server, data_request(settings) or {}, owner, observer)
        refuse_broken(checks)
        return result

    def server(self, place: PrivatePlace, settings: Experiment) -> DuckServer:
        del settings
        return DuckServer(place.data, place.folder, place.launch_as_we_are, other_owner(place.owner))

    def lay_out(self, server: DuckServer, place: PrivatePlace, settings: Experiment, dataset: Dataset | None) -> None:
        del settings
        if dataset is None:
            make_folder(server.data, place.owner)
        else:
            uid, gid = place.owner
            clone_tree(dataset.data, server.data, uid=uid, gid=gid)
        make_folder(server.temp, place.owner)

    def at_work(
        self, server: DuckServer, place: PrivatePlace, settings: Experiment, context: RunContext, log: TrialLog
    ) -> DuckAtWork:
        refresh = RefreshSets(server, data_request(settings) or {}, place.owner)
        return DuckAtWork(server, place, settings, trial_folder(context, log), context, refresh)

    def start(self, at: PrivateAtWork, log: TrialLog, *, is_new: bool) -> None:
        del is_new  # none goes on after a kill
        log.facts["double_caching"] = double_caching.none("DuckDB does not report what its cache holds")
        with log.phase("start", at.observer):
            at.server.configure(at.settings.target.settings, memory_bytes(at.settings))
            at.server.start()
            log.facts["server"] = at.server.describe()
        log.facts["stationary"] = None
