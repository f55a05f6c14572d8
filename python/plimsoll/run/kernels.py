"""The kernels that a run may be on, each with who carries the run out: a new one is a room, and a line here.

The fact that constrains it: what a run on another kernel needs of the host is asked on the host, and everything else
by the runner inside; so the command line takes either, and knows no difference.
"""

from __future__ import annotations

from pathlib import Path

from plimsoll.environment import StateDir
from plimsoll.experiment import Source
from plimsoll.experiment.kernels.table import BOOT_LOADER, KEXEC, QEMU
from plimsoll.run.booted.in_qemu import QemuRunner
from plimsoll.run.booted.on_the_machine import MachineRunner
from plimsoll.run.guest.runner import GuestRunner
from plimsoll.run.observer import Observer
from plimsoll.run.runner import Runner, stored_source

RUNNERS: dict[str, type[Runner] | type[GuestRunner]] = {
    "host": Runner,
    "guest": GuestRunner,
    QEMU: QemuRunner,
    KEXEC: MachineRunner,
    BOOT_LOADER: MachineRunner,
}


def runner_of(
    source: Source, out: Path, state: StateDir, observer: Observer, command: list[str], seed: int | None = None
) -> Runner | GuestRunner:
    """Of a new run of the experiment."""
    return RUNNERS[source.experiment.kernel_kind](source, out, state, observer, command, seed)


def resumed(out: Path, state: StateDir, observer: Observer, command: list[str]) -> Runner | GuestRunner:
    """Of a run that was stopped: the same experiment, seed, plan and way of being on its kernel."""
    source, seed = stored_source(out)
    return runner_of(source, out, state, observer, command, seed)
