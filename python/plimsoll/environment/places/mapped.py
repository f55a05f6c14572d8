"""Device-mapper targets over the device of a place: linear, delay, flakey."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import commands, machine, volumes
from plimsoll.environment.places.layer import Devices, lacking, not_in_this_kernel
from plimsoll.environment.places.stack import Stack, stacks_of

_FOLDER = "/dev/mapper"
_MODULES = {"linear": "dm_mod", "delay": "dm_delay", "flakey": "dm_flakey"}


class Mapped(Knob[Devices]):
    name = "place_mapped"
    keys = ("environment.places.*.mapper",)
    after = ("place_volumes",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        for stack in stacks_of(site):
            kind = stack.place.mapper.kind
            if kind == "none":
                continue
            if not machine.HERE.has_module("dm_mod") or not machine.HERE.has_module(_MODULES[kind]):
                option = "CONFIG_BLK_DEV_DM" + ("" if kind == "linear" else f" and CONFIG_DM_{kind.upper()}")
                yield not_in_this_kernel(stack, f"mapper.kind = {kind}", f"device-mapper target {kind}", option)
            yield from lacking(stack, "mapper", "dmsetup")

    def arrange(self, site: Site, journal: Journal) -> Devices:
        below = site.made_by(volumes.KNOB)
        return {stack.name: _over(stack, below[stack.name], journal) for stack in stacks_of(site)}


def _over(stack: Stack, members: list[str], journal: Journal) -> list[str]:
    if stack.place.mapper.kind == "none":
        return members
    here, uuid, sizes = machine.HERE, stack.uuid("mapped"), []
    for member in members:
        block = here.block(member)
        if block is None:
            raise Fault(f"{member}: is no block device any more", remedy="see `dmesg`")
        sizes.append((member, block.size_bytes))
    here.load(_MODULES[stack.place.mapper.kind])
    table = commands.mapper_table(stack.place, sizes)
    argv = commands.mapped(stack.mapped, uuid)
    journal.change("place_mapped", lambda: here.call(*argv, text=table), name=stack.mapped, uuid=uuid)
    return [f"{_FOLDER}/{stack.mapped}"]


KNOB = Mapped()


@puts_back("place_mapped", survives_reboot=False)
def _put_back(args: Args) -> str:
    name, here = args["name"], machine.HERE
    found = here.mapped(name)
    if found is None:
        return f"{name} was not there"
    if found != f"PLIMSOLL-{args['uuid']}":
        raise Fault(f"{name}: is a device of somebody else ({found})", remedy="it is left: see `dmsetup info`")
    here.call("dmsetup", "remove", "--retry", name)
    return f"{name} removed"
