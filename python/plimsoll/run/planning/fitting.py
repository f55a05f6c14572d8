"""Levels that this machine can give: one experiment file serves small machines and large ones.

Of a factor with `where_possible` the levels that ask for CPUs, memory, a preemption model, md or NFS which are not here
are left out, and named; a factor of which nothing would be left keeps all, so that the plan says what is in the way.
One of preemption models on a kernel that can change to none has the model that is in force, so that the rest runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.places.able import why_no_array, why_no_nfs
from plimsoll.environment.places.arrays import LEVELS
from plimsoll.environment.scheduler import Preemption
from plimsoll.experiment import Experiment, Source, size
from plimsoll.experiment.design import show_level
from plimsoll.experiment.environment import AS_FOUND
from plimsoll.experiment.places import used_places
from plimsoll.experiment.reading.idle import idle, leave_out, parts
from plimsoll.experiment.reading.source import reload
from plimsoll.run.host import HERE
from plimsoll.run.planning.needs import LOAD_MEMORY_BYTES

CPUS = ("environment.target_cpus", "environment.load_cpus")
MEMORY = "environment.memory"
PREEMPTION = "environment.preemption"
_FILES = "target.files."


@dataclass(frozen=True)
class Machine:
    """What levels are held against."""

    cpus: frozenset[int]
    memory_bytes: int
    available_bytes: int
    preemption: frozenset[str] | None = None  # what can be chosen; None where that is not known
    why_no_preemption: str = ""  # where nothing can
    why_no_nfs: str = ""  # of this kernel's own server and client
    why_no_array: Mapping[int | str, str] = field(default_factory=dict)  # of each level of md that it lacks

    @classmethod
    def here(cls) -> Machine:
        """The one we are on."""
        able = Preemption().available()
        models = frozenset(Preemption().choices()) if able.ok else None
        arrays: dict[int | str, str] = {level: _guest(why) for level in LEVELS if (why := why_no_array(level))}
        cpus, memory_bytes, available = frozenset(HERE.cpus()), HERE.memory_bytes(), HERE.available_bytes()
        return cls(cpus, memory_bytes, available, models, able.reason, _guest(why_no_nfs()), arrays)


def _guest(lacking: str) -> str:
    """The same with what to do about it."""
    return f"{lacking}; a guest's has: --set 'environment.kernel=\"guest\"'" if lacking else ""


def fitted(source: Source, machine: Machine) -> Source:
    """The experiment with the levels that this machine can give; `left_out` says which are missing, and why."""
    left_out: list[str] = []
    kept: dict[int, list[Any]] = {}
    as_found: list[int] = []
    for place, factor in enumerate(source.experiment.factors):
        if not factor.where_possible:
            continue
        if factor.key == PREEMPTION and machine.why_no_preemption:
            as_found.append(place)
            left_out.append(f"{factor.label or factor.key}, but as found ({machine.why_no_preemption})")
            continue
        each = [factor.settings_of(level) for level in factor.levels]
        reasons = [_lacking(one, machine) or _without_layers(one, source.experiment, machine) for one in each]
        if not any(reasons) or all(reasons):
            continue
        kept[place] = [index for index, reason in enumerate(reasons) if not reason]
        name = factor.label or factor.key
        left_out += [
            f"{name} {show_level(level)} ({reason})"
            for level, reason in zip(factor.levels, reasons, strict=True)
            if reason
        ]
    if not kept and not as_found:
        return source
    document = source.experiment.model_dump(mode="json")
    idle_before = idle(document)
    for place in as_found:
        document["factors"][place]["levels"] = [AS_FOUND]
    for place, indices in kept.items():
        levels = document["factors"][place]["levels"]
        document["factors"][place]["levels"] = [levels[index] for index in indices]
    leave_out(document, idle_before)
    again = reload(document, source.path, source.quick)
    return replace(again, changed=source.changed, left_out=tuple(left_out))


def _lacking(settings: dict[str, Any], machine: Machine) -> str | None:
    """What of these settings is not here; None where all is. A setting that cannot be read is the plan's to refuse."""
    for path in CPUS:
        wanted = settings.get(path, "all")
        missing = set() if wanted == "all" else set(cpu_lists.parse(str(wanted))) - machine.cpus
        if missing:
            return f"no CPU {cpu_lists.show(missing)}"
    model = settings.get(PREEMPTION, AS_FOUND)
    if machine.preemption is not None and model != AS_FOUND and model not in machine.preemption:
        return f"this kernel offers {', '.join(sorted(machine.preemption))}"
    memory = settings.get(MEMORY, "unlimited")
    if memory == "unlimited":
        return None
    needed = size.parse(memory, machine.memory_bytes) + LOAD_MEMORY_BYTES
    if needed > machine.available_bytes:
        return f"{size.show(needed)} with the load generator, {size.show(machine.available_bytes)} are available"
    return None


def _without_layers(settings: dict[str, Any], experiment: Experiment, machine: Machine) -> str | None:
    """Why these settings put no part of the target on an array or on NFS here. Of a guest's kernel its plan knows."""
    if experiment.environment.kernel != "host":
        return None
    places = experiment.environment.places
    named = [part for path, value in settings.items() if path.startswith(_FILES) for part in parts(value)]
    for place in (places[name] for name in used_places(places, named)):
        if place.nfs.on and machine.why_no_nfs:
            return machine.why_no_nfs
        if place.raid.level in machine.why_no_array:
            return machine.why_no_array[place.raid.level]
    return None
