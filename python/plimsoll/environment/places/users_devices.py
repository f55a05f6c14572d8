"""Block devices that the user has named, twice: refused where they hold anything, blank again when the trial is over.

The constraint: after a reboot another disk may have the same name. So what is wiped is what bears a UUID of ours, or,
in the same boot, what was blank when we took it and bears none, if it is the same disk by the kernel's own count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import machine
from plimsoll.environment.places.found_on import found_on
from plimsoll.environment.places.layer import Devices, lacking
from plimsoll.environment.places.stack import Stack, stacks_of
from plimsoll.environment.processes import boot_id

_REMEDY = "name a device that is not used, or empty it yourself (wipefs --all, blkdiscard) if nothing on it is needed"


class UsersDevices(Knob[Devices]):
    name = "place_devices"
    keys = tuple(f"environment.places.*.{key}" for key in ("devices", "erase", "folder"))
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        taken: dict[str, str] = {}
        for stack in stacks_of(site):
            if not machine.HERE.is_root:
                yield f"{stack.key}: only root makes and mounts file systems; run as root, or name a folder"
                return
            if not stack.place.devices:
                continue
            yield from lacking(stack, "devices", "blkid", "wipefs")
            for path in stack.place.devices if machine.HERE.has_program("blkid") else []:
                for what in found_on(path, machine.HERE):
                    yield f"{stack.key}.devices: {path} {what}; {_REMEDY}"
                block = machine.HERE.block(path)
                number = block.number if block is not None else path
                if number in taken:
                    yield f"{stack.key}.devices: {path} is a device of {taken[number]}, too; name each device once"
                taken[number] = stack.key

    def alone(self, site: Site) -> Iterator[str]:
        for stack in stacks_of(site):
            if stack.place.devices:
                yield f"{stack.key} is on devices of yours, and a device holds the files of one server at a time"

    def arrange(self, site: Site, journal: Journal) -> Devices:
        stacks = stacks_of(site)
        return {stack.name: _take(stack, stacks, journal) for stack in stacks if stack.place.devices}


def _take(stack: Stack, stacks: Iterable[Stack], journal: Journal) -> list[str]:
    uuids = [stack.uuid(layer) for layer in ("file system", "log", "array")]
    # The log of an XFS bears the UUID of the file system that it belongs to.
    uuids += [other.uuid("file system") for other in stacks if other.place.log == stack.name]
    for path in stack.place.devices:
        # It was looked at when the run began, which may be hours ago.
        if found := [*found_on(path, machine.HERE)]:
            raise Fault(f"{stack.key}.devices: {path} {' and '.join(found)}", remedy=_REMEDY)
        block = machine.HERE.block(path)
        assert block is not None
        known = {"number": block.number, "size_bytes": block.size_bytes, "diskseq": block.diskseq, "boot": boot_id()}
        journal.record("place_device", path=path, uuids=uuids, **known)
    return list(stack.place.devices)


KNOB = UsersDevices()


@puts_back("place_device", survives_reboot=True)
def _put_back(args: Args) -> str:
    here, path = machine.HERE, _where_it_is(args)
    block = here.block(path)
    if block is None:
        return f"{path} is not there any more"
    found = here.signatures(path)
    if not found and here.ends_are_zero(path):
        return f"{path} is blank, as it was found"
    known = {"number": block.number, "size_bytes": block.size_bytes, "diskseq": block.diskseq, "boot": boot_id()}
    is_same = all(args[key] == value for key, value in known.items() if key in args)
    is_ours = _plain(found.get("UUID") or found.get("LOGUUID", "")) in map(_plain, args["uuids"])
    if not is_ours and (found or not is_same):
        what = found.get("TYPE") or found.get("PTTYPE") or "something"
        raise ChangedSince(
            f"{path} was blank and was taken by the run, and holds {what} that is not the run's", f"see `blkid {path}`"
        )
    if reasons := [one for one in found_on(path, here) if one.startswith(("is mounted", "is a member", "is swap"))]:
        raise Fault(f"{path} {', '.join(reasons)}", remedy="end what uses it, then run `plimsoll undo`")
    if found:
        here.call("wipefs", "--all", "--quiet", path)
        step("after wipefs")
    here.zero_ends(path)
    return f"{path} blank again"


def _where_it_is(args: Args) -> str:
    """Its path; after a reboot that of the disk which bears a UUID of ours, where the machine lists that."""
    if args["boot"] != boot_id():
        for uuid in args["uuids"]:
            if (path := machine.HERE.with_uuid(uuid)) is not None:
                return path
    return str(args["path"])


def _plain(uuid: str) -> str:
    return uuid.replace("-", "").replace(":", "").lower()
