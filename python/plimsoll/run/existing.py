"""Trials on a server that somebody else runs (target.dsn): nothing of it is configured, restarted or limited.

Data are loaded once into a schema of the run's own, which is dropped at the end, and grow from trial to trial; what can
be seen is what the server's own views and the client tell. Tables that `pgbench -i` made are used as they are when
their scale fits, and so is whatever a user's scripts find when they bring no data: nothing of either is dropped.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from plimsoll.environment import Fault, Journal
from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.registry import Args, puts_back
from plimsoll.experiment import Experiment
from plimsoll.record import writer
from plimsoll.run import agent, double_caching
from plimsoll.run.datasets import fill
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.trial import Load, Place, Report, measure, warm_up
from plimsoll.target import Connection, bank
from plimsoll.target.connection import stored_password

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


_OURS = re.compile(r"plimsoll_[a-z0-9_]{1,40}_[0-9a-f]{6}")


def schema_name(run: str) -> str:
    """A name for a run's schema that nobody else has: undo knows no more than the name, and drops what bears it."""
    short = re.sub(r"[^a-z0-9]+", "_", run.lower())[:40].strip("_") or "run"
    return f"plimsoll_{short}_{secrets.token_hex(3)}"


@puts_back("schema", survives_reboot=True)
def _drop(args: Args) -> str:
    """The name was made for one run. The password, never journalled, is PGPASSWORD's or the password file's."""
    connection = Connection(**args["connection"])
    password = stored_password(connection.host, connection.port, connection.dbname, connection.user)
    connection = replace(connection, password=password)
    remedy = (
        f'as its owner: "drop schema {connection.schema} cascade"; PGPASSWORD or ~/.pgpass may give undo the password'
    )
    what = f"schema {connection.schema} in database {connection.dbname} on {connection.host}"
    try:
        with connection.open(connection.dbname) as opened:
            row = opened.execute("select 1 from pg_namespace where nspname = %s", [connection.schema]).fetchone()
            if row is None:
                return f"schema {connection.schema} was not there"
            if not _OURS.fullmatch(connection.schema):
                raise Fault(f"{what}: not a name made for one run, so it may belong to somebody else", remedy=remedy)
            opened.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(connection.schema)))
    except psycopg.Error as error:
        raise Fault(f"{what}: {error}", remedy=remedy) from None
    return f"schema {connection.schema} dropped"


@contextmanager
def _password_for_put_back(password: str | None) -> Iterator[None]:
    """PGPASSWORD for as long as it lasts: putting back knows only the journal, and a password never goes in there."""
    before = os.environ.get("PGPASSWORD")
    if password:
        os.environ["PGPASSWORD"] = password
    try:
        yield
    finally:
        if before is not None:
            os.environ["PGPASSWORD"] = before
        else:
            os.environ.pop("PGPASSWORD", None)


def schema_in_use(connection: Connection, settings: Experiment) -> str | None:
    """The schema that is used as it is; None where the run makes its own. Raises ValueError when it cannot be used."""
    scale = settings.workload.pgbench_scale()
    if scale is not None and (found := bank.find(connection)) is not None:
        if (reason := bank.unfit(found, scale)) is not None:
            raise ValueError(reason)
        if settings.workload.setup_sql() is not None:
            raise ValueError(
                f"schema {found.schema} has the tables of pgbench already, and workload.setup is run only on data "
                "that the run makes; leave workload.setup out, or name a database without them"
            )
        return found.schema
    if data_request(settings) is None and settings.workload.setup_sql() is None:
        return bank.current_schema(connection)
    return None


class ExistingServer:
    """The server of one run; a context that loads the data and drops them."""

    def __init__(self, context: RunContext, settings: Experiment) -> None:
        self._context, self._settings = context, settings
        self._connection = Connection.from_dsn(context.source.experiment.target.dsn or "")
        self._summaries: list[Path] = []
        self._next_index = 0
        self._is_ours = True

    def __enter__(self) -> ExistingServer:
        self._journal = Journal.create(self._context.state, self._context.out.name)
        try:
            used = schema_in_use(self._connection, self._settings)
            self._is_ours = used is None
            self._connection = replace(self._connection, schema=used or schema_name(self._context.out.name))
            if used is None:
                stored = {key: value for key, value in vars(self._connection).items() if key != "password"}
                self._journal.record("schema", connection=stored)
                fill(self._connection, self._settings, self._context.observer)
        except BaseException as error:
            self._put_back()
            if isinstance(error, agent.AgentFailed | psycopg.Error | ValueError):
                remedy = "see the server's log; nothing was kept"
                raise Fault(f"target.dsn: {str(error).strip()}", remedy=remedy) from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._put_back()

    def _put_back(self) -> None:
        with self._context.interrupts.must_finish(), _password_for_put_back(self._connection.password):
            self._journal.put_back_all()

    def run_trial(self, report: Report) -> None:
        """One trial: warm up, measure, check."""
        settings = report.trial.treatment.settings
        wanted = settings.environment.load_cpus
        cpus = None if wanted == "all" else set(cpu_lists.check(wanted))
        folder = writer.trial_folder(self._context.out, report.trial.number)
        folder.mkdir(parents=True, exist_ok=True)
        load = Load(
            self._connection,
            workload_request(settings),
            settings,
            Place(devices=[], group=None, load_cpus=cpus),
            folder,
            self._context.observer,
            lambda: self._context.interrupts.stopping,
            next_index=self._next_index,
            summaries=self._summaries,
            block=report.trial.block,
            is_checked=self._is_ours,
        )
        report.found |= {
            "residency": None,
            "double_caching": double_caching.none(double_caching.EXISTING),
            "group": None,
            "cpus": {"target": None, "load": cpu_lists.show(cpus or cpu_lists.usable())},
        }
        report.caveat("existing server: its memory, swap, caches, CPUs and settings were left as they are")
        if not self._is_ours:
            report.caveat(
                f"the tables in schema {self._connection.schema} were there before: not checked after the load"
            )
        for text in settings.workload.caveats():
            report.caveat(text)
        try:
            report.found["server"] = self._connection.describe()
            warm_up(load, report)
            measure(load, report)
            with report.phase("check", self._context.observer):
                report.found["checks"], report.found["ledger"] = load.check_with_ledger()
        except (agent.AgentFailed, psycopg.Error) as error:
            raise TrialFailed(str(error)) from error
        finally:
            self._next_index = load.next_index
