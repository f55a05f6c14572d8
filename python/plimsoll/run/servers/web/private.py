"""Private web servers: how their files are made, laid out and served."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from plimsoll.environment import Group
from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.folders.clone import clone_tree
from plimsoll.environment.memory.page_cache import Residency
from plimsoll.environment.web_servers import WebInstall, apache, nginx
from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.experiment.workloads.web import Web
from plimsoll.run import agent
from plimsoll.run.observer import Observer
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.servers import double_caching
from plimsoll.run.servers.datasets import DatasetBuilder
from plimsoll.run.servers.private import PrivateAtWork, PrivateKind
from plimsoll.run.servers.residency import verify_warm
from plimsoll.run.servers.web.at_work import WebAtWork
from plimsoll.run.servers.web.place import SITE, WebPlace
from plimsoll.run.sizes import memory_bytes
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.surroundings.file_locations import are_varied
from plimsoll.run.trial.at_work import trial_folder
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.target.apache import MPM, MPMS, WORKERS, ApacheServer
from plimsoll.target.dataset import Dataset
from plimsoll.target.nginx import CONNECTIONS, NginxServer, connections_of
from plimsoll.target.server import LoadedServer
from plimsoll.target.web_server import Site, WebServer

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext

START_SECONDS_MAX: Final = 60
_NO_CACHE: Final = "a web server has no cache of its own for the files that it serves"


class FilesToMake(LoadedServer):
    """No server yet: the folder in which a set of files is made."""

    def __init__(self, data: Path) -> None:
        self.site = data / SITE

    def leave_only_data(self) -> None:
        """There is nothing else."""


class PrivateWeb(DatasetBuilder[LoadedServer], PrivateKind[LoadedServer]):
    """A web server of each trial's own, on a clone of the set of files."""

    prefix = "files"
    name: ClassVar[str]

    @abstractmethod
    def install(self) -> WebInstall | None:
        """The program; None where none is installed."""

    def version(self, settings: Experiment) -> str | None:
        del settings
        found = self.install()
        return None if found is None else found.version

    def dataset_key(self, settings: Experiment) -> str | None:
        """The same for every server: files are files."""
        return self.key_for(settings, "")

    def unfit(self, settings: Experiment) -> Iterator[str]:
        if self.version(settings) is None:
            yield (
                f'target.server = "{self.name}": no {self.name} is installed; `./plimsoll setup --web` puts its '
                "program where it starts no service"
            )

    # --- a data set ---------------------------------------------------------------------------------------------------

    def server_to_fill(self, settings: Experiment, folder: Path, user: str, cage: Group | None) -> LoadedServer:
        del settings, user, cage
        return FilesToMake(folder / "data")

    def fill_dataset(self, server: LoadedServer, settings: Experiment, observer: Observer) -> dict[str, Any]:
        assert isinstance(server, FilesToMake)  # `server_to_fill` has made it
        site = server.site
        site.mkdir(parents=True)

        def see(_running: agent.Agent, line: dict[str, Any]) -> None:
            observer.event("dataset", line=line)

        request = {"target": {"kind": "web", "folder": str(site)}, "workload": data_request(settings)}
        return agent.call("populate", request, on_line=see)

    # --- a trial ------------------------------------------------------------------------------------------------------

    def lay_out(self, server: LoadedServer, place: PrivatePlace, settings: Experiment, dataset: Dataset | None) -> None:
        del server
        assert dataset is not None  # every trial begins with one
        uid, gid = place.owner
        clone_tree(dataset.data, place.data, uid=uid, gid=gid, reflink=not are_varied(settings))

    def at_work(
        self, server: LoadedServer, place: PrivatePlace, settings: Experiment, context: RunContext, log: TrialLog
    ) -> WebAtWork:
        assert isinstance(server, WebServer)  # `server` of a kind has made it
        of_web, folder = WebPlace.of(place), trial_folder(context, log)
        load = LoadSession(
            server,
            workload_request(settings),
            settings,
            of_web,
            folder,
            context.observer,
            context.interrupts.is_stopping,
            block=log.trial.block,
        )
        return WebAtWork(server, of_web, settings, folder, context, load)

    def has_warmed(self, at: PrivateAtWork, log: TrialLog) -> None:
        verify_warm(log, at.place)

    def before_start(self, at: PrivateAtWork, log: TrialLog, before: Residency) -> None:
        del at
        if before.resident_bytes:
            log.caveat(f"{before.resident_bytes} bytes of the files were in the page cache before the trial")

    def start(self, at: PrivateAtWork, log: TrialLog, *, is_new: bool) -> None:
        del is_new  # none goes on after a kill
        assert isinstance(at, WebAtWork)  # `at_work` has made it
        log.facts["double_caching"] = double_caching.none(_NO_CACHE)
        with log.phase("start", at.observer):
            at.server.configure(at.settings.target.settings, memory_bytes(at.settings))
            at.server.start(START_SECONDS_MAX)
            at.place.processes = at.server.processes()
            log.facts["server"] = at.server.describe()

    def site_of(self, place: PrivatePlace, settings: Experiment) -> Site:
        """What a trial's server is given to serve."""
        workload, wanted, of_web = settings.workload, settings.environment.target_cpus, WebPlace.of(place)
        assert isinstance(workload, Web)  # no other is on pages
        cpus = place.host.cpus() if wanted == "all" else cpu_lists.parse(wanted)
        return Site(
            files=of_web.site,
            program=of_web.program if workload.has_program else None,
            responder=agent.PROGRAM,
            clients=workload.clients,
            cpus=len(cpus),
            seed=workload.seed,
            users=workload.users,
        )


