"""The knob of the server's group: its memory, the swap it may use, its CPUs and its swappiness.

The constraint: with cgroup version 1 a group takes its swappiness from vm.swappiness when it is made, and pages that it
has swapped out need their swap file for as long as it lives. So the group is made after both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.environment.groups.cgroups import Limits
from plimsoll.environment.groups.group import Group, GroupKnob
from plimsoll.environment.journal.journal import Journal
from plimsoll.environment.knob import Knob, Site, refusal

if TYPE_CHECKING:
    from plimsoll.experiment.environment import Environment


@dataclass(frozen=True)
class Enclosure:
    """What the server is started in. Without limits the group is a cage, or None where there can be none."""

    limits: Limits | None
    group: Group | None


class GroupLimits(Knob[Enclosure]):
    name = "group"
    keys = ("environment.memory", "environment.target_cpus", "environment.swappiness")
    after = ("swap", "sysctl")
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        """What the group that these settings ask for cannot have here, by the setting that asks."""
        wanted = limits_of(site.settings.environment)
        asked = {}
        if site.settings.environment.memory != "unlimited":
            asked["memory"] = Limits(swap_bytes=wanted.swap_bytes)
        elif wanted.swap_bytes == 0:
            yield "environment.swap = 0 needs the control group of a memory limit; set environment.memory too"
        if wanted.cpus is not None:
            asked["target_cpus"] = Limits(cpus=wanted.cpus)
        if wanted.swappiness is not None:
            asked["swappiness"] = Limits(swappiness=wanted.swappiness)
        for key, limits in asked.items():
            yield from refusal(f"environment.{key}", GroupKnob("plan").available(limits))

    def arrange(self, site: Site, journal: Journal) -> Enclosure:
        limits = limits_of(site.settings.environment)
        if limits.memory_bytes is None and limits.cpus is None and limits.swappiness is None:
            return Enclosure(None, make_cage(site.name, journal))
        return Enclosure(limits, GroupKnob(site.name).make(limits, journal))


def limits_of(wanted: Environment) -> Limits:
    """`wanted`: with sizes in bytes."""
    return Limits(
        memory_bytes=wanted.memory if isinstance(wanted.memory, int) else None,
        swap_bytes=wanted.swap if isinstance(wanted.swap, int) else None,
        swappiness=wanted.swappiness if isinstance(wanted.swappiness, int) else None,
        cpus=None if wanted.target_cpus == "all" else wanted.target_cpus,
    )


def make_cage(name: str, journal: Journal) -> Group | None:
    """A group without limits, where the machine has groups: a program that a user's script has had the server start
    (`COPY ... TO PROGRAM`, `archive_command`) ends with it, whatever it did to detach itself."""
    knob = GroupKnob(name)
    return knob.make(Limits(), journal) if knob.available().ok else None


KNOB = GroupLimits()
