"""Where a load on files is: it is itself inside the group that servers are in otherwise, and on their CPUs.

The fact that constrains it: Linux charges a page to whoever touches it first, and here that is the load.
"""

from __future__ import annotations

import io
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from plimsoll.environment import Group
from plimsoll.environment import cpus as cpu_lists
from plimsoll.experiment import Experiment
from plimsoll.run.host import ThisMachine
from plimsoll.run.requests import machine_probes
from plimsoll.run.surroundings.arranged import PrivatePlace


def has_threads(settings: Experiment) -> bool:
    """Whether each session has a thread, so that what a thread waits for is an operation's."""
    return getattr(settings.workload, "engine", "sync") != "io_uring"


class InGroup(ThisMachine):
    """This machine, with the programs that are told what to do inside a group; without one as anywhere."""

    def __init__(self, group: Group | None) -> None:
        self.group = group

    def start_led(self, argv: list[str], cpus: set[int] | None) -> subprocess.Popen[str]:
        if self.group is None:
            return super().start_led(argv, cpus)
        pipe = subprocess.PIPE
        kept = None if cpus is None else sorted(cpus)
        started = self.group.exec_in(argv, cpus=kept, stdin=pipe, stdout=pipe, stderr=pipe)
        led = cast("subprocess.Popen[str]", started)
        for name in ("stdin", "stdout", "stderr"):
            setattr(led, name, io.TextIOWrapper(getattr(started, name), encoding="utf-8"))
        return led


class LoadPlace(PrivatePlace):
    """The place of a trial whose load is what is limited."""

    @classmethod
    def of(cls, place: PrivatePlace, settings: Experiment) -> LoadPlace:
        """The same place, with the load on the target's CPUs and its files' devices alone."""
        wanted = settings.environment.target_cpus
        given: dict[str, Any] = {field.name: getattr(place, field.name) for field in fields(place)}
        given |= {
            "host": InGroup(place.inside),
            "load_cpus": None if wanted == "all" else set(cpu_lists.parse(wanted)),
            # The record's own writes go elsewhere where the files lie at a place of their own.
            "devices": place.host.devices(place.locations.data),
        }
        return cls(**given)

    def probes(self, settings: Experiment) -> dict[str, Any] | None:
        """The probes of the experiment: the agent's target tells them its process and folder."""
        wanted, folder = settings.probes, str(self.locations.data)
        profile = {"hz": wanted.profile_hz, "locks": wanted.profile_locks}
        return {
            "page_cache": {"scratch": folder} if wanted.page_cache else None,
            "buffer_heads": {"path": folder} if wanted.buffer_heads else None,
            "throttle": {"path": folder} if wanted.throttle else None,
            "breakdown": None,
            "file_waits": {} if wanted.breakdown and has_threads(settings) else None,
            "profile": profile if wanted.profile else None,
            "syscalls": {"counted": wanted.syscalls_counted} if wanted.syscalls else None,
            "sync": {} if wanted.sync else None,
            "block": {} if wanted.block else None,
            "nfs_calls": {} if wanted.nfs_calls else None,
            **machine_probes(settings),
        }

    def read_inside(self, *trees: Path) -> None:
        """As we are: the files are the load's, and it has our rights."""
        files = [str(path) for tree in trees for path in sorted(tree.rglob("*")) if path.is_file()]
        for start in range(0, len(files), 500):
            argv = ["cat", "--", *files[start : start + 500]]
            self.launch_as_we_are(argv, stdout=subprocess.DEVNULL).wait()