class PrivateNginx(PrivateWeb):
    """nginx."""

    name = "nginx"

    def install(self) -> WebInstall | None:
        return nginx()

    def unfit(self, settings: Experiment) -> Iterator[str]:
        yield from super().unfit(settings)
        workload, allowed = settings.workload, settings.target.settings.get(CONNECTIONS)
        if isinstance(workload, Web) and isinstance(allowed, int | str) and str(allowed).isdigit():
            needed = connections_of(workload.clients, has_program=workload.has_program)
            if int(allowed) < needed:
                yield (
                    f"target.settings.{CONNECTIONS} = {allowed} may be too few for {workload.clients} clients: one "
                    f"worker may get all of them; leave it out, or set at least {needed}"
                )

    def server(self, place: PrivatePlace, settings: Experiment) -> WebServer:
        found = nginx()
        assert found is not None  # the plan has checked it
        return NginxServer(found, self.site_of(place, settings), place.folder, place.host.server_user(), place.launch)


class PrivateApache(PrivateWeb):
    """The Apache HTTP server."""

    name = "apache"

    def install(self) -> WebInstall | None:
        return apache()

    def unfit(self, settings: Experiment) -> Iterator[str]:
        yield from super().unfit(settings)
        given = settings.target.settings
        if given.get(MPM, MPMS[0]) not in MPMS:
            allowed = ", ".join(f'"{name}"' for name in MPMS)
            yield f"target.settings.{MPM} = {given[MPM]!r}: there is no such module; choose one of {allowed}"

    def remarks(self, plan: Plan, treatments: list[Treatment]) -> Iterator[str]:
        yield from super().remarks(plan, treatments)
        for one in treatments:
            clients, workers = one.settings.workload.clients, one.settings.target.settings.get(WORKERS)
            if str(workers).isdigit() and int(str(workers)) < clients:
                yield f"{one.label}: {WORKERS} = {workers} is fewer than {clients} clients: some wait for a worker"

    def server(self, place: PrivatePlace, settings: Experiment) -> WebServer:
        found = apache()
        assert found is not None  # the plan has checked it
        return ApacheServer(found, self.site_of(place, settings), place.folder, place.host.server_user(), place.launch)
