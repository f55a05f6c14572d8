"""What a treatment asks of the machine, arranged for one trial and put back after it, whatever happened.

The order matters: what has to outlive the server is arranged before it and therefore put back after it. Of the knobs
it is that of run/surroundings/knobs.py.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.environment import Group, Journal, Limits, server
from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.folders import work_dir
from plimsoll.environment.groups import group_limits
from plimsoll.environment.places import Watch, at_the_server, caveats_of, described, members_of, record_users, watched
from plimsoll.experiment import Experiment
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.requests import machine_probes
from plimsoll.run.signals import Stopped
from plimsoll.run.surroundings import file_locations, knobs
from plimsoll.run.surroundings.file_locations import FileLocations
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import Place

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


SEGMENT_BYTES = 16 << 20  # of PostgreSQL's log, which it makes whole


@dataclass
class PrivatePlace(Place):
    """Where a private server lives during one trial."""

    locations: FileLocations
    owner: tuple[int, int]
    limits: Limits | None
    served: list[Path] = field(default_factory=list, kw_only=True)  # its folders as this kernel's NFS server has them
    silences: Watch = field(default_factory=lambda: Watch([], []), kw_only=True)  # of the servers of its mounts by NFS
    cage: Group | None = None  # without limits, where none are asked for: nothing that the server starts outlives it

    @property
    def folder(self) -> Path:
        """Of the server's log and configuration, and of its socket's folder: ours, so that only root writes in it."""
        return self.locations.work

    @property
    def data(self) -> Path:
        """What the server keeps: its cluster, its database, the files themselves."""
        return self.locations.data / "data"

    @property
    def trees(self) -> list[Path]:
        """All that the server's tables lie in: its data, and tablespaces elsewhere."""
        return [self.data, *self.locations.spaces.values()]

    @property
    def inside(self) -> Group | None:
        """The group that the server is in, with limits or without."""
        return self.group or self.cage

    def launch(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program as the server's user, inside the group when there is one."""
        return self.inside.exec_in(argv, **options) if self.inside else self.host.start_as(argv, **options)

    def launch_as_we_are(self, argv: list[str], **streams: Any) -> subprocess.Popen[bytes]:
        """Starts a program inside the group when there is one; it is to give up its rights itself."""
        return self.inside.exec_in(argv, **streams) if self.inside else self.host.start(argv, **streams)

    def probes(self, settings: Experiment) -> dict[str, Any] | None:
        """The probes of the experiment, for this server's files."""
        wanted, folder = settings.probes, str(self.locations.data)
        breakdown = {
            "data_directory": f"{folder}/data",
            "rows": wanted.breakdown_rows,
            "budget": wanted.breakdown_budget_percent / 100 or None,
        }
        profile = {"data_directory": f"{folder}/data", "hz": wanted.profile_hz, "locks": wanted.profile_locks}
        syscalls = {"data_directory": f"{folder}/data", "counted": wanted.syscalls_counted}
        return {
            "page_cache": {"data_directory": f"{folder}/data", "scratch": folder} if wanted.page_cache else None,
            "buffer_heads": {"path": folder} if wanted.buffer_heads else None,
            "throttle": {"path": folder} if wanted.throttle else None,
            "breakdown": breakdown if wanted.breakdown else None,
            "profile": profile if wanted.profile else None,
            "syscalls": syscalls if wanted.syscalls else None,
            "sync": {"data_directory": f"{folder}/data"} if wanted.sync else None,
            "block": {"data_directory": f"{folder}/data"} if wanted.block else None,
            "nfs_calls": {"data_directory": f"{folder}/data"} if wanted.nfs_calls else None,
            **machine_probes(settings),
        }

    def is_read_for(self) -> bool:
        """By this kernel's own NFS server, whose threads are in no group of ours."""
        return bool(self.served)

    def read_inside(self, *trees: Path) -> None:
        """Reads every file of trees inside the group, so that the pages are charged to it."""
        files = [str(path) for tree in trees for path in sorted(tree.rglob("*")) if path.is_file()]
        for start in range(0, len(files), 500):
            argv = ["cat", "--", *files[start : start + 500]]
            self.launch(argv, user=self.host.server_user(), stdout=subprocess.DEVNULL).wait()

    def full_device(self) -> str | None:
        """The place without room for another segment of a log, of those that have a device of their own."""
        record = self.folder.stat().st_dev
        for folder in self.locations.apart:
            if folder.exists() and folder.stat().st_dev != record and shutil.disk_usage(folder).free < SEGMENT_BYTES:
                return str(folder.parent)
        return None

    def oom_kills(self) -> int:
        """How often the kernel killed for want of memory in the group."""
        return (self.inside.oom_kills() or 0) if self.inside is not None else 0

    def describe_group(self) -> dict[str, Any] | None:
        """The `group` of trial.json."""
        if self.group is None or self.limits is None:
            return None
        return {
            "version": self.group.version,
            "limit_bytes": self.limits.memory_bytes,
            "swap_limit_bytes": self.limits.swap_bytes,
            "oom_kills": self.group.oom_kills(),
        }


@contextmanager
def arranged(context: RunContext, settings: Experiment, name: str, log: TrialLog) -> Iterator[PrivatePlace]:
    """The machine as the treatment wants it. Everything is put back at the end, signals or not."""
    state = context.state
    journal = Journal.create(state, name)
    with ExitStack() as looking_on:  # while all is put back, too
        try:
            place = _arrange(context, journal, settings, name, log)
            watch = looking_on.enter_context(place.silences.on())
            with _given_up(watch, log):
                yield place
        finally:
            with log.phase("put back", context.observer):
                put_back(context, journal, [log])


@contextmanager
def _given_up(watch: Watch, log: TrialLog) -> Iterator[None]:
    """Whatever goes wrong once a server was given up is its silence. Raises TrialFailed then."""
    try:
        yield
    except Exception as error:
        if watch.reason is None or isinstance(error, Stopped):
            raise
        raise TrialFailed(watch.reason) from error
    else:
        if watch.reason is not None:
            raise TrialFailed(watch.reason)
    finally:
        silences = watch.told()
        if silences:
            log.facts["silences"] = [one.as_json() for one in silences]
        for one in silences:
            log.caveat(one.words())
        watch.begin_anew()


def put_back(context: RunContext, journal: Journal, logs: Sequence[TrialLog]) -> None:
    """All of it, signals or not; what others have changed since is a caveat of these trials."""
    with context.interrupts.must_finish():
        for undone in journal.put_back_all():
            if undone.is_left:
                for log in logs:
                    log.caveat(f"changed by another program or user during the trial, and left as it is: {undone.what}")
                context.observer.event("note", text=f"left as it is: {undone.what}; {undone.remedy}")


def _arrange(context: RunContext, journal: Journal, settings: Experiment, name: str, log: TrialLog) -> PrivatePlace:
    state, host, wanted = context.state, context.host, settings.environment
    user = host.server_user()
    state.check_traversable(user)
    work_dir.make(state, journal, state.work / name, mode=0o755)
    site = knobs.site_of(settings, state, name, context.at_turns)
    for knob in knobs.KNOBS:
        site.arrange(knob, journal)
    log.facts["layout"] = layout = described(site)
    for text in caveats_of(layout):
        log.caveat(text)
    locations, enclosure = site.made_by(file_locations.KNOB), site.made_by(group_limits.KNOB)
    folders = () if enclosure.group is None else enclosure.group.folders
    server.record(journal, locations.data / "data", folders, locations.work)
    record_users(site, journal, folders)
    served = at_the_server(site, locations.apart)
    load_cpus = None if wanted.load_cpus == "all" else set(cpu_lists.check(wanted.load_cpus))
    log.facts["cpus"] = {
        "target": wanted.target_cpus if wanted.target_cpus != "all" else cpu_lists.show(host.cpus()),
        "load": cpu_lists.show(load_cpus or host.cpus()),
    }
    return PrivatePlace(
        devices=host.devices(state.root, *locations.apart, *served),
        group=enclosure.group if enclosure.limits is not None else None,
        load_cpus=load_cpus,
        locations=locations,
        owner=host.account(user),
        limits=enclosure.limits,
        cage=enclosure.group if enclosure.limits is None else None,
        host=host,
        members=members_of(layout),
        served=served,
        silences=watched(site, folders),
    )
