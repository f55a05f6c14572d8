"""A DuckDB at work in a trial: what it can do is asked of its driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from plimsoll.analysis.trial.answers import Row
from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.run.requests import data_request
from plimsoll.run.servers.duckdb.loading import Loading
from plimsoll.run.servers.duckdb.refresh_sets import RefreshSets
from plimsoll.run.servers.duckdb.streams import Streams
from plimsoll.run.servers.private import PrivateAtWork
from plimsoll.run.trial.capabilities import Ask, QueryRefused
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import ServerFailed
from plimsoll.target.duckdb_server import DriverEnded, DuckServer

Json = dict[str, Any]


@dataclass
class DuckAtWork(PrivateAtWork):
    """A DuckDB in one trial."""

    server: DuckServer
    refresh: RefreshSets

    def check(self, log: TrialLog) -> None:
        if self.place.group is not None:
            self.place.group.lift()  # as everywhere: the check is not what the limit is for
        log.facts["checks"] = self.refresh.check()

    # --- trial/capabilities.py ----------------------------------------------------------------------------------------

    def populate(self) -> Json:
        """The agent writes the rows as text, and the driver has them read."""
        data = data_request(self.settings) or {}
        return Loading(self.server, data, self.observer).run(self.place.load_cpus)

    def check_as_loaded(self) -> list[Json]:
        return self.refresh.check()

    def has_loaded(self) -> None:
        """Nothing: loading ends with a checkpoint."""

    @contextmanager
    def asking(self, timeout_seconds: float | None) -> Iterator[Ask]:
        """Without a limit of time: what lasts too long for a test is an answer all the same."""
        del timeout_seconds

        def ask(sql: str) -> Sequence[Row]:
            try:
                return self.server.ask(sql)
            except DriverEnded:
                raise
            except ServerFailed as error:
                raise QueryRefused(str(error)) from None

        yield ask

    def vacuum(self) -> None:
        self.server.ask("vacuum", "checkpoint")

    def streams(self, workload: DecisionSupport, test: str, name: str, seed: int) -> Callable[[], None]:
        return Streams.of(self, self.server, self.refresh, workload, test, name, seed).perform
