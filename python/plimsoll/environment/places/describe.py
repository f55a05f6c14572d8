"""The layout of a trial: which part of the target lies on which place, and what that is made of, as it was found made.

The constraint: what was asked for is not what is there. Options, sizes and queues are read back from the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from plimsoll.environment import devices, kernel_files
from plimsoll.environment.knob import Site
from plimsoll.environment.places import arrays, commands, loops, machine, mapped, mounts, users_devices, volumes
from plimsoll.environment.places.nfs import exports, mounting, nfsd
from plimsoll.environment.places.nfs import mounts as nfs_mounts
from plimsoll.environment.places.stack import Stack, nfs_stacks_of, stacks_of
from plimsoll.experiment.places import is_name

Json = dict[str, Any]
STATE_FOLDER = "state folder"


def described(site: Site) -> Json:
    """`layout` of trial.json (schema/record.md), of a trial that is arranged."""
    files = site.settings.target.files.given
    parts = {"data": STATE_FOLDER, **files}
    stacks = {stack.name: stack for stack in stacks_of(site)}
    mounted = {stack.name: stack for stack in nfs_stacks_of(site)}
    points = site.made_by(mounts.KNOB)
    places: dict[str, Json] = {}
    for value in parts.values():
        if value in places:
            continue
        if value in stacks:
            places[value] = _of_a_stack(stacks[value], stacks.get(stacks[value].place.log or ""), site, points[value])
        elif value in mounted:
            on = stacks.get(mounted[value].place.nfs.on or "")
            places[value] = _of_nfs(mounted[value], site)
            if on is not None:
                below = _of_a_stack(on, stacks.get(on.place.log or ""), site, points[on.name])
                places[value]["exported"] = below | {"name": on.name}
        else:
            folder = site.settings.environment.places[value].folder if is_name(value) else value
            places[value] = _of_a_folder(site.state.root if value == STATE_FOLDER else Path(str(folder)))
    return {"parts": parts, "places": places, "logs": {name: stack.place.log for name, stack in stacks.items()
                                                       if stack.place.log is not None}}  # fmt: skip


def _of_a_folder(path: Path) -> Json:
    mount = devices.mount_of(path)
    below = [devices.describe(device) for device in devices.devices_of(path)]
    return {
        "folder": str(path),
        "source": mount.source,
        "file_system": mount.fs,
        "mount": mount.options,
        "devices": below,
    }


def _of_a_stack(stack: Stack, log: Stack | None, site: Site, point: Path) -> Json:
    place = stack.place
    found: Json = {
        "folder": None,
        "file_system": place.file_system,
        "mkfs": place.mkfs.model_dump(mode="json", exclude_defaults=True),
        "mount": devices.mount_of(point).options,
        "mount_given": commands.mount_options(place),
        "devices": [_device(path, stack) for path in _members(stack, site)],
        "read_ahead_kib": devices.describe(devices.devices_of(point)[0]).get("read_ahead_kib"),
    }
    if place.raid.level != "none":
        array = site.made_by(arrays.KNOB)[stack.name][0]
        found["raid"] = place.raid.model_dump(mode="json") | {"device": array, "chunk": _chunk_bytes(array)}
        if place.raid.level == 0 and place.file_system in commands.EXT:
            found["bitmaps_by_member"] = _bitmaps(devices.mount_of(point).source, found["raid"]["chunk"], place.members)
    if place.volume.kind != "none":
        volume = site.made_by(volumes.KNOB)[stack.name][0]
        found["volume"] = place.volume.model_dump(mode="json") | {"device": volume}
    if place.mapper.kind != "none":
        found["mapper"] = place.mapper.model_dump(mode="json") | {"device": site.made_by(mapped.KNOB)[stack.name][0]}
    if log is not None:
        found["log"] = {
            "place": log.name,
            "devices": [_device(path, log) for path in _members(log, site)],
        }
    return found


def _of_nfs(stack: Stack, site: Site) -> Json:
    """What is mounted, by what the kernel tells of both its sides."""
    point, served, nfs = site.made_by(nfs_mounts.KNOB)[stack.name], site.made_by(exports.KNOB), stack.place.nfs
    mount, wanted = devices.mount_of(point), mounting.asked(stack.place)
    server: Json = {"version": nfs.version, "server": nfs.server, "on": nfs.on}
    if served is not None and nfs.on is not None:
        export = str(machine.real_path(site.made_by(mounts.KNOB)[nfs.on]))
        server |= nfsd.in_force(Path(served.files), export) | {"page_cache": site.settings.environment.nfsd.page_cache}
    differ = mounting.differences(wanted, mount.options)
    return {
        "folder": None,
        "file_system": mount.fs,
        "nfs": server,
        "mount": mount.options,
        "mount_given": [name if value is True else f"{name}={value}" for name, value in wanted.items()],
        "differs": {name: {"asked": asked, "in_force": found} for name, (asked, found) in differ.items()},
        "read_ahead_kib": devices.describe(devices.devices_of(point)[0]).get("read_ahead_kib"),
        "devices": [],
    }


def _every(layout: Json) -> Iterator[tuple[str, Json]]:
    """Each place by its name, and what each mount of NFS is of."""
    for name, place in layout["places"].items():
        yield name, place
        if (below := place.get("exported")) is not None:
            yield below["name"], below


def members_of(layout: Json) -> list[str]:
    """The devices below arrays and mapped devices, of which the kernel counts requests apart from those above."""
    stacked = [place for _, place in _every(layout) if place.get("raid") or place.get("volume") or place.get("mapper")]
    return list(dict.fromkeys(device["name"] for place in stacked for device in place["devices"]))


def _chunk_bytes(array: str) -> int | None:
    """As the kernel has it; a mirror has none."""
    return kernel_files.read_int(machine.HERE.queue(array).parent / "md/chunk_size") or None


def _bitmaps(device: str, chunk_bytes: int | None, members: int) -> list[int] | None:
    """On which member of a stripe how many bitmaps of blocks lie: what the file system's stride is for."""
    if chunk_bytes is None or not machine.HERE.has_program("dumpe2fs"):
        return None
    told = machine.HERE.call("dumpe2fs", device)
    size = re.search(r"^Block size: +(\d+)", told, re.MULTILINE)
    if size is None:
        return None
    blocks = {int(block) for block in re.findall(r"Block bitmap at (\d+)", told)}
    on = [block * int(size[1]) // chunk_bytes % members for block in blocks]
    return [on.count(member) for member in range(members)]


def _members(stack: Stack, site: Site) -> list[str]:
    return {**site.made_by(users_devices.KNOB), **site.made_by(loops.KNOB)}[stack.name]


def _device(path: str, stack: Stack) -> Json:
    block = machine.HERE.block(path)
    name = Path(path).name if block is None else block.name
    found: Json = devices.describe(devices.Device(name, machine.HERE.queue(path) / "read_ahead_kb", decides=True))
    found["size_bytes"] = None if block is None else block.size_bytes
    if stack.images:
        on: Mapping[str, Any] = _of_a_folder(stack.images[0].parent)
        found["image"] = {
            "blocks": stack.place.image_blocks,
            "file_system": on["file_system"],
            "devices": [one["name"] for one in on["devices"]],
        }
    return found


def caveats_of(layout: Json) -> Iterator[str]:
    """What the reader of the trial has to know of where its files lie."""
    names: dict[str, list[str]] = {}
    for name, place in _every(layout):
        yield from _of_a_mount(name, place)
        for device in [*place["devices"], *place.get("log", {}).get("devices", [])]:
            for below in device.get("image", {}).get("devices", []):
                names.setdefault(below, []).append(name)
    for below, images in names.items():
        if len(images) > 1:
            yield (
                f"the images of {' and '.join(dict.fromkeys(images))} lie on one device ({below}): what is apart "
                "in the layout shares its speed: this shows how requests are divided, and not what two disks gain"
            )


def _of_a_mount(name: str, place: Json) -> Iterator[str]:
    """What is otherwise than asked, or promises less than it seems to."""
    for option, one in (place.get("differs") or {}).items():
        yield f"{name}: mounted with {option} {one['in_force']}, and {one['asked']} was asked for"
    if "async" in (place.get("nfs") or {}).get("export", []):
        yield (
            f"{name}: exported with async: the server acknowledges what is in its memory only, and a crash of it loses "
            "what the client was told is safe"
        )
