"""What a treatment asks of the machine, arranged for one trial and put back after it, whatever happened.

The order matters: what has to outlive the server is arranged before it and therefore put back after it. Of the knobs
it is that of run/knobs.py.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.environment import Group, Journal, Limits, StateDir, group_limits, server, work_dir
from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.devices import devices_of
from plimsoll.experiment import Experiment
from plimsoll.run import knobs, placing, planning
from plimsoll.run.placing import Homes
from plimsoll.run.trial import Place, Report

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


@dataclass
class PrivatePlace(Place):
    """Where a private server lives during one trial."""

    homes: Homes
    owner: tuple[int, int]
    limits: Limits | None
    cage: Group | None = None  # without limits, where none are asked for: nothing that the server starts outlives it

    @property
    def folder(self) -> Path:
        """Of the server's log and configuration, and of its socket's folder: ours, so that only root writes in it."""
        return self.homes.work

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.homes.data / "data"

    def launch(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program as the server's user, inside the group when there is one."""
        inside = self.group or self.cage
        return inside.exec_in(argv, **options) if inside is not None else launch_outside(argv, **options)

    def probes(self, settings: Experiment) -> dict[str, Any] | None:
        """The probes of the experiment, for this server's files."""
        wanted, folder = settings.probes, str(self.homes.data)
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
        }

    def read_inside(self, tree: Path) -> None:
        """Reads every file of a tree inside the group, so that the pages are charged to it."""
        files = [str(path) for path in sorted(tree.rglob("*")) if path.is_file()]
        for start in range(0, len(files), 500):
            argv = ["cat", "--", *files[start : start + 500]]
            self.launch(argv, user=planning.server_user(), stdout=subprocess.DEVNULL).wait()

    def oom_kills(self) -> int:
        """How often the kernel killed for want of memory in the group."""
        inside = self.group or self.cage
        return (inside.oom_kills() or 0) if inside is not None else 0

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


def launch_outside(argv: list[str], *, user: str, **options: Any) -> subprocess.Popen[bytes]:
    """Starts a program as `user` without a group; dropping the rights needs root, being that user does not."""
    account = pwd.getpwnam(user)
    if account.pw_uid != os.geteuid():
        options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={**os.environ, "HOME": account.pw_dir, "USER": user},
        **options,
    )


def watched_devices(*paths: Path) -> list[str]:
    """The devices that serve any of `paths`, by their names in /proc/diskstats."""
    listed = {line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()}
    found = [device.name for path in paths for device in devices_of(path) if device.name in listed]
    return list(dict.fromkeys(found))


def dirty_limits_caveat(settings: Experiment, group_version: int) -> str | None:
    """What the reader has to know about the limits of dirty pages in a group with a memory limit."""
    names = {"vm.dirty_bytes", "vm.dirty_background_bytes"}
    shares = {"vm.dirty_ratio", "vm.dirty_background_ratio"}
    wanted = set(settings.environment.sysctl)
    if group_version == 1 and not wanted & (names | shares):
        return "cgroup v1: dirty limits are the host's, not the group's (environment.sysctl can set vm.dirty_bytes)"
    if group_version == 1:
        return "cgroup v1: the vm.dirty_* limits apply to the whole host: pages dirtied by other programs count too"
    if wanted & names:
        return (
            "cgroup v2: the kernel turns vm.dirty_*bytes into a share of the host's available memory and gives the "
            "group that share of its own; set vm.dirty_ratio and vm.dirty_background_ratio instead"
        )
    return None


@contextmanager
def arranged(context: RunContext, settings: Experiment, name: str, report: Report) -> Iterator[PrivatePlace]:
    """The machine as the treatment wants it. Everything is put back at the end, signals or not."""
    state = context.state
    journal = Journal.create(state, name)
    try:
        yield _arrange(state, journal, settings, name, report)
    finally:
        with context.interrupts.must_finish(), report.phase("put back", context.observer):
            for undone in journal.put_back_all():
                if undone.is_left:
                    report.caveat(
                        f"changed by another program or user during the trial, and left as it is: {undone.what}"
                    )
                    context.observer.event("note", text=f"left as it is: {undone.what}; {undone.remedy}")


def _arrange(state: StateDir, journal: Journal, settings: Experiment, name: str, report: Report) -> PrivatePlace:
    wanted = settings.environment
    user = planning.server_user()
    state.check_traversable(user)
    work_dir.make(state, journal, state.work / name, mode=0o755)
    site = knobs.site_of(settings, state, name)
    for knob in knobs.KNOBS:
        site.arrange(knob, journal)
    homes, enclosure = site.made_by(placing.KNOB), site.made_by(group_limits.KNOB)
    server.record(journal, homes.data / "data")
    load_cpus = None if wanted.load_cpus == "all" else set(cpu_lists.check(wanted.load_cpus))
    report.found["cpus"] = {
        "target": wanted.target_cpus if wanted.target_cpus != "all" else cpu_lists.show(cpu_lists.usable()),
        "load": cpu_lists.show(load_cpus or cpu_lists.usable()),
    }
    return PrivatePlace(
        devices=watched_devices(state.root, *homes.placed),
        group=enclosure.group if enclosure.limits is not None else None,
        load_cpus=load_cpus,
        homes=homes,
        owner=planning.own(user),
        limits=enclosure.limits,
        cage=enclosure.group if enclosure.limits is None else None,
    )
