"""What mounts a place by NFS, as functions of the place alone: the arguments, and what of the options was asked.

The constraint: mount.nfs is of a package that starts daemons. The kernel takes the same options from mount(2), where
addresses are numbers and nothing is negotiated, so each of them is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.experiment.places import Place


@dataclass(frozen=True)
class Server:
    """Whom a mount reaches. `port`, `mount_port`: None where the server's own rpcbind is asked, or the standard's."""

    address: str
    own_address: str  # of ours, to which it calls back (version 4.0)
    path: str
    port: int | None = None
    mount_port: int | None = None

    @property
    def source(self) -> str:
        """As /proc/self/mountinfo has it."""
        return f"{f'[{self.address}]' if ':' in self.address else self.address}:{self.path}"


def type_of(place: Place) -> str:
    """Of the file system, as the kernel calls it."""
    return "nfs" if place.nfs.version == "3" else "nfs4"


def asked(place: Place) -> dict[str, str | bool]:
    """The options of the file, and what the version says."""
    given = {name: value if isinstance(value, bool) else str(value) for name, value in place.mount.items()}
    return {"vers": place.nfs.version, **{name: value for name, value in given.items() if value is not False}}


def options(place: Place, server: Server) -> list[str]:
    """All that the kernel is told."""
    told: dict[str, str | bool] = {"proto": "tcp6" if ":" in server.address else "tcp", "addr": server.address}
    if server.port is not None:
        told["port"] = str(server.port)
    if place.nfs.version == "3":
        # Locks of version 3 are a protocol of their own, with daemons: they are this client's own instead.
        told |= {"mountaddr": server.address, "mountproto": told["proto"], "mountvers": "3", "nolock": True}
        if server.mount_port is not None:
            told["mountport"] = str(server.mount_port)
    else:
        told["clientaddr"] = server.own_address
    told |= asked(place)
    return [name if value is True else f"{name}={value}" for name, value in told.items()]


def command(place: Place, server: Server, point: Path) -> list[str]:
    """What mounts it; -i: whatever is installed, no mount.nfs is called."""
    return ["mount", "-t", type_of(place), "-i", "-o", ",".join(options(place, server)), server.source, str(point)]


_DEFAULT_SECONDS: Mapping[str, str] = {"acregmin": "3", "acregmax": "60", "acdirmin": "30", "acdirmax": "60"}
# An option that is in force where its opposite is not told.
_OPPOSITE: Mapping[str, str] = {
    "ac": "noac", "cto": "nocto", "sharecache": "nosharecache", "async": "sync", "resvport": "noresvport",
    "rdirplus": "nordirplus", "acl": "noacl", "lock": "nolock", "nomigration": "migration",
}  # fmt: skip
_WITH_A_DEFAULT: Mapping[str, str] = {"nconnect": "1", "max_connect": "1", "lookupcache": "all", "local_lock": "none"}


def differences(wanted: Mapping[str, str | bool], found: list[str]) -> dict[str, tuple[str, str]]:
    """What is in force otherwise than asked: by option what was asked, and what /proc/self/mountinfo tells."""
    pairs = dict(one.partition("=")[::2] for one in found)
    differ = {}
    for name, value in _expanded(wanted).items():
        if value is True:
            opposite = _OPPOSITE.get(name)
            if (name in pairs) if opposite is None else (opposite not in pairs):
                continue
            differ[name] = ("on", "not told" if opposite is None else opposite)
        else:
            told = pairs.get(name, _DEFAULT_SECONDS.get(name, _WITH_A_DEFAULT.get(name)))
            if told != value:
                differ[name] = (str(value), "not told" if told is None else told)
    return differ


def _expanded(wanted: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """actimeo and noac as the times and the switch that they are."""
    expanded = dict(wanted)
    if (seconds := expanded.pop("actimeo", None)) is not None:
        expanded |= dict.fromkeys(_DEFAULT_SECONDS, seconds)
    if "noac" in expanded:
        expanded |= {"sync": True}
    return expanded
