"""What a run on a guest kernel cannot vary or use, each with its reason; refused before anything is made.

The fact that constrains it: a guest of user-mode-linux has one CPU and the memory that it was booted with, and a disk
that ends with it. What would need another is an answer about the host that a guest cannot give.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.experiment.places import used_places

if TYPE_CHECKING:
    from plimsoll.experiment.places import Place

HOST = 'environment.kernel = "host"'
_IMAGE = "a place with an image, which lies on the guest's disk"
_SPEED = "it shows mechanism and not speed"
UNVARIED: Mapping[str, str] = {
    "environment.target_cpus": f"a guest kernel has one CPU, and {_SPEED}",
    "environment.load_cpus": f"a guest kernel has one CPU, and {_SPEED}",
    "environment.memory": f"its memory is a file of the host's and its disks lie in the host's page cache: {_SPEED}",
}


def check_factors(factors: Iterable[Iterable[str]]) -> None:
    """Raises ValueError where a factor, given by the settings it sets, cannot be varied on a guest kernel."""
    for paths in factors:
        for path in paths:
            if (why := UNVARIED.get(path)) is not None:
                raise ValueError(f"{path} cannot be varied on a guest kernel: {why}; allowed: other factors, or {HOST}")


@dataclass(frozen=True)
class Asked:
    """What is asked for: the setting, as it stands in the file, and the CPUs that a guest of it has."""

    setting: str
    cpus: int


def asked(kernel: str, cpus: int) -> Asked:
    """Of `environment.kernel`, a guest kernel of any kind."""
    return Asked(f'environment.kernel is "{kernel}"', cpus)


def check(
    given: Asked,
    *,
    existing: str | None,
    parts: Collection[str],
    places: Mapping[str, Place],
    cpus: Mapping[str, str],
    outlives_kills: bool,
) -> None:
    """Raises ValueError where the settings need what a guest kernel does not have.

    `parts`: folders or places that are named for the server's files; `cpus`: the settings of CPUs; `outlives_kills`:
    whether the data of a trial have to outlive a kill.
    """
    if existing is not None:
        why = f"{existing} that exists and has a kernel of its own"
        raise ValueError(f"{given.setting} and {why}; allowed: {HOST}, or a private server")
    for path in (part for part in parts if part.startswith("/")):
        why = f"target.files names {path}, a folder of the host, of which a guest writes nothing"
        raise ValueError(f"{given.setting} and {why}; allowed: {HOST}, {_IMAGE}, or no target.files")
    for name in used_places(places, parts):
        place = places[name]
        for key, what in (("folder", "a folder"), ("images_in", "a folder"), ("devices", "devices")):
            if getattr(place, key):
                why = f"environment.places.{name}.{key} names {what} of the host, which a guest does not have"
                raise ValueError(f"{given.setting} and {why}; allowed: {HOST}, or {_IMAGE}")
        if place.nfs.server is not None:
            why = f"environment.places.{name}.nfs.server is beyond its loopback, the only network that it has"
            raise ValueError(f"{given.setting} and {why}; allowed: {HOST}, or nfs.on: a place of its own")
    for key, wanted in cpus.items():
        if wanted != "all" and max(int(number) for number in re.findall(r"\d+", wanted)) >= given.cpus:
            has = "one CPU" if given.cpus == 1 else f"{given.cpus} CPUs (environment.boot.cpus)"
            allowed = '"all", "0"' if given.cpus == 1 else f'"all", or numbers from 0 to {given.cpus - 1}'
            raise ValueError(f'environment.{key} is "{wanted}", and a guest kernel has {has}; allowed: {allowed}')
    if outlives_kills:
        why = "its trials go on after a kill with the data that they had, and a guest's disk ends with it"
        raise ValueError(f"{given.setting}, and of this workload {why}; allowed: {HOST}")


def check_machine(kernel: str, *, existing: str | None, outlives_kills: bool) -> None:
    """Raises ValueError where the settings do not go with a machine that is rebooted from kernel to kernel."""
    setting = f'environment.kernel is "{kernel}"'
    if existing is not None:
        why = f"{existing} that exists, which a reboot of this machine need not bring into another kernel"
        raise ValueError(f"{setting} and {why}; allowed: {HOST}, or a private server")
    if outlives_kills:
        why = "its trials go on over reboots, each of which would be into another kernel"
        raise ValueError(f"{setting}, and of this workload {why}; allowed: {HOST}")
