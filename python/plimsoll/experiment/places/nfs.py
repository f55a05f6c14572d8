"""A place on NFS: what serves it, by which version, and the mount options that can be meant.

The fact that constrains it: whom a mount reaches follows from `on` or `server` and from the version alone. An option
that names another address, port or transport would go around that, so there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from plimsoll.experiment import size
from plimsoll.experiment.strict import Scalar, Size, Strict

VERSIONS: Final = ("3", "4.0", "4.1", "4.2")
_SERVER: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):(/[^\s,\\\"']*)")
# By which a mount would reach somebody else, or be another kind of mount than the one that is told.
_DECIDED: Final = {
    **dict.fromkeys(("vers", "nfsvers", "minorversion", "v2", "v3", "v4", "v4.0", "v4.1", "v4.2"), "nfs.version"),
    **dict.fromkeys(("addr", "mountaddr", "mounthost", "clientaddr"), "nfs.on or nfs.server"),
    **dict.fromkeys(("port", "mountport", "mountproto", "mountvers"), "nfs.on or nfs.server"),
    **dict.fromkeys(("bg", "fg", "retry", "mountprog", "nfsprog", "sloppy", "trunkdiscovery"), "leave it out"),
}
_OF_VERSION_3: Final = ("lock", "nolock", "local_lock", "acl", "noacl", "rdirplus", "nordirplus", "fsc")
_OF_VERSION_4: Final = ("migration", "nomigration", "max_connect")
_OPPOSED: Final = (
    ("hard", "soft", "softerr"), ("ac", "noac"), ("cto", "nocto"), ("sharecache", "nosharecache"), ("sync", "async"),
    ("lock", "nolock"),
)  # fmt: skip
_AC: Final = ("acregmin", "acregmax", "acdirmin", "acdirmax")


def _as_text(value: Any) -> Any:
    """4.2 is a number in TOML, and a name here."""
    return str(value) if type(value) in (int, float) else value


class Export(Strict):
    """What this kernel's server is told of what it serves (exports(5))."""

    sync: bool = Field(
        True, description="false: async, the server acknowledges what it has in memory only, and loses it with a crash"
    )
    wdelay: bool = Field(True, description="the server waits a moment whether a write is followed by its neighbour")

    @model_validator(mode="after")
    def _waits_for_a_disk(self) -> Export:
        if not self.sync and not self.wdelay:
            raise ValueError(
                "wdelay = false: a server that does not wait for its disk (sync = false) delays nothing anyway; "
                "allowed: one of the two"
            )
        return self


class Nfs(Strict):
    """Whose file system is mounted, and by which version of the protocol."""

    on: str | None = Field(
        None, description="the place that this kernel's own server exports, and this kernel mounts over its loopback"
    )
    server: str | None = Field(None, description='an existing server and what it exports, such as "filer:/vol/pg"')
    version: Annotated[Literal["3", "4.0", "4.1", "4.2"], BeforeValidator(_as_text)] = Field(
        "4.2", description="of the protocol"
    )
    export: Export = Field(default_factory=Export, description="with `on`: export options")
    silence_seconds_max: int = Field(
        60, ge=5, le=3600, description="without a reply while calls wait for one; then the trial has failed"
    )

    @property
    def is_given(self) -> bool:
        """Whether the place is one of NFS at all."""
        return self.on is not None or self.server is not None

    @field_validator("server")
    @classmethod
    def _address_and_path(cls, value: str | None) -> str | None:
        if value is not None and (_SERVER.fullmatch(value) is None or ".." in value.split("/")):
            raise ValueError(f'{value!r}; allowed: an address and an absolute path, such as "192.0.2.7:/vol/pg"')
        return value

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Nfs:
        if self.on is not None and self.server is not None:
            raise ValueError("on and server: the one is exported here and the other elsewhere; allowed: one of the two")
        if self.on is None and self.export != Export():
            raise ValueError("export: of what this kernel serves (nfs.on); allowed: leave it out")
        if not self.is_given and self.version != VERSIONS[-1]:
            raise ValueError("version: of a place on NFS; allowed: with nfs.on or nfs.server")
        return self


class Nfsd(Strict):
    """This kernel's NFS server, which all places with `nfs.on` share. Nothing of it is there without such a place."""

    threads: int = Field(8, ge=1, le=256, description="of the server")
    max_block_size: Size | Literal["as found"] = Field(
        "as found", description="the most that one READ or WRITE may have; by default by the machine's memory"
    )
    port: int = Field(2049, ge=1, le=65535, description="on the loopback address, the only one that it listens on")
    page_cache: Literal["cold", "warm"] = Field(
        "cold", description="of the server: state of the data files there before a trial; environment.page_cache has "
        "the client's"
    )  # fmt: skip

    @field_validator("max_block_size")
    @classmethod
    def _whole_kibibytes(cls, value: int | str) -> int | str:
        if value == "as found":
            return value
        found = size.parse(value, memory=1)
        if not 1024 <= found <= 1 << 20 or found % 1024:
            raise ValueError(f"max_block_size = {value!r}; allowed: a multiple of 1 KiB, at most 1 MiB")
        return value


def check_mount(nfs: Nfs, mount: Mapping[str, Scalar]) -> None:
    """Raises ValueError where an option cannot be meant, with what is allowed."""
    given = [name for name, value in mount.items() if value is not False]
    for name in given:
        if name in _DECIDED:
            raise ValueError(f"mount.{name}: decided by other keys or not at all; allowed: {_DECIDED[name]}")
        if name in (_OF_VERSION_4 if nfs.version == "3" else _OF_VERSION_3):
            other = "4" if nfs.version == "3" else "3"
            raise ValueError(f"mount.{name}: of version {other}, and nfs.version is {nfs.version}; leave it out")
    for names in _OPPOSED:
        if len(both := [name for name in names if name in given]) > 1:
            raise ValueError(f"mount.{' and mount.'.join(both)}: opposites; allowed: one of them")
    if "lock" in given:
        raise ValueError("mount.lock: version 3 locks by a protocol and daemons of its own, which are not started; "
                         "allowed: leave it out (nolock: locks are this client's own)")  # fmt: skip
    _check_attributes(mount, given)
    if mount.get("sec", "sys") != "sys":
        raise ValueError(f'mount.sec = {mount["sec"]!r}: nobody here has tickets; allowed: "sys"')
    if nfs.on is not None and mount.get("proto", "tcp") != "tcp":
        raise ValueError(f'mount.proto = {mount["proto"]!r}: the server here listens on TCP alone; allowed: "tcp"')
    for name in ("rsize", "wsize"):
        value = mount.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | str)):
            raise ValueError(f"mount.{name} = {value!r}; allowed: {size.ALLOWED}")


def _check_attributes(mount: Mapping[str, Scalar], given: list[str]) -> None:
    times = [name for name in ("actimeo", *_AC) if name in given]
    if "noac" in given and times:
        raise ValueError(f"mount.noac and mount.{times[0]}: noac is actimeo = 0 and sync; allowed: one of them")
    if "actimeo" in given and len(times) > 1:
        raise ValueError(f"mount.actimeo and mount.{times[1]}: actimeo sets all four; allowed: one or the other")
    for kind in ("reg", "dir"):
        low, high = mount.get(f"ac{kind}min"), mount.get(f"ac{kind}max")
        if isinstance(low, int) and isinstance(high, int) and low > high:
            raise ValueError(f"mount.ac{kind}min = {low} is above ac{kind}max = {high}; allowed: at most that")
