"""What there is on a block device of the user's: whatever is found here is a reason not to touch it."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.environment.fault import Fault
from plimsoll.environment.places.machine import Block, Machine

# Mount options by which a file system keeps a part of itself on a second device.
_OF_OTHER_DEVICES = ("logdev", "rtdev", "device", "journal_path")


def found_on(path: str, machine: Machine) -> Iterator[str]:
    """In words, such as "has an ext4 file system"; nothing where it may be formatted. Changes nothing."""
    block = machine.block(path)
    if block is None:
        yield "is no block device"
        return
    if block.read_only:
        yield "is read-only"
    used = [*_use(block, path, machine)]
    yield from used
    try:
        found = machine.signatures(path)
        is_blank = bool(found) or machine.ends_are_zero(path)
    except (Fault, OSError) as error:
        # Nobody knows what is there: that is no leave to write over it.
        yield f"cannot be examined ({error.what if isinstance(error, Fault) else error.strerror})"
        return
    if "PTTYPE" in found:
        yield f"has a partition table ({found['PTTYPE']})"
    elif block.parts:
        yield f"has partitions ({', '.join(block.parts)})"
    if "TYPE" in found:
        yield f"holds {_named(found)}"
    if not is_blank:
        yield "holds data that blkid does not know (its first or last MiB is not zero)"
    if not used:
        if opened := machine.open_by(path):
            yield f"is open in {', '.join(opened[:3])}"
        elif machine.is_claimed(path):
            yield "is in use by the kernel"


def _use(block: Block, path: str, machine: Machine) -> Iterator[str]:
    names = {f"/dev/{name}" for name in (block.name, *block.parts)} | {path}
    below = [machine.block(f"/dev/{name}") for name in block.parts]
    numbers = {block.number} | {part.number for part in below if part is not None}
    for mount in machine.mounts():
        if mount.number in numbers or mount.source in names:
            yield f"is mounted at {mount.point} ({mount.fs})"
        for option in mount.options:
            key, _, named = option.partition("=")
            if key in _OF_OTHER_DEVICES and named in names:
                yield f"is mounted with what is at {mount.point} ({mount.fs}, {option})"
    if block.holders:
        yield f"is a member of {', '.join(block.holders)}"
    for part in below:
        if part is not None and part.holders:
            yield f"has {part.name}, a member of {', '.join(part.holders)}"
    for area in machine.swaps():
        if area in names:
            yield f"is swap that is on ({area})"


def _named(found: dict[str, str]) -> str:
    label = f" {found['LABEL']!r}" if found.get("LABEL") else ""
    kinds = {"raid": "a member of", "filesystem": "a file system:", "crypto": "encrypted data:"}
    return f"{kinds.get(found.get('USAGE', ''), 'something:')} {found['TYPE']}{label}"
