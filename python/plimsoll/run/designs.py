"""How the trials of each kind of design are carried out: a new kind is a room, and a line here.

The fact that constrains it: a kind that cannot be had on a machine falls back to trials one after the other, which can
be had everywhere; the plan says so and why, and the record keeps it. What a run began as it goes on as, whatever the
machine has to give by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from plimsoll.environment import StateDir
from plimsoll.experiment import Plan
from plimsoll.experiment.groups import Groups
from plimsoll.experiment.replicates import in_groups
from plimsoll.run import one_trial
from plimsoll.run.planning import windows as planning
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.windows import blocks

if TYPE_CHECKING:
    from plimsoll.run.carrier import Carrier

FALLBACK = "full factorial"


@dataclass(frozen=True)
class Arrangement:
    """`carry_out`: runs every trial that has no result.

    `arranged`: the plan as it can be had here, and every reason why it cannot be had, each with a remedy.
    """

    carry_out: Callable[[Carrier, ServerOfTrial], None]
    arranged: Callable[[Plan, StateDir], tuple[Plan, list[str]]] = lambda plan, _state: (plan, [])


ONE_BY_ONE = Arrangement(one_trial.carry_out)
ARRANGEMENTS = {
    "full factorial": ONE_BY_ONE,
    "one factor at a time": ONE_BY_ONE,
    "windows": Arrangement(blocks.carry_out, planning.arranged),
}


def arrangement_of(plan: Plan) -> Arrangement:
    """Of the plan's design."""
    return ARRANGEMENTS[plan.experiment.design.kind]


def arranged(plan: Plan, state: StateDir) -> tuple[Plan, list[str]]:
    """The plan as this machine can carry it out, and why that is not by its design; nothing where it is."""
    found, reasons = arrangement_of(plan).arranged(plan, state)
    return (fallen_back(plan), reasons) if reasons else (found, [])


def as_begun(plan: Plan, run: Mapping[str, Any], planned: Mapping[str, Any]) -> tuple[Plan, list[str]]:
    """The same of a run that goes on, by its run.json and plan.json."""
    if reasons := list(run.get("fell_back", [])):
        return fallen_back(plan), reasons
    groups = planned.get("groups")
    return (plan if groups is None else in_groups(plan, Groups.of(groups))), []


def fallen_back(plan: Plan) -> Plan:
    """The same trials, one after the other."""
    design = plan.experiment.design.model_copy(update={"kind": FALLBACK})
    return replace(plan, experiment=plan.experiment.model_copy(update={"design": design}))
