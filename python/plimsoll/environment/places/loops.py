"""Loop devices over images, with direct I/O.

The constraint: the kernel gives whichever is free, and a kill may come before we know which. So they are found again by
their image.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from plimsoll.environment.devices import describe, devices_of, existing
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import commands, images, machine
from plimsoll.environment.places.layer import Devices, lacking, stacks_with_images

_TRIES = 7


class Loops(Knob[Devices]):
    name = "place_loops"
    keys = ()  # what asks for images asks for them
    after = ("place_images",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        for stack in stacks_with_images(site):
            yield from lacking(stack, "image", "losetup")
            if not machine.HERE.has_loops():
                yield f"{stack.key}.image: no loop devices here (/dev/loop-control); `modprobe loop`, or use devices"

    def arrange(self, site: Site, journal: Journal) -> Devices:
        made = site.made_by(images.KNOB)
        if made:
            machine.HERE.load("loop")
        return {name: [_attach(image, journal) for image in files] for name, files in made.items()}


def _attach(image: Path, journal: Journal) -> str:
    said: list[str] = []
    argv = commands.loop(image, _sector_bytes(image))
    journal.change("place_loop", lambda: said.append(machine.HERE.call(*argv)), image=str(image))
    loop = said[0]
    if not machine.HERE.is_direct(loop):
        raise Fault(
            f"{loop} over {image}: the kernel does not do direct I/O there",
            remedy="name a folder on ext4, XFS or a disk of the same block size in images_in",
        )
    return loop


def _sector_bytes(image: Path) -> int:
    """Direct I/O needs sectors no smaller than those of the disk below."""
    found = [describe(device).get("logical_block_bytes") for device in devices_of(existing(image))]
    return max((size for size in found if isinstance(size, int)), default=512)


KNOB = Loops()


@puts_back("place_loop", survives_reboot=False)
def _put_back(args: Args) -> str:
    image = Path(args["image"])
    detached: list[str] = []
    for attempt in range(_TRIES):
        loops = machine.HERE.loops_of(image)
        if not loops:
            return f"{', '.join(dict.fromkeys(detached)) or 'no loop device'} of {image} detached"
        for loop in loops:
            machine.HERE.call("losetup", "--detach", loop)
            detached.append(loop)
            step("after detach")
        # Whoever has it open a moment longer keeps it: it goes when he closes it.
        time.sleep(0.01 * 2**attempt if machine.HERE.loops_of(image) else 0)
    loop = detached[-1]
    raise Fault(
        f"{loop} over {image}: is still in use", remedy=f"`fuser -v {loop}` names by whom; then `plimsoll undo`"
    )
