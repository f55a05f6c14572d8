"""LVM over the devices of a place: a volume group of the trial's own, with one logical volume over all of it.

The constraint: LVM looks at every device of the machine, and names are the only thing by which a group is removed. So
each call may see the place's own devices alone, and a group is removed only where it has our name on our devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import arrays, commands, machine
from plimsoll.environment.places.layer import Devices, lacking, not_in_this_kernel
from plimsoll.environment.places.stack import Stack, stacks_of

_MEMBER = "LVM2_member"


class Volumes(Knob[Devices]):
    name = "place_volumes"
    keys = ("environment.places.*.volume",)
    after = ("place_arrays",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        for stack in stacks_of(site):
            kind = stack.place.volume.kind
            if kind == "none":
                continue
            if not machine.HERE.has_module("dm_mod"):
                yield not_in_this_kernel(stack, f"volume.kind = {kind}", "device-mapper", "CONFIG_BLK_DEV_DM")
            yield from lacking(stack, "volume", "lvm")

    def arrange(self, site: Site, journal: Journal) -> Devices:
        below = site.made_by(arrays.KNOB)
        return {stack.name: _over(stack, below[stack.name], journal) for stack in stacks_of(site)}


def _over(stack: Stack, members: list[str], journal: Journal) -> list[str]:
    if stack.place.volume.kind == "none":
        return members
    here, group = machine.HERE, stack.mapped
    here.load("dm_mod")

    def act() -> None:
        here.call(*commands.volume_group(group, members))
        step("after volume group")
        here.call(*commands.volume(stack.place, group, members))

    journal.change("place_volume", act, group=group, members=members)
    return [commands.volume_path(group)]


KNOB = Volumes()


@puts_back("place_volume", survives_reboot=True)
def _put_back(args: Args) -> str:
    here, group, done = machine.HERE, args["group"], list[str]()
    ours = [one for one in args["members"] if here.block(one) is not None]
    if not ours:
        return f"{group}: its devices are gone"
    groups = {one: here.call(*commands.group_of(one, ours)).strip() for one in ours if _is_member(one)}
    if others := sorted({found for found in groups.values() if found not in ("", group)}):
        raise Fault(f"{', '.join(others)}: a volume group of somebody else", remedy="it is left: see `vgs`")
    if group in groups.values():
        with suppress(Fault):  # LVM was killed before all members knew of the group: then it has no volume either
            here.call(*commands.remove_group(group, ours))
            done.append(f"{group} removed")
        step("after group")
    for member in ours:
        if _is_member(member):
            here.call(*commands.remove_member(member, ours))
            step("after member")
            done.append(f"{member} no member any more")
    return ", ".join(done) or f"{group} was not there"


def _is_member(device: str) -> bool:
    return machine.HERE.signatures(device).get("TYPE") == _MEMBER
