"""How the trials of each kind of design are carried out: a new kind is a room, and a line here.

The fact that constrains it: a kind that cannot be had on a machine falls back to trials one after the other, which can
be had everywhere; the plan says so and why, and the record keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plimsoll.environment import StateDir
from plimsoll.experiment import Plan
from plimsoll.run import one_trial
from plimsoll.run.planning import windows as planning
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.windows import blocks

if TYPE_CHECKING:
    from plimsoll.run.carrier import Carrier

FALLBACK = "full factorial"


@dataclass(frozen=True)
class Arrangement:
    """`carry_out`: runs every trial that has no result; `why_not`: why it cannot be had, each reason with a remedy."""

    carry_out: Callable[[Carrier, ServerOfTrial], None]
    why_not: Callable[[Plan, StateDir], list[str]] = lambda _plan, _state: []


ONE_BY_ONE = Arrangement(one_trial.carry_out)
ARRANGEMENTS = {
    "full factorial": ONE_BY_ONE,
    "one factor at a time": ONE_BY_ONE,
    "windows": Arrangement(blocks.carry_out, planning.why_not),
}


def arrangement_of(plan: Plan) -> Arrangement:
    """Of the plan's design."""
    return ARRANGEMENTS[plan.experiment.design.kind]


def fallen_back(plan: Plan) -> Plan:
    """The same trials, one after the other."""
    design = plan.experiment.design.model_copy(update={"kind": FALLBACK})
    return replace(plan, experiment=plan.experiment.model_copy(update={"design": design}))
