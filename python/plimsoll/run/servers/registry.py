"""The kinds of servers there are: a new one is a room of this folder and a line here.

What an experiment may ask of each stands in experiment/servers/registry.py, under the same name.
"""

from __future__ import annotations

from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.run.servers.duckdb.private import PrivateDuck
from plimsoll.run.servers.files.private import PrivateFiles
from plimsoll.run.servers.kind import ServerKind
from plimsoll.run.servers.postgresql.existing import ExistingPostgres
from plimsoll.run.servers.postgresql.private import PrivatePostgres
from plimsoll.run.servers.web.existing import ExistingWeb
from plimsoll.run.servers.web.private import PrivateApache, PrivateNginx

KINDS: dict[str, ServerKind] = {
    "postgresql": PrivatePostgres(),
    "duckdb": PrivateDuck(),
    "files": PrivateFiles(),
    "nginx": PrivateNginx(),
    "apache": PrivateApache(),
}
OF_SOMEBODY_ELSE: ServerKind = ExistingPostgres()
PAGES_OF_SOMEBODY_ELSE: ServerKind = ExistingWeb()


def kind_of(settings: Experiment) -> ServerKind:
    """Of the server that a treatment names: one of its own, or the one of the connection."""
    if settings.target.url is not None:
        return PAGES_OF_SOMEBODY_ELSE
    return OF_SOMEBODY_ELSE if settings.target.dsn is not None else KINDS[settings.target.server]


def kinds_of(plan: Plan) -> list[tuple[ServerKind, list[Treatment]]]:
    """Those of a plan, each with its treatments."""
    treatments: dict[ServerKind, list[Treatment]] = {}
    for treatment in plan.treatments:
        treatments.setdefault(kind_of(treatment.settings), []).append(treatment)
    return list(treatments.items())
