"""Mounts of places, each on a folder of the trial's own.

The constraint: what lies in a mounted file system must never be taken for what lies in the folder under it, so the
folder is removed by rmdir alone, which removes nothing that holds anything.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import commands, file_systems, machine
from plimsoll.environment.places.file_systems import Made
from plimsoll.environment.places.stack import MOUNTED, Stack, stacks_of

_TRIES = 7
# Of the mount and not of the file system: what mount(8) itself makes of them every kernel takes.
OF_THE_MOUNT = {
    "noatime", "atime", "nodiratime", "diratime", "relatime", "norelatime", "strictatime", "nostrictatime", "nodev",
    "dev", "nosuid", "suid", "noexec", "exec", "rw", "defaults", "async",
}  # fmt: skip


class Mounts(Knob[Mapping[str, Path]]):
    name = "place_mounts"
    keys = ("environment.places.*.mount",)
    after = ("place_file_systems",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        for stack in stacks_of(site):
            fs = stack.place.file_system
            for option, value in stack.place.mount.items():
                if option in OF_THE_MOUNT or value is False:
                    continue
                said = machine.HERE.refused_option(fs, option, None if value is True else str(value))
                if said is not None:
                    given = option if value is True else f"{option} = {value}"
                    yield f"{stack.key}.mount.{given}: {fs} refuses it: {said}; see mount(8) for what {fs} takes"

    def arrange(self, site: Site, journal: Journal) -> Mapping[str, Path]:
        made = site.made_by(file_systems.KNOB)
        stacks = {stack.name: stack for stack in stacks_of(site)}
        return {name: _mount(stacks[name], one, journal) for name, one in made.items()}


def _mount(stack: Stack, made: Made, journal: Journal) -> Path:
    point = stack.point
    mount_at(point, commands.mount(stack.place, made.device, point, made.log), journal)
    point.chmod(0o755)  # of the file system's own root
    return point


def mount_at(point: Path, argv: list[str], journal: Journal) -> None:
    """Mounts on a new folder, which is the trial's own by its name."""
    new_point(point)

    def act() -> None:
        point.mkdir(mode=0o755)
        step("after mount point")
        machine.HERE.call(*argv)

    journal.change("place_mount", act, point=str(point))


def new_point(point: Path) -> None:
    """Raises Fault where there is something already."""
    if point.exists():
        raise Fault(f"{point}: exists already", remedy="run `plimsoll undo`, or remove it if you know what it is")


KNOB = Mounts()


@puts_back("place_mount", survives_reboot=True)
def _put_back(args: Args) -> str:
    point = point_of_ours(args)
    for attempt in range(_TRIES):
        if not any(mount.point == str(point) for mount in machine.HERE.mounts()):
            break
        try:
            machine.HERE.call("umount", str(point))
        except Fault as fault:
            if "busy" not in fault.what or attempt == _TRIES - 1:
                raise Fault(
                    fault.what, remedy=f"`fuser -vm {point}` names who uses it; then `plimsoll undo`"
                ) from fault
            time.sleep(0.02 * 2**attempt)
        step("after umount")
    return remove_point(point)


def point_of_ours(args: Args) -> Path:
    """The mount point that an entry names, as the kernel lists it, however the state folder was reached."""
    point = Path(args["point"])
    if not point.is_absolute() or ".." in point.parts or MOUNTED not in point.name:
        raise Fault(f"{point}: not a mount point of ours", remedy="it is left: look at it yourself")
    return machine.real_path(point)


def remove_point(point: Path) -> str:
    """Removes the folder where nothing is mounted any more, and says so."""
    try:
        point.rmdir()
    except FileNotFoundError:
        return f"{point} was not there"
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise Fault(f"{point}: holds files that nobody mounted", remedy="look at them, and remove them") from error
        raise
    return f"{point} unmounted and removed"
