"""Which probes there are, and what the agent is asked for to have them: what an experiment with them would ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plimsoll.experiment.model import Experiment
from plimsoll.experiment.probes import Probes
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.surroundings.file_locations import FileLocations

# Of the machine's CPU time: with it the breakdown can do with a part of the time, and has no reason to begin by itself.
_BUDGET_PERCENT = 100
PROFILE_HZ = Probes().profile_hz


def requests(
    names: Sequence[str],
    folder: Path,
    out: Path,
    *,
    in_slices: bool = False,
    locks: bool = False,
    calls: str = Probes().syscalls_counted,
) -> dict[str, dict[str, Any]]:
    """A request of the agent's `watch` for each probe; its server is the one in `folder`."""
    budget = _BUDGET_PERCENT if in_slices else 0
    found = _asked(folder, names, breakdown_budget_percent=budget, profile_locks=locks, syscalls_counted=calls)
    return {name: {"out": str(out), "probes": {name: found[name]}} for name in names}


def _asked(folder: Path, names: Sequence[str], **settings: Any) -> dict[str, Any]:
    wanted = Probes(**{name: name in names for name in NAMES}, **settings)
    return _probes(folder, wanted)


def _probes(folder: Path, wanted: Probes) -> dict[str, Any]:
    place = PrivatePlace([], None, None, locations=FileLocations.together(folder), owner=(0, 0), limits=None)
    return place.probes(Experiment.model_construct(probes=wanted)) or {}


# What `kernel` asks for reads files once in minutes, under other names; it has no programs in the kernel.
NAMES = tuple(name for name in _probes(Path("/"), Probes()) if name in Probes.model_fields)
