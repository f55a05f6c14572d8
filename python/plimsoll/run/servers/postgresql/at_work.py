"""A PostgreSQL at work in a trial: the agent's load against it, and what it can do beside transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from plimsoll.analysis.trial.answers import Row
from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.run import agent
from plimsoll.run.requests import LOADERS, data_request
from plimsoll.run.servers.double_caching import Watch
from plimsoll.run.servers.postgresql.streams import Streams
from plimsoll.run.servers.private import PrivateAtWork
from plimsoll.run.trial.capabilities import Ask, QueryRefused
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import Connection, PostgresServer

Json = dict[str, Any]


@dataclass
class PostgresAtWork(PrivateAtWork):
    """A private PostgreSQL in one trial."""

    server: PostgresServer
    load: LoadSession
    caches: Watch

    @contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        """What both caches hold and what left them."""
        with self.caches.around(log), super().watched(log):
            yield

    def check(self, log: TrialLog) -> None:
        log.facts["checks"], log.facts["ledger"] = self.load.check_with_ledger()

    # --- what it can do beside transactions (trial/capabilities.py) ---------------------------------------------------

    def populate(self) -> Json:
        """The agent fills the empty database, timed by phase and table."""

        def see(_running: agent.Agent, line: Json) -> None:
            self.observer.event("dataset", line=line)

        request = {
            "target": self.server.load_connection.as_request(),
            "workload": data_request(self.settings),
            "parallel": LOADERS,
        }
        return agent.call("populate", request, on_line=see, cpus=self.place.load_cpus, host=self.place.host)

    def check_as_loaded(self) -> list[Json]:
        return self.load.check_as_loaded()

    def has_loaded(self) -> None:
        """There are relations to know now, and what was loaded is written before anything is measured."""
        self.caches.prepare(wanted=self.settings.probes.double_caching)
        self.server.checkpoint()

    @contextmanager
    def asking(self, timeout_seconds: float | None) -> Iterator[Ask]:
        with asking_of(self.server.load_connection, timeout_seconds) as ask:
            yield ask

    def vacuum(self) -> None:
        """Of the whole database, as the study had it between its throughput tests."""
        connection = self.server.load_connection
        with connection.open(connection.dbname) as opened:
            opened.execute("vacuum")

    def checkpoint(self) -> None:
        self.server.checkpoint()

    def streams(self, workload: DecisionSupport, test: str, name: str, seed: int) -> Callable[[], None]:
        return Streams(self.load, workload, test, name, seed).perform


@contextmanager
def asking_of(connection: Connection, timeout_seconds: float | None) -> Iterator[Ask]:
    """A session that asks a PostgreSQL, each query with so much time."""
    with connection.open(connection.dbname) as session:
        session.execute("select set_config('search_path', %s, false)", [connection.schema])
        if timeout_seconds is not None:
            session.execute(
                "select set_config('statement_timeout', %s, false)", [f"{max(1, round(timeout_seconds * 1000))}"]
            )

        def ask(sql: str) -> Sequence[Row]:
            try:
                return session.execute(sql.encode()).fetchall()
            except psycopg.Error as error:
                if session.broken:
                    raise
                raise QueryRefused(str(error).strip()) from None

        yield ask
