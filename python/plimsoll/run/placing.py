"""Where the server's files lie during a trial: with its socket in the work folder, or at places of their own.

The fact that constrains it: a folder that is in a journal is gone after a kill. What has to outlive one (the cluster of
a series of throughput tests) is in none, and whoever made it removes it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from psycopg import sql

from plimsoll.environment import Fault, Journal, StateDir, placed
from plimsoll.environment.clone import clone_tree
from plimsoll.environment.knob import Knob, Site
from plimsoll.experiment import Experiment
from plimsoll.run.planning import own, server_user
from plimsoll.target import PostgresServer

TEMP_SPACE = "plimsoll_temp"  # the tablespace of temporary files
WAL = "pg_wal"


@dataclass(frozen=True)
class Homes:
    """Folders of one trial: the cluster is `data`/data; `wal` and `temp` are None where they lie with it."""

    data: Path
    wal: Path | None
    temp: Path | None
    work: Path

    @staticmethod
    def together(folder: Path) -> Homes:
        """Everything in one folder."""
        return Homes(folder, None, None, folder)

    @property
    def placed(self) -> list[Path]:
        """Those that are not in the work folder."""
        return [folder for folder in (self.data, self.wal, self.temp) if folder is not None and folder != self.work]

    def make(self, owner: tuple[int, int], journal: Journal | None) -> None:
        """Makes them; without a journal they stay until `remove`, and may be there already.

        What the server writes lies below the one of the data and the one of the log, which are ours; the one of the
        temporary files is a tablespace, and so the server's.
        """
        for folder in self.placed:
            if folder == self.temp:
                placed.make(folder, uid=owner[0], gid=owner[1], journal=journal)
            else:
                placed.make(folder, uid=os.geteuid(), gid=os.getegid(), mode=0o755, journal=journal)

    def remove(self) -> None:
        """Removes those that are not in the work folder."""
        for folder in self.placed:
            placed.remove(folder)


def is_series(settings: Experiment) -> bool:
    """Whether the trial's cluster outlives a kill: PostgreSQL's recovers by its own log when it is started again."""
    return has_files(settings) and settings.workload.goes_on_after_kills()


def has_files(settings: Experiment) -> bool:
    """Whether the server's files can lie apart."""
    return str(settings.target.server) == "postgresql"


def are_varied(settings: Experiment) -> bool:
    """Whether trials of the run have their files at different places."""
    return any(path.startswith("target.files.") for factor in settings.factors for path in factor.paths)


def homes_of(settings: Experiment, state: StateDir, name: str) -> Homes:
    """Where the files of the trial `name` lie; nothing is made."""
    files = settings.target.files
    work = state.work / name
    data = placed.folder_of(state.datasets, name) if is_series(settings) else work
    if files.data is not None:
        data = placed.folder_of(Path(files.data), name)
    wal = None if files.wal is None else placed.folder_of(Path(files.wal), f"{name}-wal")
    temp = None if files.temp is None else placed.folder_of(Path(files.temp), f"{name}-temp")
    return Homes(data, wal, temp, work)


class Files(Knob[Homes]):
    """The folders of a trial's files, at places that the user names."""

    name = "files"
    keys = ("target.files",)

    def obstacles(self, site: Site) -> Iterator[str]:
        """Places have to be folders that the server's user can reach."""
        target = site.settings.target
        if target.files.given and not has_files(site.settings):
            yield f"target.files: {target.server} keeps all its files in one folder; leave target.files out"
            return
        for key, value in target.files.given.items():
            place = Path(value)
            if not place.is_dir():
                yield f"target.files.{key} = {value}: no such folder; make it, or mount its file system there"
                continue
            try:
                StateDir(place).check_traversable(server_user(), f"target.files.{key} =")
            except Fault as fault:
                yield f"{fault.what}; `chmod o+x` lets it pass"

    def arrange(self, site: Site, journal: Journal) -> Homes:
        homes = homes_of(site.settings, site.state, site.name)
        homes.make(own(server_user()), None if is_series(site.settings) else journal)
        return homes


KNOB = Files()


def move_wal(homes: Homes, owner: tuple[int, int]) -> None:
    """Moves the log of a stopped cluster to its own place, around the page cache, and leaves a link."""
    if homes.wal is None:
        return
    inside, outside = homes.data / "data" / WAL, homes.wal / WAL
    clone_tree(inside, outside, uid=owner[0], gid=owner[1])
    shutil.rmtree(inside)
    inside.symlink_to(outside)


def temp_settings(homes: Homes) -> dict[str, bool | int | float | str]:
    """What the server is told of its temporary files."""
    return {} if homes.temp is None else {"temp_tablespaces": TEMP_SPACE}


def make_temp_space(homes: Homes, server: PostgresServer) -> None:
    """The tablespace of temporary files, where there is to be one and is none yet."""
    if homes.temp is None:
        return
    with server.connection.open() as connection:
        if not connection.execute("select 1 from pg_tablespace where spcname = %s", [TEMP_SPACE]).fetchone():
            text = sql.SQL("create tablespace {} location {}")
            connection.execute(text.format(sql.Identifier(TEMP_SPACE), sql.Literal(str(homes.temp))))
