"""File systems of places, made by mkfs with a UUID of ours.

The constraint: mkfs is put back with the device that it was made on (an image is removed, a device of the user's is
blank again), so the entry below says what was made and has nothing left to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import commands, machine, queues
from plimsoll.environment.places.layer import lacking, size_of
from plimsoll.environment.places.stack import Stack, stacks_of
from plimsoll.experiment.places import NO_FILE_SYSTEM

_UUID_LESS = "of its own choice"


@dataclass(frozen=True)
class Made:
    """A file system: its device, and the one that holds its log."""

    device: str
    log: str | None


class FileSystems(Knob[Mapping[str, Made]]):
    name = "place_file_systems"
    keys = tuple(f"environment.places.*.{key}" for key in ("file_system", "mkfs", "log"))
    after = ("place_queues",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        for stack in stacks_of(site):
            fs = stack.place.file_system
            if fs == NO_FILE_SYSTEM:
                continue
            if not machine.HERE.has_file_system(fs):
                kernel = f"this kernel ({machine.HERE.release()})"
                yield f"{stack.key}.file_system = {fs}: {kernel} has no {fs}; choose another, or load its module"
            program = commands.mkfs(stack.place, stack.uuid("file system"), None)[0]
            missing = [*lacking(stack, f"file_system = {fs}", program)]
            yield from missing
            size = size_of(stack)
            if missing or size is None:
                continue
            argv = commands.mkfs(stack.place, stack.uuid("file system"), None, pretend=True)
            if said := machine.HERE.refused_mkfs(argv, size):
                yield f"{stack.key}.mkfs: {program} refuses it on {size} bytes: {said}; change mkfs, or the size"

    def arrange(self, site: Site, journal: Journal) -> Mapping[str, Made]:
        devices = {name: found[0] for name, found in site.made_by(queues.KNOB).items()}
        found = {}
        for stack in stacks_of(site):
            if stack.place.file_system != NO_FILE_SYSTEM:
                log = None if stack.place.log is None else devices[stack.place.log]
                found[stack.name] = _make(stack, Made(devices[stack.name], log), journal)
        return found


def _make(stack: Stack, made: Made, journal: Journal) -> Made:
    here, uuid = machine.HERE, stack.uuid("file system")
    if made.log is not None and (argv := commands.log_device(stack.place, _uuid_of_log(stack))) is not None:
        _format(argv, made.log, journal)
    elif made.log is not None:
        _refuse_what_is_there(made.log)  # mkfs of the file system writes on both
    _format(commands.mkfs(stack.place, uuid, made.log), made.device, journal)
    found = here.signatures(made.device)
    knows_its_uuid = uuid in commands.mkfs(stack.place, uuid, made.log) or stack.place.file_system == "xfs"
    if found.get("TYPE") != stack.place.file_system or (knows_its_uuid and found.get("UUID") != uuid):
        there = f"{found.get('TYPE', 'nothing')} with UUID {found.get('UUID', _UUID_LESS)}"
        raise Fault(
            f"{stack.key}.mkfs: {made.device} holds {there} after mkfs, and no {stack.place.file_system} of ours",
            remedy="see mkfs.options: one of them makes something else",
        )
    return made


def _uuid_of_log(stack: Stack) -> str:
    """One that the place of the log knows for its own: whoever puts its device back looks for that."""
    return replace(stack, name=stack.place.log or stack.name).uuid("log")


def _format(argv: list[str], device: str, journal: Journal) -> None:
    _refuse_what_is_there(device)
    given = [device if one == machine.DEVICE else one for one in argv]
    journal.change("place_file_system", lambda: machine.HERE.call(*given), device=device)


def _refuse_what_is_there(device: str) -> None:
    """Nobody else may have laid anything on it since it was made or looked at."""
    if there := machine.HERE.signatures(device):
        raise Fault(f"{device} holds {there.get('TYPE', 'something')} already", remedy="find out who wrote it there")


KNOB = FileSystems()


@puts_back("place_file_system", survives_reboot=False)
def _put_back(args: Args) -> str:
    return f"the file system on {args['device']} goes with its device"
