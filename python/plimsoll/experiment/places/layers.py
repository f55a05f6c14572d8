"""The layers between a place's devices and its mount: array, device-mapper target, and how the file system is made."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, field_validator, model_validator

from plimsoll.experiment import size
from plimsoll.experiment.strict import Size, Strict

MEMBERS_MIN: Final = {0: 2, 1: 2, 10: 2, 5: 3}
CHUNK_MIN: Final = 4096
EXT: Final = ("ext2", "ext3", "ext4")


def _refusing_uneven(value: Size | None, key: str, made_by: str) -> Size | None:
    """What goes to one device before the next, as it was given."""
    found = CHUNK_MIN if value is None else size.parse(value, memory=1)
    if found < CHUNK_MIN or found & (found - 1):
        raise ValueError(f"{key} = {value!r}: {made_by} makes none of {found} bytes; allowed: 4 KiB times a power of 2")
    return value


class Raid(Strict):
    """An array over the devices of a place (md)."""

    level: Literal["none", 0, 1, 5, 10] = Field("none", description="of the array; none: no array")
    chunk: Size | None = Field(None, description="how much goes to one member before the next; by default mdadm's own")
    bitmap: Literal["none", "internal"] = Field("none", description="write-intent bitmap, of levels 1, 5 and 10")
    assume_clean: bool = Field(
        False, description="no first resynchronisation; without it mkfs waits until that has ended"
    )

    @model_validator(mode="after")
    def _of_an_array(self) -> Raid:
        if self.level == "none" and self.model_fields_set - {"level"} and self != Raid():
            raise ValueError('chunk, bitmap and assume_clean are of an array, and level is "none"; allowed: a level')
        if self.chunk is not None and self.level == 1:
            raise ValueError("chunk: a mirror (level 1) has none; allowed: leave it out, or level 0, 5 or 10")
        if self.bitmap != "none" and self.level == 0:
            raise ValueError("bitmap: level 0 has nothing to bring up to date again; allowed: level 1, 5 or 10")
        return self

    @field_validator("chunk")
    @classmethod
    def _as_mdadm_makes_it(cls, value: Size | None) -> Size | None:
        return _refusing_uneven(value, "chunk", "mdadm")


class Volume(Strict):
    """LVM over the device or the devices: one logical volume over all of a volume group of its own."""

    kind: Literal["none", "linear", "striped"] = Field(
        "none", description="linear: one device behind the other; striped: over all of them in turn; none: no LVM"
    )
    stripe: Size | None = Field(
        None, description="striped: how much goes to one device before the next; by default LVM's"
    )

    @model_validator(mode="after")
    def _of_stripes(self) -> Volume:
        if self.stripe is not None and self.kind != "striped":
            raise ValueError(f'stripe: of volume kind "striped", and kind is "{self.kind}"; allowed: leave it out')
        return self

    @field_validator("stripe")
    @classmethod
    def _as_lvm_makes_it(cls, value: Size | None) -> Size | None:
        return _refusing_uneven(value, "stripe", "LVM")


class Mapper(Strict):
    """A device-mapper target over the device, or over several one behind the other."""

    kind: Literal["none", "linear", "delay", "flakey"] = Field(
        "none",
        description="linear: the devices one behind the other; delay: each request waits; flakey: fails now and then",
    )
    read_delay_ms: int = Field(0, ge=0, le=60_000, description="delay")
    write_delay_ms: int = Field(0, ge=0, le=60_000, description="delay")
    up_seconds: int = Field(0, ge=0, le=86_400, description="flakey: how long it works")
    down_seconds: int = Field(0, ge=0, le=86_400, description="flakey: how long it fails after that")
    while_down: Literal["error", "drop_writes", "error_writes"] = Field(
        "error", description="flakey: all requests fail; writes vanish; writes fail"
    )

    @model_validator(mode="after")
    def _of_its_kind(self) -> Mapper:
        ours = {"delay": {"read_delay_ms", "write_delay_ms"}, "flakey": {"up_seconds", "down_seconds", "while_down"}}
        default = Mapper.model_construct()
        for kind, keys in ours.items():
            given = sorted(key for key in keys if getattr(self, key) != getattr(default, key))
            if given and self.kind != kind:
                raise ValueError(f'{", ".join(given)}: of mapper kind "{kind}", and kind is "{self.kind}"; allowed: '
                                 f'kind = "{kind}", or leave it out')  # fmt: skip
        if self.kind == "flakey" and not (self.up_seconds and self.down_seconds):
            raise ValueError("flakey needs up_seconds and down_seconds; allowed: both at least 1")
        return self


class Mkfs(Strict):
    """How the file system is made; what is left out is as its mkfs does it."""

    block_size: Size | None = Field(None, description="of a block of the file system")
    stride: int | None = Field(None, ge=1, le=2**20, description="blocks that lie on one member of an array")
    stripe_width: int | None = Field(None, ge=1, le=2**20, description="blocks of a whole stripe: stride x data disks")
    journal: Literal["internal", "none"] = Field("internal", description="none: ext4 without a journal")
    journal_size: Size | None = Field(None, description="ext3, ext4: of the journal; xfs: of the log")
    discard: bool = Field(False, description="tell the device first that nothing on it is needed")
    options: list[str] = Field(
        default_factory=list, max_length=40, description="further arguments, as the file system's mkfs takes them"
    )

    @field_validator("block_size")
    @classmethod
    def _a_block(cls, value: Size | None) -> Size | None:
        if value is None:
            return None
        found = size.parse(value, memory=1)
        if not 512 <= found <= 65536 or found & (found - 1):
            raise ValueError(f"block_size = {value!r}; allowed: a power of two from 512 bytes to 64 KiB")
        return value

    @field_validator("options")
    @classmethod
    def _arguments(cls, value: list[str]) -> list[str]:
        for one in value:
            if not one or "\0" in one or one.startswith("/"):
                raise ValueError(f"options: {one!r} is no option; allowed: arguments such as -O or ^metadata_csum")
        return value

    @model_validator(mode="after")
    def _whole_stripes(self) -> Mkfs:
        if self.stripe_width is not None and (self.stride is None or self.stripe_width % self.stride):
            raise ValueError(
                f"stripe_width = {self.stripe_width} is no multiple of stride = {self.stride}; allowed: stride times "
                "the number of data disks"
            )
        return self
