"""RAID over the devices of a place (md).

The constraint: members bear a superblock by which the kernel assembles the array again after a reboot, under a name of
its own. So putting back stops whatever array holds a member with our UUID, and takes the superblocks of that UUID away.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import commands, loops, machine, users_devices
from plimsoll.environment.places.layer import Devices, lacking, not_in_this_kernel
from plimsoll.environment.places.stack import Stack, stacks_of

_MODULES = {0: "raid0", 1: "raid1", 10: "raid10", 5: "raid456"}


LEVELS = tuple(_MODULES)


def has_level(level: int) -> bool:
    """Whether this kernel has arrays of it."""
    return machine.HERE.has_module("md_mod", "md-mod") and machine.HERE.has_module(_MODULES[level])


class Arrays(Knob[Devices]):
    name = "place_arrays"
    keys = ("environment.places.*.raid",)
    after = ("place_loops", "place_devices")
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        for stack in stacks_of(site):
            level = stack.place.raid.level
            if level == "none":
                continue
            if not has_level(level):
                option = f"CONFIG_BLK_DEV_MD and CONFIG_MD_RAID{'456' if level == 5 else level}"
                yield not_in_this_kernel(stack, f"raid.level = {level}", f"md RAID of level {level}", option)
            yield from lacking(stack, "raid", "mdadm")

    def arrange(self, site: Site, journal: Journal) -> Devices:
        below = {**site.made_by(users_devices.KNOB), **site.made_by(loops.KNOB)}
        return {stack.name: _over(stack, below[stack.name], journal) for stack in stacks_of(site)}


def _over(stack: Stack, members: list[str], journal: Journal) -> list[str]:
    if stack.place.raid.level == "none":
        return members
    uuid, here = stack.uuid("array"), machine.HERE
    here.load("md_mod")
    here.load(_MODULES[stack.place.raid.level])
    argv = commands.array(stack.place, stack.array, members, uuid)
    journal.change("place_array", lambda: here.call(*argv), node=stack.array, uuid=uuid, members=members)
    if not stack.place.raid.assume_clean and stack.place.raid.level != 0:
        _wait_until_synchronised(stack.array)
    return [stack.array]


def _wait_until_synchronised(node: str) -> None:
    """What the kernel copies in the background would be measured, too."""
    try:
        machine.HERE.call("mdadm", "--wait", node)
    except Fault as fault:
        if fault.what.rstrip().endswith("exit code 1"):
            return  # there was nothing to wait for
        raise


KNOB = Arrays()


@puts_back("place_array", survives_reboot=True)
def _put_back(args: Args) -> str:
    """By what its members bear: the array may have come up again under any name, or never got one."""
    here, uuid, done = machine.HERE, _plain(args["uuid"]), list[str]()
    for member in args["members"]:
        if _bears(member, uuid):
            for holder in _holding(member):
                here.call("mdadm", "--stop", holder)
                done.append(f"{holder} stopped")
                step("after stop")
    if left := [member for member in args["members"] if _bears(member, uuid) and _holding(member)]:
        raise Fault(f"{', '.join(left)}: still in an array", remedy="see /proc/mdstat; then run `plimsoll undo`")
    here.forget_name(args["node"])
    for member in args["members"]:
        if _bears(member, uuid):
            here.call("mdadm", "--zero-superblock", member)
            step("after superblock")
            done.append(f"{member} no member any more")
    return ", ".join(done) or f"{args['node']} was not there"


def _holding(member: str) -> list[str]:
    """The arrays that have the device."""
    block = machine.HERE.block(member)
    return [] if block is None else [f"/dev/{name}" for name in block.holders if name.startswith("md")]


def _bears(member: str, uuid: str) -> bool:
    """Whether the superblock of an array with our UUID is on the device."""
    if machine.HERE.block(member) is None:
        return False
    found = machine.HERE.signatures(member)
    return found.get("TYPE") == "linux_raid_member" and _plain(found.get("UUID", "")) == uuid


def _plain(uuid: str) -> str:
    return uuid.replace("-", "").replace(":", "").lower()
