"""Trials on a server that somebody else runs (target.dsn): nothing of it is configured, restarted or limited.

Data are loaded once into a schema of the run's own, which is dropped at the end, and grow from trial to trial; what can
be seen is what the server's own views and the client tell. Tables that `pgbench -i` made are used as they are when
their scale fits, and so is whatever a user's scripts find when they bring no data: nothing of either is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import psycopg

from plimsoll.environment import Fault, Journal, StateDir
from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.run import agent
from plimsoll.run.servers.existing import ExistingAtWork, Found, TrialOnExisting
from plimsoll.run.servers.kind import ServerKind, ServerOfTrial
from plimsoll.run.servers.postgresql.existing_obstacles import obstacles_of, remark_of
from plimsoll.run.servers.postgresql.filling import fill
from plimsoll.run.servers.postgresql.schema import password_for_put_back, schema_in_use, schema_name
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import Connection
from plimsoll.target.dataset import Dataset
from plimsoll.target.reached_postgres import ReachedPostgres
from plimsoll.target.server import LoadedServer

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


class ExistingPostgres(ServerKind):
    """A server of somebody else's, used as it is."""

    is_private: ClassVar[bool] = False
    why_not_resumed: ClassVar[str] = (
        "a run on an existing server cannot be resumed: its data were dropped when it stopped"
    )

    def version(self, settings: Experiment) -> str | None:
        del settings
        return None

    def obstacles(self, plan: Plan, treatments: list[Treatment], state: StateDir) -> Iterator[str]:
        del treatments, state
        return obstacles_of(plan)

    def remarks(self, plan: Plan, treatments: list[Treatment]) -> Iterator[str]:
        yield remark_of(plan.experiment.target.dsn or "", treatments[0].settings)

    @contextmanager
    def of_run(self, context: RunContext, settings: Experiment, built: dict[str, Dataset]) -> Iterator[ServerOfTrial]:
        """Loads the data, and drops them at the end."""
        del built
        with _loaded(context, settings) as tables:
            yield lambda _log: _TrialOnExisting(context, tables)


@dataclass
class _Tables(Found):
    """What the load finds on the server."""

    connection: Connection


@contextmanager
def _loaded(context: RunContext, settings: Experiment) -> Iterator[_Tables]:
    connection = Connection.from_dsn(settings.target.dsn or "")
    journal = Journal.create(context.state, context.out.name)
    try:
        yield _tables(context, settings, connection, journal)
    finally:
        with context.interrupts.must_finish(), password_for_put_back(connection.password):
            journal.put_back_all()


def _tables(context: RunContext, settings: Experiment, connection: Connection, journal: Journal) -> _Tables:
    """Those that are there, or new ones. Raises Fault where neither can be had."""
    try:
        used = schema_in_use(connection, settings)
        connection = replace(connection, schema=used or schema_name(context.out.name))
        if used is None:
            stored = {key: value for key, value in vars(connection).items() if key != "password"}
            journal.record("schema", connection=stored)
            fill(connection, settings, context.observer)
    except (agent.AgentFailed, psycopg.Error, ValueError) as error:
        remedy = "see the server's log; nothing was kept"
        raise Fault(f"target.dsn: {str(error).strip()}", remedy=remedy) from None
    return _Tables(connection, is_ours=used is None)


@dataclass
class _AtWork(ExistingAtWork):
    """The server in one trial."""

    errors: ClassVar[tuple[type[Exception], ...]] = (psycopg.Error,)

    def check(self, log: TrialLog) -> None:
        log.facts["checks"], log.facts["ledger"] = self.load.check_with_ledger()


@dataclass
class _TrialOnExisting(TrialOnExisting):
    at_work: ClassVar[type[ExistingAtWork]] = _AtWork

    tables: _Tables

    @property
    def found(self) -> Found:
        return self.tables

    def reached(self) -> LoadedServer:
        return ReachedPostgres(self.tables.connection)

    def unchecked(self) -> str:
        return f"the tables in schema {self.tables.connection.schema} were there before: not checked after the load"
