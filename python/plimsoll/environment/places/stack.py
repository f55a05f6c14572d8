"""The stack of one place in one trial: what its layers are called, and where they lie. Nothing is made here."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.experiment.places import used_places

if TYPE_CHECKING:
    from plimsoll.environment.knob import Site
    from plimsoll.experiment.places import Place

PREFIX = "plimsoll-"
IMAGE = ".img"
MOUNTED = ".at-"


@dataclass(frozen=True)
class Stack:
    """`trial` is unique on the machine, and so is every name here."""

    name: str  # of the place
    place: Place
    trial: str
    work: Path  # folder of everything that is made for trials

    @property
    def key(self) -> str:
        """The table that asks for it."""
        return f"environment.places.{self.name}"

    @property
    def images(self) -> list[Path]:
        """The files that its loop devices show."""
        if self.place.image is None:
            return []
        # Without symbolic links: one on the way may lead elsewhere when the images are to be removed.
        folder = self.work if self.place.images_in is None else Path(self.place.images_in).resolve()
        return [folder / f"{PREFIX}{self.trial}-{self.name}-{number}{IMAGE}" for number in range(self.place.images)]

    @property
    def image_bytes(self) -> int:
        """Of each image, in whole pages of the file systems that they may lie on."""
        return -(-int(self.place.image or 0) // 4096) * 4096

    @property
    def array(self) -> str:
        """The array's device."""
        return f"/dev/md/{PREFIX}{self.trial}-{self.name}"

    @property
    def mapped(self) -> str:
        """The name of the device-mapper device, which lies in /dev/mapper."""
        return f"{PREFIX}{self.trial}-{self.name}"

    @property
    def point(self) -> Path:
        """Where it is mounted."""
        return mount_point(self.work, self.trial, self.name)

    def uuid(self, layer: str) -> str:
        """By which a layer is known again, by whoever puts it back."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"plimsoll:{self.work}:{self.trial}:{self.name}:{layer}"))


def mount_point(work: Path, trial: str, place: str) -> Path:
    """Where the place is mounted during the trial."""
    return work / f"{trial}{MOUNTED}{place}"


def stacks_of(site: Site) -> list[Stack]:
    """Those that have to be made on devices for the trial, each after the one that holds its log."""
    return [stack for stack in _made(site) if not stack.place.nfs.is_given]


def nfs_stacks_of(site: Site) -> list[Stack]:
    """Those that are mounted by NFS."""
    return [stack for stack in _made(site) if stack.place.nfs.is_given]


def _made(site: Site) -> list[Stack]:
    places = site.settings.environment.places
    used = used_places(places, site.settings.target.files.given.values())
    return [Stack(name, places[name], site.name, site.state.work) for name in used if places[name].is_made]
