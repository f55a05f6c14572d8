"""Queues of the devices of a place: scheduler and depth of those at the bottom, read-ahead of the one at the top.

The constraint: a scheduler has a depth of its own, so that is written after it and put back after it; and read-ahead
counts at the topmost device alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import loops, machine, mapped, users_devices
from plimsoll.environment.places.layer import Devices
from plimsoll.environment.places.stack import Stack, stacks_of

_AS_FOUND = "as found"


class Queues(Knob[Devices]):
    name = "place_queues"
    keys = tuple(f"environment.places.*.{key}" for key in ("scheduler", "nr_requests", "read_ahead"))
    after = ("place_mapped",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        for stack in stacks_of(site):
            read_ahead = stack.place.read_ahead
            if isinstance(read_ahead, int) and read_ahead % 4096:
                yield f"{stack.key}.read_ahead = {read_ahead}: no whole number of pages; use a multiple of 4096 bytes"
            if stack.place.scheduler == _AS_FOUND:
                continue
            for queue in _known_queues(stack):
                offered = (kernel_files.read(queue / "scheduler") or "").replace("[", "").replace("]", "").split()
                if offered and stack.place.scheduler not in offered:
                    yield (
                        f"{stack.key}.scheduler = {stack.place.scheduler}: its devices have {', '.join(offered)}; "
                        "choose one of these"
                    )

    def arrange(self, site: Site, journal: Journal) -> Devices:
        above = site.made_by(mapped.KNOB)
        below = {**site.made_by(users_devices.KNOB), **site.made_by(loops.KNOB)}
        for stack in stacks_of(site):
            _set(_wanted(stack, below[stack.name], above[stack.name][0]), journal)
        return above


def _known_queues(stack: Stack) -> list[Path]:
    """Of its devices; of a loop device that is not there yet those of any."""
    if stack.place.devices:
        return [machine.HERE.queue(path) for path in stack.place.devices if machine.HERE.block(path) is not None]
    return sorted(Path("/sys/block").glob("loop*/queue"))[:1]


def _wanted(stack: Stack, members: list[str], top: str) -> dict[str, str]:
    """What is to be written, file by file, in that order."""
    wanted: dict[str, str] = {}
    for member in members:
        queue = machine.HERE.queue(member)
        if stack.place.scheduler != _AS_FOUND:
            wanted[str(queue / "scheduler")] = stack.place.scheduler
        if stack.place.nr_requests != _AS_FOUND:
            wanted[str(queue / "nr_requests")] = str(stack.place.nr_requests)
    if stack.place.read_ahead != _AS_FOUND:
        wanted[str(machine.HERE.queue(top) / "read_ahead_kb")] = str(int(stack.place.read_ahead) // 1024)
    return wanted


def _set(wanted: dict[str, str], journal: Journal) -> None:
    if not wanted:
        return
    found = {name: kernel_files.selected(kernel_files.read(Path(name)) or "") for name in wanted}

    def act() -> None:
        for name, value in wanted.items():
            kernel_files.write(Path(name), value, remedy="leave the setting out, or choose one that the device takes")
            now = kernel_files.selected(kernel_files.read(Path(name)) or "")
            if now != value:
                raise Fault(f"{name}: {value} was written, {now} is in force", remedy="use the value in force")

    journal.change("place_queue", act, found=found, set=wanted)


KNOB = Queues()


@puts_back("place_queue", survives_reboot=False)
def _put_back(args: Args) -> str:
    now = {name: kernel_files.read(Path(name)) for name in args["found"]}
    there = {name: kernel_files.selected(text) for name, text in now.items() if text is not None}
    theirs = {name for name, value in there.items() if value not in (args["found"][name], args["set"][name])}
    # A scheduler that is put back brings a depth of its own, which is nobody's.
    turned = {Path(name).parent for name in there if name.endswith("/scheduler") and name not in theirs}
    done = []
    for name, value in there.items():
        found = args["found"][name]
        depth = name.endswith("/nr_requests") and Path(name).parent in turned
        if name not in theirs and (value != found or depth):
            kernel_files.write(Path(name), found)
        done.append(f"{name} = {found}")
    if theirs:
        name = min(theirs)
        what = changed_since(name, found=args["found"][name], ours=args["set"][name], now=there[name])
        raise ChangedSince(what, f"to set it back: `echo {args['found'][name]} > {name}`")
    return ", ".join(done) or "its devices are gone"
