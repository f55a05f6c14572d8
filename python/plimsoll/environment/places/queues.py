"""Queues of the devices of a place: scheduler and depth of those at the bottom, read-ahead of the one at the top.

The constraint: with another scheduler the kernel drops the depth of the queue and what the scheduler before was set to,
so those are journalled too, written after it and put back after it; and read-ahead counts at the topmost device alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from plimsoll.environment import devices, kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import loops, machine, mapped, users_devices
from plimsoll.environment.places.layer import Devices
from plimsoll.environment.places.stack import Stack, stacks_of

_AS_FOUND = "as found"
_SCHEDULER = "/scheduler"


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
    return machine.HERE.queues_of_loops()[:1]


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
    queues = dict.fromkeys(Path(name).parent for name in wanted)
    turned = [Path(name).parent for name in wanted if name.endswith(_SCHEDULER) and found[name] != wanted[name]]
    dropped = {name: text for queue in turned for name, text in _dropped_with_the_scheduler(queue) if name not in found}

    def act() -> None:
        for name, value in wanted.items():
            kernel_files.write(Path(name), value, remedy="leave the setting out, or choose one that the device takes")
            step("after queue file")
            now = kernel_files.selected(kernel_files.read(Path(name)) or "")
            if now != value:
                raise Fault(f"{name}: {value} was written, {now} is in force", remedy="use the value in force")

    known = {str(queue): devices.diskseq(queue) for queue in queues}
    journal.change("place_queue", act, found=found, set=wanted, dropped=dropped, diskseq=known)


def _dropped_with_the_scheduler(queue: Path) -> Iterator[tuple[str, str]]:
    """The files that read otherwise once another scheduler was there, with what is in them."""
    for path in (queue / "nr_requests", queue / "wbt_lat_usec", *sorted(queue.glob("iosched/*"))):
        if (text := kernel_files.read(path)) is not None:
            yield str(path), text


KNOB = Queues()


@puts_back("place_queue", survives_reboot=False)
def _put_back(args: Args) -> str:
    found, ours, known = args["found"], args["set"], args.get("diskseq", {})
    gone = {queue for queue, number in known.items() if devices.diskseq(Path(queue)) != number}
    there = {name: text for name in found if str(Path(name).parent) not in gone and (text := _now(name)) is not None}
    theirs = {name for name, value in there.items() if value not in (found[name], ours[name])}
    # A scheduler that is put back brings a depth of its own, which is nobody's.
    turned = {Path(name).parent for name in there if name.endswith(_SCHEDULER) and name not in theirs}
    done = []
    for name, value in there.items():
        depth = name.endswith("/nr_requests") and Path(name).parent in turned
        if name not in theirs and (value != found[name] or depth):
            kernel_files.write(Path(name), found[name])
            step("after queue file")
        done.append(f"{name} = {found[name]}")
    refused = _put_back_dropped(args.get("dropped", {}), turned)
    if theirs:
        name = min(theirs)
        what = changed_since(name, found=found[name], ours=ours[name], now=there[name])
        raise ChangedSince(what, f"to set it back: `echo {found[name]} > {name}`")
    if refused:
        raise ChangedSince(refused[0].what, "it was so before the scheduler was changed: set it yourself if it matters")
    return ", ".join(done) or "its devices are gone"


def _put_back_dropped(dropped: Mapping[str, str], turned: Set[Path]) -> list[Fault]:
    """What the kernel does not take again."""
    refused = []
    for name, text in dropped.items():
        if turned.isdisjoint(Path(name).parents) or _now(name) in (None, text):
            continue
        try:
            kernel_files.write(Path(name), text)
        except Fault as fault:
            refused.append(fault)
        step("after queue file")
    return refused


def _now(name: str) -> str | None:
    """What is in force; None where there is no such file any more. Raises OSError where it cannot be read."""
    try:
        return kernel_files.selected(Path(name).read_text().strip())
    except FileNotFoundError:
        return None
