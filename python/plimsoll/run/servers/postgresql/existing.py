"""Trials on a server that somebody else runs (target.dsn): nothing of it is configured, restarted or limited.

Data are loaded once into a schema of the run's own, which is dropped at the end, and grow from trial to trial; what can
be seen is what the server's own views and the client tell. Tables that `pgbench -i` made are used as they are when
their scale fits, and so is whatever a user's scripts find when they bring no data: nothing of either is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import psycopg

from plimsoll.environment import Fault, Journal, StateDir
from plimsoll.environment import cpus as cpu_lists
from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.run import agent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.requests import workload_request
from plimsoll.run.servers import double_caching
from plimsoll.run.servers.kind import ServerKind, ServerOfTrial
from plimsoll.run.servers.postgresql.existing_obstacles import obstacles_of, remark_of
from plimsoll.run.servers.postgresql.filling import fill
from plimsoll.run.servers.postgresql.schema import password_for_put_back, schema_in_use, schema_name
from plimsoll.run.trial import repeat
from plimsoll.run.trial.at_work import AtWork, TrialServer, trial_folder
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import Place
from plimsoll.target import Connection
from plimsoll.target.dataset import Dataset
from plimsoll.target.reached_postgres import ReachedPostgres

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
class _Tables:
    """What the load finds on the server; it grows from trial to trial."""

    connection: Connection
    is_ours: bool
    next_index: int = 0
    summaries: list[Path] = field(default_factory=list)


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
class _AtWork(AtWork):
    """The server in one trial."""

    load: LoadSession

    @contextmanager
    def explaining(self, log: TrialLog) -> Iterator[None]:
        del log
        try:
            yield
        except (agent.AgentFailed, psycopg.Error) as error:
            raise TrialFailed(str(error)) from error

    def check(self, log: TrialLog) -> None:
        log.facts["checks"], log.facts["ledger"] = self.load.check_with_ledger()


@dataclass
class _TrialOnExisting(TrialServer):
    context: RunContext
    tables: _Tables

    @contextmanager
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> Iterator[AtWork]:
        del goes_on  # nothing of it is ours to outlive anything
        at = self._at_work(log)
        log.facts |= {
            "residency": None,
            "double_caching": double_caching.none(double_caching.EXISTING),
            "group": None,
            "cpus": {"target": None, "load": cpu_lists.show(at.place.load_cpus or at.place.host.cpus())},
        }
        log.caveat("existing server: its memory, swap, caches, CPUs and settings were left as they are")
        if not self.tables.is_ours:
            schema = self.tables.connection.schema
            log.caveat(f"the tables in schema {schema} were there before: not checked after the load")
        for text in at.settings.workload.caveats():
            log.caveat(text)
        try:
            with at.explaining(log):
                log.facts["server"] = at.server.describe()
                yield at
        finally:
            self.tables.next_index = at.load.next_index

    def _at_work(self, log: TrialLog) -> _AtWork:
        context, tables, settings = self.context, self.tables, log.trial.treatment.settings
        wanted = settings.environment.load_cpus
        place = Place(
            devices=[],
            group=None,
            load_cpus=None if wanted == "all" else set(cpu_lists.check(wanted)),
            host=context.host,
        )
        server = ReachedPostgres(tables.connection)
        folder = trial_folder(context, log)
        repeat.follow(tables.summaries, folder)
        load = LoadSession(
            server,
            workload_request(settings),
            settings,
            place,
            folder,
            context.observer,
            context.interrupts.is_stopping,
            next_index=tables.next_index,
            summaries=tables.summaries,
            block=log.trial.block,
            is_checked=tables.is_ours,
        )
        return _AtWork(server, place, settings, folder, context, load)
