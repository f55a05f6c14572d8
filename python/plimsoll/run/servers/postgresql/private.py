"""Private PostgreSQL servers: how one is built, laid out, configured and started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.environment import Group
from plimsoll.environment.devices import IN_MEMORY, mount_of
from plimsoll.environment.folders.clone import clone_tree
from plimsoll.environment.memory import page_cache
from plimsoll.environment.memory.page_cache import Residency
from plimsoll.experiment import Experiment, Plan, Treatment, size
from plimsoll.run.host import HERE
from plimsoll.run.observer import Observer
from plimsoll.run.requests import workload_request
from plimsoll.run.servers.datasets import DatasetBuilder
from plimsoll.run.servers.double_caching import Watch
from plimsoll.run.servers.postgresql.at_work import PostgresAtWork
from plimsoll.run.servers.postgresql.dirty_limits import dirty_limits_caveat
from plimsoll.run.servers.postgresql.files import make_temp_space, move_relations, move_wal, temp_settings
from plimsoll.run.servers.postgresql.filling import fill
from plimsoll.run.servers.private import PrivateAtWork, PrivateKind
from plimsoll.run.servers.residency import verify_warm
from plimsoll.run.sizes import memory_bytes, swap_bytes
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.surroundings.file_locations import are_varied
from plimsoll.run.trial.at_work import trial_folder
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import PostgresServer
from plimsoll.target.dataset import BUILD_SETTINGS, Dataset
from plimsoll.target.installs import installed, newest

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext

START_SECONDS_MAX = 60
RECOVERY_SECONDS_MAX = 1800  # where the server was killed, WAL of many GB may have to be replayed
SPARE_CONNECTIONS = 20  # for the observer, and for backends that end late when connections are opened anew
CONNECTIONS_BESIDE = 6  # three that only superusers get, and the observer's


class PrivatePostgres(DatasetBuilder[PostgresServer], PrivateKind[PostgresServer]):
    """A cluster of each trial's own."""

    prefix = "pg"

    def version(self, settings: Experiment) -> str | None:
        install = newest(settings.target.version)
        return None if install is None else install.version

    def unfit(self, settings: Experiment) -> Iterator[str]:
        if self.version(settings) is None:
            versions = ", ".join(install.version for install in installed()) or "none"
            yield (
                f"target.version = {settings.target.version}: no such PostgreSQL is installed (found: {versions}); "
                "install its server package, or choose another version"
            )
        yield from _volatile(settings)
        if settings.target.files.tablespaces and settings.workload.loads_itself():
            yield (
                f"target.files.tablespaces: {settings.workload.name} makes its tables itself in each trial, so that "
                "none is there to be moved; leave it out, and use target.files.data"
            )
        allowed = settings.target.settings.get("max_connections")
        needed = settings.workload.clients + CONNECTIONS_BESIDE
        if isinstance(allowed, int | str) and str(allowed).isdigit() and int(allowed) < needed:
            yield (
                f"target.settings.max_connections = {allowed} is too few for {settings.workload.clients} clients; "
                f"leave it out, or set at least {needed}"
            )

    def remarks(self, plan: Plan, treatments: list[Treatment]) -> Iterator[str]:
        del plan
        for treatment in treatments:
            settings = treatment.settings
            buffers, memory = settings.target.settings.get("shared_buffers"), memory_bytes(settings)
            if settings.environment.memory == "unlimited" or not size.is_size(buffers):
                continue
            if size.parse(str(buffers), memory) >= memory + (swap_bytes(settings) or 0):
                yield f"{treatment.label}: larger than memory and swap together; an out-of-memory kill is likely"

    # --- a data set ---------------------------------------------------------------------------------------------------

    def server_to_fill(self, settings: Experiment, folder: Path, user: str, cage: Group | None) -> PostgresServer:
        launch = cage.exec_in if cage is not None else HERE.start_as
        return PostgresServer(_programs(settings), folder / "data", folder, user, launch)

    def fill_dataset(self, server: PostgresServer, settings: Experiment, observer: Observer) -> dict[str, Any]:
        server.initdb()
        server.configure(BUILD_SETTINGS, None)
        server.start()
        server.create_database()
        result = fill(server.connection, settings, observer)
        server.checkpoint()
        server.stop()
        return result

    # --- a trial ------------------------------------------------------------------------------------------------------

    def server(self, place: PrivatePlace, settings: Experiment) -> PostgresServer:
        tcp = settings.target.transport == "tcp"
        user = place.host.server_user()
        return PostgresServer(_programs(settings), place.data, place.folder, user, place.launch, tcp)

    def lay_out(
        self, server: PostgresServer, place: PrivatePlace, settings: Experiment, dataset: Dataset | None
    ) -> None:
        if dataset is None:
            server.initdb()
        else:
            uid, gid = place.owner
            # Blocks can be shared with the data set on its own file system alone, and are copied at the first write:
            # a difference of the clones, not of the places.
            is_shared = not are_varied(settings)
            clone_tree(dataset.data, server.data, uid=uid, gid=gid, reflink=is_shared)
        move_wal(place.locations, place.owner)

    def at_work(
        self, server: PostgresServer, place: PrivatePlace, settings: Experiment, context: RunContext, log: TrialLog
    ) -> PostgresAtWork:
        folder = trial_folder(context, log)
        load = LoadSession(
            server,
            workload_request(settings),
            settings,
            place,
            folder,
            context.observer,
            context.interrupts.is_stopping,
            block=log.trial.block,
        )
        caches = Watch(server.connection, server.data)
        return PostgresAtWork(server, place, settings, folder, context, load, caches)

    def has_warmed(self, at: PrivateAtWork, log: TrialLog) -> None:
        verify_warm(log, at.place)

    def before_start(self, at: PrivateAtWork, log: TrialLog, before: Residency) -> None:
        settings, place = at.settings, at.place
        group = place.group if place.limits is not None and place.limits.memory_bytes else None
        if group is not None and (caveat := dirty_limits_caveat(settings, group.version)):
            log.caveat(caveat)
        if before.resident_bytes and not settings.workload.loads_itself():  # an empty one was made inside the group
            log.caveat(f"{before.resident_bytes} bytes of the data were in the page cache before the trial")

    def start(self, at: PrivateAtWork, log: TrialLog, *, is_new: bool) -> None:
        assert isinstance(at, PostgresAtWork)  # `at_work` has made it
        settings, server, locations = at.settings, at.server, at.place.locations
        with log.phase("start", at.observer):
            enough = {"max_connections": max(100, settings.workload.clients + SPARE_CONNECTIONS)}  # `unfit` knows
            wanted = enough | settings.target.settings | temp_settings(locations)
            server.configure(wanted, memory_bytes(settings))
            if is_new and locations.spaces:
                self._move_relations(at)
            server.start(START_SECONDS_MAX if is_new else RECOVERY_SECONDS_MAX)
            make_temp_space(locations, server)
            if is_new and settings.workload.loads_itself():
                server.create_database()
            log.facts["server"] = server.describe()
            log.facts["cache"] = server.load_connection.cache()
            at.caches.prepare(wanted=settings.probes.double_caching)
            server.checkpoint()
        if settings.warmup.prewarm:
            with log.phase("prewarm", at.observer):
                server.prewarm(server.load_connection.schema)

    def _move_relations(self, at: PostgresAtWork) -> None:
        """Into their tablespaces; afterwards the server is stopped and nothing of its data is in the page cache."""
        at.server.start(START_SECONDS_MAX)
        move_relations(at.place.locations, at.server)
        at.server.stop()
        if at.settings.environment.page_cache == "cold":
            page_cache.evict(*at.place.trees)


def _volatile(settings: Experiment) -> Iterator[str]:
    """A log or data in memory promise nothing, and fsync says that they do."""
    if settings.target.settings.get("fsync", True) in (False, "off", "false", "no", 0):
        return
    for key, value in settings.target.files.given.items():
        place = settings.environment.places.get(value)
        folder = value if place is None else place.folder
        if key == "temp" or folder is None or not Path(folder).is_dir():
            continue
        if (fs := mount_of(Path(folder)).fs) in IN_MEMORY:
            yield (
                f"target.files.{key} = {value}: {fs} is memory and loses everything with the machine, and fsync is on, "
                "which promises durability; name a folder on a disk, or set target.settings.fsync = false"
            )


def _programs(settings: Experiment) -> Path:
    install = newest(settings.target.version)
    assert install is not None  # the plan has checked it
    return Path(install.bin_dir)
