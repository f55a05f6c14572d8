"""Images: files that stand for disks, on the state folder's file system or where the user says.

The constraint: a block of a file that was never written costs its file system metadata at the first write, which every
trial would pay anew. So images are written with zeros, around the page cache.
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.environment.devices import IN_MEMORY, existing, mount_of
from plimsoll.environment.fault import Fault
from plimsoll.environment.folders.others import others_may_change, refuse_others, remedy
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places.layer import folder_of_images, stacks_with_images
from plimsoll.environment.places.stack import IMAGE, PREFIX, Stack

_PIECE = 4 << 20
_KEYS = ("image", "images", "images_in", "image_blocks")


class Images(Knob[Mapping[str, list[Path]]]):
    name = "place_images"
    keys = tuple(f"environment.places.*.{key}" for key in _KEYS)
    after = ("place_devices",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        wanted: dict[Path, int] = {}
        for stack in stacks_with_images(site):
            folder = folder_of_images(stack)
            if stack.place.images_in is not None and not folder.is_dir():
                yield f"{stack.key}.images_in = {folder}: no such folder; make it, or mount its file system there"
                continue
            if stack.place.images_in is not None and (why := others_may_change(folder)):
                yield f"{stack.key}.images_in = {folder}: {why}; {remedy()}"
            if (fs := mount_of(folder).fs) in IN_MEMORY:
                otherwise = "name a folder on a disk in images_in, or set PLIMSOLL_STATE to one"
                yield f"{stack.key}.image: {folder} is {fs}, which is memory and no disk; {otherwise}"
            wanted[folder] = wanted.get(folder, 0) + stack.image_bytes * stack.place.images
        for folder, needed in wanted.items():
            if needed > (free := shutil.disk_usage(existing(folder)).free):
                yield (
                    f"environment.places: images of {needed} bytes are needed in {folder}, {free} are free; choose "
                    "smaller ones, or name another folder in images_in"
                )

    def arrange(self, site: Site, journal: Journal) -> Mapping[str, list[Path]]:
        return {stack.name: _make_all(stack, journal) for stack in stacks_with_images(site)}


def _make_all(stack: Stack, journal: Journal) -> list[Path]:
    for path in stack.images:
        if stack.place.images_in is not None:
            refuse_others(path.parent, f"{stack.key}.images_in")
        if path.exists():
            raise Fault(f"{path}: exists already", remedy="run `plimsoll undo`, or remove it if you know what it is")

        def act(path: Path = path) -> None:
            try:
                _write(path, stack.image_bytes, zeros=stack.place.image_blocks == "written")
            except OSError as error:
                raise Fault(f"{path}: {error.strerror}", remedy="free disk space, or use smaller images") from error

        journal.change("place_image", act, path=str(path))
    return stack.images


def _write(path: Path, size: int, *, zeros: bool) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, size)
        step("after image")
        if zeros:
            _write_zeros(path, handle, size)
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_zeros(path: Path, plain: int, size: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:  # no direct I/O there, which the loop device will say
        handle = os.dup(plain)
    try:
        with mmap.mmap(-1, _PIECE) as buffer, memoryview(buffer) as view:
            for start in range(0, size, _PIECE):
                os.pwrite(handle, view[: min(_PIECE, size - start)], start)
    finally:
        os.close(handle)


KNOB = Images()


@puts_back("place_image", survives_reboot=True)
def _put_back(args: Args) -> str:
    path = Path(args["path"])
    if not path.is_absolute() or ".." in path.parts or not path.name.startswith(PREFIX) or path.suffix != IMAGE:
        raise Fault(f"{path}: not an image named {PREFIX}...{IMAGE}", remedy="it is left: look at it yourself")
    path.unlink(missing_ok=True)
    return f"{path} removed"
