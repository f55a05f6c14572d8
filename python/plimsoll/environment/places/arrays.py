"""RAID over the devices of a place (md).

The constraint: members bear a superblock by which the kernel assembles the array again after a reboot. So putting back
stops whatever array has our UUID and takes the superblocks of that UUID away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import commands, loops, machine, users_devices
from plimsoll.environment.places.layer import Devices, lacking, not_in_this_kernel
from plimsoll.environment.places.stack import Stack, stacks_of

_MODULES = {0: "raid0", 1: "raid1", 10: "raid10", 5: "raid456"}


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
            if not machine.HERE.has_module("md_mod", "md-mod") or not machine.HERE.has_module(_MODULES[level]):
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
    here, uuid = machine.HERE, _plain(args["uuid"])
    done = []
    node = args["node"]
    if (
        here.block(node) is not None
        and _plain(_told(["mdadm", "--detail", "--export", node]).get("MD_UUID", "")) == uuid
    ):
        here.call("mdadm", "--stop", node)
        done.append(f"{node} stopped")
    step("after stop")
    for member in args["members"]:
        if here.block(member) is None:
            continue
        told = _told(["mdadm", "--examine", "--export", member])
        if _plain(told.get("MD_UUID", "")) == uuid:
            here.call("mdadm", "--zero-superblock", member)
            done.append(f"{member} no member any more")
    return ", ".join(done) or f"{node} was not there"


def _told(argv: list[str]) -> Mapping[str, str]:
    try:
        lines = machine.HERE.call(*argv).splitlines()
    except Fault:
        return {}  # it is no array, no member
    pairs = (line.partition("=") for line in lines)
    return {key: value for key, _, value in pairs}


def _plain(uuid: str) -> str:
    return uuid.replace("-", "").replace(":", "").lower()
