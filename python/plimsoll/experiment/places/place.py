"""A place: a folder on a stated stack of device, RAID, device-mapper target, file system and mount.

The fact that constrains it: a wrong layer destroys what lies under it. So what cannot be meant is refused here, without
a machine, and a block device of the user's has to be named twice before anything may be made on it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator, model_validator

from plimsoll.experiment import size
from plimsoll.experiment.places import kinds
from plimsoll.experiment.places.layers import MEMBERS_MIN, Mapper, Mkfs, Raid, Volume
from plimsoll.experiment.places.nfs import Nfs, check_mount
from plimsoll.experiment.strict import FreeKeys, NamedTables, Scalar, Size, Strict

AS_FOUND: Final = "as found"
NO_FILE_SYSTEM: Final = "none"
MOUNT_OPTION = FreeKeys(
    r"[a-z][a-z0-9_-]*", "the name of a mount option", "lower-case names such as noatime, data, commit"
)
PLACES = NamedTables(r"[a-z][a-z0-9-]{0,19}", "the name of a place", "lower-case letters, digits and dashes")


class Place(Strict):
    """Where parts of a target can lie: exactly one of folder, image, devices and nfs, and what is laid over that."""

    folder: str | None = Field(None, description="one that exists: nothing is made or mounted")
    image: Size | None = Field(None, description="an image of this size on a loop device with direct I/O")
    images: int = Field(1, ge=1, le=32, description="how many such images, for an array")
    images_in: str | None = Field(None, description="the folder that images lie in; by default the state folder")
    image_blocks: Literal["written", "reserved"] = Field(
        "written", description="written: with zeros beforehand, so that no trial pays for a block's first write"
    )
    devices: list[str] = Field(default_factory=list, max_length=32, description="block devices such as /dev/sdb")
    erase: list[str] = Field(
        default_factory=list, max_length=32, description="the devices once more: whatever is made, is made on them"
    )
    nfs: Nfs = Field(default_factory=Nfs, description="what is mounted by NFS, and from whom")
    raid: Raid = Field(default_factory=Raid)
    volume: Volume = Field(default_factory=Volume)
    mapper: Mapper = Field(default_factory=Mapper)
    file_system: str = Field(
        "ext4",
        pattern=r"^[a-z][a-z0-9_]*$",
        description='ext2, ext3, ext4, xfs, btrfs, or another that the machine has; "none": for the log of another',
    )
    mkfs: Mkfs = Field(default_factory=Mkfs)
    log: str | None = Field(None, description="ext3, ext4, xfs: the place whose device holds the journal")
    mount: Annotated[dict[str, Scalar], MOUNT_OPTION] = Field(
        default_factory=dict, description='options; true: by its name alone, such as noatime = true, data = "writeback"'
    )
    scheduler: str = Field(AS_FOUND, pattern=r"^[a-z][a-z -]*$", description="of the queues of its devices")
    nr_requests: Annotated[int, Field(ge=4, le=10_000)] | Literal["as found"] = Field(
        AS_FOUND, description="requests that their queues hold"
    )
    read_ahead: Size | Literal["as found"] = Field(AS_FOUND, description="of the device that is mounted")

    @property
    def members(self) -> int:
        """How many devices are under it."""
        return len(self.devices) if self.devices else self.images

    @property
    def is_made(self) -> bool:
        """Whether there is something to make and to mount."""
        return self.folder is None

    @property
    def below(self) -> list[str]:
        """The places that it cannot be without: of its log, and of what it mounts by NFS."""
        return [name for name in (self.log, self.nfs.on) if name is not None]

    @field_validator("folder", "images_in")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith("/") or ".." in value.split("/")):
            raise ValueError(f"{value!r} is not an absolute path; allowed: a folder such as /mnt/disk")
        return value

    @field_validator("devices", "erase")
    @classmethod
    def _device_names(cls, value: list[str]) -> list[str]:
        for one in value:
            if not one.startswith("/dev/") or ".." in one.split("/") or value.count(one) > 1:
                raise ValueError(f"{one!r}; allowed: each block device once, by its path, such as /dev/sdb")
        return value

    @field_validator("mount")
    @classmethod
    def _one_option_each(cls, value: dict[str, Scalar]) -> dict[str, Scalar]:
        for name, given in value.items():
            if isinstance(given, str) and not (size.is_size(given) or (given and given.isascii() and given.isprintable()
                                               and not set(given) & set(", \\\"'"))):  # fmt: skip
                raise ValueError(f"{name} = {given!r}; allowed: one word without commas, a size, or true")
        if value.get("ro"):
            raise ValueError("ro: nothing could be laid on it; allowed: every other option")
        return value

    @model_validator(mode="after")
    def _one_origin(self) -> Place:
        given = [key for key in ("folder", "image", "devices") if getattr(self, key) not in (None, [])]
        given += ["nfs"] if self.nfs.is_given else []
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ValueError(
                f"a place is a folder, an image, devices or nfs, and has {found}; allowed: exactly one of these"
            )
        if self.image is None:
            self._refuse("of an image alone", "images", "images_in", "image_blocks")
        if not self.is_made:
            others = [key for key in Place.model_fields if key != "folder"]
            self._refuse("of a place that is made, and a folder is there already", *others)
        if self.nfs.is_given:
            others = [key for key in Place.model_fields if key not in ("nfs", "mount", "read_ahead")]
            self._refuse("of devices, and this place is mounted by NFS", *others)
        if sorted(self.devices) != sorted(self.erase):
            raise ValueError(
                f"devices are {', '.join(self.devices) or 'none'} and erase names {', '.join(self.erase) or 'none'}: "
                "everything on a device is lost, so it is named twice; allowed: erase = the same devices"
            )
        return self

    @model_validator(mode="after")
    def _one_device_at_the_top(self) -> Place:
        if self.raid.level != "none" and self.members < MEMBERS_MIN[self.raid.level]:
            raise ValueError(
                f"raid.level = {self.raid.level} over {self.members} devices; allowed: at least "
                f"{MEMBERS_MIN[self.raid.level]} (images, or devices)"
            )
        if self.volume.kind == "striped" and (self.members < 2 or self.raid.level != "none"):
            raise ValueError(
                'volume.kind = "striped" over one device; allowed: several (images, or devices) without a raid.level, '
                'or "linear"'
            )
        above = self.volume.kind != "none" or self.mapper.kind == "linear"
        if self.members > 1 and self.raid.level == "none" and not above:
            raise ValueError(
                f"{self.members} devices and nothing that makes one of them; allowed: a raid.level, a volume.kind, or "
                'mapper.kind = "linear"'
            )
        return self

    @model_validator(mode="after")
    def _fits_its_file_system(self) -> Place:
        if self.nfs.is_given:
            check_mount(self.nfs, self.mount)
        elif self.is_made:
            kinds.check(self.file_system, self.mkfs, log=self.log, devices=self.devices, mount=self.mount)
        return self

    def _refuse(self, why: str, *keys: str) -> None:
        given = [key for key in keys if getattr(self, key) != _defaults()[key]]
        if given:
            raise ValueError(f"{', '.join(given)}: {why}; allowed: leave it out")


@functools.cache
def _defaults() -> Mapping[str, object]:
    """Of every key; each place of each treatment is held against them."""
    return {key: field.get_default(call_default_factory=True) for key, field in Place.model_fields.items()}
