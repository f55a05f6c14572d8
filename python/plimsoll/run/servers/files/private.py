"""A folder of each trial's own: in the state folder, or in one that the experiment names; laid out by the agent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from plimsoll.environment import StateDir
from plimsoll.environment.devices import IN_MEMORY, mount_of
from plimsoll.environment.memory import page_cache
from plimsoll.environment.memory.page_cache import Residency
from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.run import agent
from plimsoll.run.host import HERE, Host
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.servers import double_caching
from plimsoll.run.servers.files.at_work import FilesAtWork
from plimsoll.run.servers.files.folder import Folder
from plimsoll.run.servers.files.place import LoadPlace, has_threads
from plimsoll.run.servers.private import PrivateAtWork, PrivateKind
from plimsoll.run.servers.residency import verify_warm
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.trial.at_work import trial_folder
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.target.dataset import Dataset

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


_RING: Final = "kernel.io_uring_disabled"


class PrivateFiles(PrivateKind[Folder]):
    """Files in a folder that is made for a trial and removed after it."""

    why_no_windows: ClassVar[str] = (
        "the load is itself inside the group that would be frozen, and could not be told when its window opens"
    )

    def version(self, settings: Experiment) -> str | None:
        """Of the kernel, whose file systems these are."""
        del settings
        return os.uname().release

    def obstacles(self, plan: Plan, treatments: list[Treatment], state: StateDir) -> Iterator[str]:
        yield from super().obstacles(plan, treatments, state)
        if any(not has_threads(one.settings) for one in treatments) and (why := no_ring(HERE)) is not None:
            yield why

    def unfit(self, settings: Experiment) -> Iterator[str]:
        if settings.environment.load_cpus != "all":
            yield (
                "environment.load_cpus: on files the load is itself what is measured; leave it out, and set "
                "environment.target_cpus"
            )
        place = settings.target.files.data
        if place in settings.environment.places:
            place = settings.environment.places[place].folder
        if place is not None and Path(place).is_dir() and "ro" in mount_of(Path(place)).options:
            yield f"target.files.data = {place}: its file system is mounted read-only; mount it for writing"
        elif place is not None and Path(place).is_dir() and not os.access(place, os.W_OK):
            yield f"target.files.data = {place}: it is not writable; name a folder that Plimsoll may write to"

    # --- a trial ------------------------------------------------------------------------------------------------------

    def server(self, place: PrivatePlace, settings: Experiment) -> Folder:
        del settings
        return Folder(place.data)

    def at_work(
        self, server: Folder, place: PrivatePlace, settings: Experiment, context: RunContext, log: TrialLog
    ) -> FilesAtWork:
        of_load, folder = LoadPlace.of(place, settings), trial_folder(context, log)
        log.facts["cpus"] = {"target": log.facts["cpus"]["target"], "load": log.facts["cpus"]["target"]}
        load = LoadSession(
            server,
            workload_request(settings),
            settings,
            of_load,
            folder,
            context.observer,
            context.interrupts.is_stopping,
            block=log.trial.block,
        )
        return FilesAtWork(server, of_load, settings, folder, context, load)

    def lay_out(self, server: Folder, place: PrivatePlace, settings: Experiment, dataset: Dataset | None) -> None:
        """The agent makes the files inside the group; whatever is in the page cache then is dropped from it."""
        assert dataset is None  # none is kept: how files lie on the device is a part of the trial
        server.data.mkdir(mode=0o700)
        request = {"target": server.load_connection.as_request(), "workload": data_request(settings)}
        agent.call("populate", request, cpus=place.load_cpus, host=place.host)
        if not _is_in_memory(server.data):
            page_cache.evict(server.data)

    def has_warmed(self, at: PrivateAtWork, log: TrialLog) -> None:
        verify_warm(log, at.place)

    def before_start(self, at: PrivateAtWork, log: TrialLog, before: Residency) -> None:
        if _is_in_memory(at.data):
            log.caveat("the files are in a file system that is memory itself (tmpfs): they are never cold")
        elif before.resident_bytes:
            log.caveat(f"{before.resident_bytes} bytes of the data were in the page cache before the trial")
        if at.settings.probes.breakdown and not has_threads(at.settings):
            log.caveat(
                "what an operation waits for in the kernel is not known of the engine io_uring, whose operations have "
                'no thread of their own: its time is one wait for the completion; take engine = "sync" for more'
            )

    def start(self, at: PrivateAtWork, log: TrialLog, *, is_new: bool) -> None:
        del is_new  # none goes on after a kill
        log.facts["double_caching"] = double_caching.none("files have no server with a cache of its own")
        log.facts["server"] = at.server.describe()
        log.facts["stationary"] = None


def no_ring(host: Host) -> str | None:
    """Why this machine gives us no io_uring; None where it does, or does not say."""
    try:
        forbids = int(host.read(f"/proc/sys/{_RING.replace('.', '/')}"))
    except (OSError, ValueError):
        return None  # from Linux 6.6 on; a filter of system calls is told of by the agent
    if not forbids or (forbids == 1 and os.geteuid() == 0):
        return None
    return (
        f'workload.engine = "io_uring": the sysctl {_RING} is {forbids}, which forbids it here; set it to 0 '
        f'(`sysctl {_RING}=0`), or take engine = "sync"'
    )


def _is_in_memory(path: Path) -> bool:
    return mount_of(path).fs in IN_MEMORY
