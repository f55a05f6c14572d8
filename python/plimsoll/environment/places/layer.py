"""What the knobs of a place's layers share: each takes what the one below made, and gives what the next stands on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.environment.knob import Site
from plimsoll.environment.places import machine
from plimsoll.environment.places.stack import Stack, stacks_of

Devices = Mapping[str, list[str]]  # by the place's name; one or several, of which the next layer makes one


def lacking(stack: Stack, key: str, *programs: str) -> Iterator[str]:
    """The obstacle that a program is not installed."""
    for name in programs:
        if not machine.HERE.has_program(name):
            yield f"{stack.key}.{key}: {name} is not installed; install {machine.package_of(name)}"


def not_in_this_kernel(stack: Stack, key: str, what: str, option: str) -> str:
    """The obstacle that the kernel has no such layer."""
    release = machine.HERE.release()
    return (
        f"{stack.key}.{key}: this kernel ({release}) has no {what}; leave it out, or use a kernel with {option} (on "
        "such a machine the same file runs)"
    )


def size_of(stack: Stack) -> int | None:
    """The bytes of the device that the file system will have, about; None where a device is not there."""
    if stack.place.image is not None:
        each = [stack.image_bytes] * stack.place.images
    else:
        blocks = [machine.HERE.block(path) for path in stack.place.devices]
        if any(block is None for block in blocks):
            return None
        each = [block.size_bytes for block in blocks if block is not None]
    level, count = stack.place.raid.level, len(each)
    if stack.place.volume.kind != "none" and level == "none":
        each = [max(0, one - (8 << 20)) for one in each]  # extents of 4 MiB, and what LVM keeps for itself
        return count * min(each) if stack.place.volume.kind == "striped" else sum(each)
    if level == "none":
        return sum(each)
    data = {0: count, 1: 1, 10: max(1, count // 2), 5: count - 1}[level]
    return data * max(0, min(each) - (16 << 20))  # what an array keeps for itself


def stacks_with_images(site: Site) -> list[Stack]:
    """Those on images."""
    return [stack for stack in stacks_of(site) if stack.place.image is not None]


def folder_of_images(stack: Stack) -> Path:
    """Where they lie."""
    return stack.images[0].parent
