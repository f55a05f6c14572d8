"""One place of a trial as layers, from the parts that lie on it down to the disk, each with what decides it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, replace
from typing import Any, Final

Json = dict[str, Any]
ROWS: Final = ("part", "nfs", "file system", "mapper", "volume", "raid", "device", "below")
LETTERS, BOLD_SHARE = 36, 0.85  # that a line has room for in a column, and of a title
_UNITS: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


@dataclass(frozen=True)
class Layer:
    """`place` and `width` are shares of the column: several devices stand side by side."""

    row: str
    title: str
    lines: list[str] = field(default_factory=list)
    place: float = 0
    width: float = 1


def layers_of(name: str, document: Json) -> list[Layer]:
    """Of a place, from the top, no line longer than its box is wide."""
    return [_wrapped(layer) for layer in _layers(name, document)]


def _wrapped(layer: Layer) -> Layer:
    room = int(LETTERS * layer.width)
    title, *rest = textwrap.wrap(layer.title, int(room * BOLD_SHARE)) or [""]
    return replace(
        layer, title=title, lines=[*rest, *(part for line in layer.lines for part in textwrap.wrap(line, room))]
    )


def _layers(name: str, document: Json) -> list[Layer]:
    place: Json = document["places"].get(name) or {}
    parts = [part for part, on in document["parts"].items() if on == name]
    holds = [f"journal of {other}" for other, on in document["logs"].items() if on == name]
    if holds:
        log = next(other["log"] for other in document["places"].values() if other.get("log", {}).get("place") == name)
        return [Layer("part", name, holds), *_devices(log["devices"])]
    if place.get("nfs"):
        exported = place.get("exported") or {}
        below = {**document, "places": {**document["places"], exported["name"]: exported}} if exported else document
        stack = _layers(exported["name"], below)[1:] if exported else []
        return [Layer("part", name, [_part(part) for part in parts]), _nfs(place), *stack]
    top = [Layer("part", name, [_part(part) for part in parts]), _file_system(place)]
    if place.get("mapper"):
        top.append(_mapper(place["mapper"]))
    if place.get("volume"):
        top.append(_volume(place["volume"]))
    if place.get("raid"):
        top.append(_raid(place["raid"]))
    if place.get("folder") is not None:
        return [*top, *_beside(_disks(place))]
    return [*top, *_devices(place["devices"])]


def _nfs(place: Json) -> Layer:
    """Whom it is mounted from, the options that were asked for, and what of them is otherwise."""
    nfs = place["nfs"]
    lines = [str(nfs["server"])] if nfs.get("server") else []
    given = [one for one in place.get("mount_given") or [] if not one.startswith("vers=")]
    lines += [", ".join(given)] if given else []
    lines += [f"{name} in force: {one['in_force']}" for name, one in (place.get("differs") or {}).items()]
    if nfs.get("on"):
        how = "async (unsafe)" if "async" in (nfs.get("export") or []) else "sync"
        lines.append(f"exported {how}, {nfs.get('threads')} threads")
    return Layer("nfs", f"NFS {nfs['version']}", lines)


def _part(part: str) -> str:
    """A table's own tablespace is called by the table."""
    return part.removeprefix("tablespaces.")


def _file_system(place: Json) -> Layer:
    lines = []
    if place.get("folder") is not None:
        lines.append(place["folder"])
        decisive = [one for one in place["mount"] if one not in ("rw", "relatime")]
        lines += [", ".join(decisive)] if decisive else []
    else:
        lines += [", ".join(place["mount_given"])] if place.get("mount_given") else []
        made = {key: value for key, value in (place.get("mkfs") or {}).items() if value not in (None, [], False)}
        lines += [", ".join(f"{key} {value}".replace("_", " ") for key, value in made.items())] if made else []
        if place.get("bitmaps_by_member"):
            lines.append(f"bitmaps by member: {', '.join(str(count) for count in place['bitmaps_by_member'])}")
        if place.get("read_ahead_kib") is not None:
            lines.append(f"read-ahead {place['read_ahead_kib']} KiB")
    return Layer("file system", place["file_system"], lines)


def _raid(raid: Json) -> Layer:
    chunk = [] if raid.get("chunk") is None else [f"chunk {size(raid['chunk'])}"]
    bitmap = [] if raid.get("bitmap") in (None, "none") else [f"{raid['bitmap']} bitmap"]
    return Layer("raid", f"RAID-{raid['level']}", [*chunk, *bitmap])


def _volume(volume: Json) -> Layer:
    return Layer(
        "volume", f"LVM, {volume['kind']}", [f"stripe {size(volume['stripe'])}"] if volume.get("stripe") else []
    )


def _mapper(mapper: Json) -> Layer:
    lines = {
        "delay": [f"reads {mapper.get('read_delay_ms')} ms, writes {mapper.get('write_delay_ms')} ms"],
        "flakey": [
            f"up {mapper.get('up_seconds')} s, down {mapper.get('down_seconds')} s",
            str(mapper.get("while_down")),
        ],
    }
    return Layer("mapper", f"dm-{mapper['kind']}", lines.get(mapper["kind"], []))


def _devices(devices: list[Json]) -> list[Layer]:
    """Those of a place that was made, and what their images lie on."""
    found = []
    below: dict[str, None] = {}
    for number, device in enumerate(devices):
        image = device.get("image")
        title = (
            f"image {size(device.get('size_bytes'))}" if image else f"{device['name']} {size(device.get('size_bytes'))}"
        )
        lines = ["loop, direct I/O" if device.get("loop_direct_io") else "loop"] if image else []
        found.append(Layer("device", title, [*lines, *_queue(device)], number / len(devices), _share(len(devices))))
        if image:
            below[f"{image['file_system']} on {', '.join(image['devices'])}"] = None
    return [*found, *_beside(list(below))]


def _beside(titles: list[str]) -> list[Layer]:
    return [Layer("below", title, [], n / len(titles), _share(len(titles))) for n, title in enumerate(titles)]


def _disks(place: Json) -> list[str]:
    """Of a folder; a file system of the network has a number for a device, and is known by what it is mounted from."""
    names = [str(device["name"]) for device in place["devices"] if ":" not in str(device["name"])]
    return names or [str(place.get("source", "no device"))]


def _queue(device: Json) -> list[str]:
    queue = [f"scheduler {device['scheduler']}"] if device.get("scheduler") else []
    queue += [f"{device['nr_requests']} requests"] if device.get("nr_requests") else []
    cache = [str(device["write_cache"])] if device.get("write_cache") else []
    return [*([", ".join(queue)] if queue else []), *cache]


def size(value: Any) -> str:
    """Bytes in words; what is not known, or a text, as it is."""
    if not isinstance(value, int):
        return "" if value is None else str(value)
    for unit, factor in _UNITS:
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value} B"


def _share(count: int) -> float:
    """Of the column, for one of so many side by side."""
    return 1 if count == 1 else 0.95 / count
