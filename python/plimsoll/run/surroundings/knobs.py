"""The knobs there are. A trial's are arranged in this order and put back in the reverse; obstacles are asked of each.

The fact that constrains it: what has to outlive the server (its folders, the swap it may have pages in) is arranged
before it. A knob is one file, which says what it depends on, and a line here; the settings that turn it are a field of
the experiment's tables.
"""

from __future__ import annotations

from plimsoll.environment import StateDir, places, readahead, scheduler
from plimsoll.environment.groups import group_limits
from plimsoll.environment.knob import Knob, KnobOfParts, Site, in_order
from plimsoll.environment.memory import huge_page_pool, huge_pages, swap, sysctl
from plimsoll.experiment import Experiment, Plan
from plimsoll.run.sizes import environment_in_bytes
from plimsoll.run.surroundings import file_locations

KNOBS: tuple[Knob[object], ...] = in_order(
    (
        *(*places.KNOBS, file_locations.KNOB, swap.KNOB, sysctl.KNOB, readahead.KNOB, huge_pages.KNOB),
        *(huge_page_pool.KNOB, scheduler.PREEMPTION_KNOB, scheduler.BASE_SLICE_KNOB, group_limits.KNOB),
    )
)


def site_of(settings: Experiment, state: StateDir, name: str, at_turns: frozenset[str] = frozenset()) -> Site:
    """What knobs may know of the trial `name`; `at_turns`: the keys that each turn of its server sets."""
    in_bytes = settings.model_copy(update={"environment": environment_in_bytes(settings)})
    return Site(in_bytes, state, name, file_locations.locations_of(settings, state, name).data, at_turns)


def change_the_machine(plan: Plan, state: StateDir) -> bool:
    """Whether a trial of it sets what all on this machine share."""
    shared = [knob for knob in KNOBS if isinstance(knob, KnobOfParts) and knob.why_shared]
    sites = [site_of(treatment.settings, state, "plan") for treatment in plan.treatments]
    return any(True for site in sites for knob in shared for _ in knob.wanted(site))
