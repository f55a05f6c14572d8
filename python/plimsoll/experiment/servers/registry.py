"""The servers that an experiment may name (`target.server`), and what may be asked of each; a new one is a line here.

Only what decides whether a plan makes sense stands here. How a server is started and loaded is a room of run/servers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from plimsoll.experiment.measuring import Warmup
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.servers import database, embedded, folder, web
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Workload
from plimsoll.experiment.workloads.base import FILES, PAGES, PHASES, TABLES, TESTS, TRANSACTIONS

Check = Callable[[Workload, Target, Warmup, Probes], None]


def _anything(*_tables: object) -> None:
    """Every setting that the tables allow."""


@dataclass(frozen=True)
class ServerFacts:
    """What may be asked of a kind of server."""

    performs: frozenset[str] = frozenset({TRANSACTIONS})  # what trials may be made of (`made_of` of a workload)
    holds: str = TABLES  # what it has that a load may be on (`on` of a workload)
    check: Check = _anything  # raises ValueError where an experiment asks for what it has not
    has_file_locations: bool = False  # its data, log and temporary files can lie at places of their own (target.files)
    recovers: bool = False  # started again after a kill it goes on with the data that it had
    is_columnar: bool = False  # it keeps columns, and so takes less room


SERVERS: Final[dict[str, ServerFacts]] = {
    "postgresql": ServerFacts(
        performs=frozenset({TRANSACTIONS, TESTS}), check=database.check, has_file_locations=True, recovers=True
    ),
    "duckdb": ServerFacts(performs=frozenset({TESTS}), check=embedded.check, is_columnar=True),
    "files": ServerFacts(
        performs=frozenset({TRANSACTIONS, PHASES}), holds=FILES, check=folder.check, has_file_locations=True
    ),
    "nginx": ServerFacts(holds=PAGES, check=web.check_of(web.OF_NGINX), has_file_locations=True),
    "apache": ServerFacts(holds=PAGES, check=web.check_of(web.OF_APACHE), has_file_locations=True),
}
OF_SOMEBODY_ELSE: Final = ServerFacts()
PAGES_OF_SOMEBODY_ELSE: Final = ServerFacts(holds=PAGES, check=web.check_existing)


def facts_of(target: Target) -> ServerFacts:
    """Of the server that a target names. Nothing can be arranged for one that somebody else runs."""
    if target.url is not None:
        return PAGES_OF_SOMEBODY_ELSE
    return OF_SOMEBODY_ELSE if target.dsn is not None else SERVERS[target.server]
