"""Settings of the whole machine in which the servers of a block differ: each has its own in its turns.

The facts that constrain it: a kill may come between two turns, so all that is going to be written stands in the journal
before the first turn. And some settings count when a file is opened or a page is first touched, so a server has its own
from before its start, not from its first window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from plimsoll.environment import Fault, Journal, StateDir
from plimsoll.environment.journal import registry
from plimsoll.environment.journal.journal import Entry
from plimsoll.environment.knob import TurnedPart
from plimsoll.experiment import Experiment, Plan, PlannedTrial
from plimsoll.run.context import RunContext
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.surroundings import knobs
from plimsoll.run.surroundings.arranged import put_back
from plimsoll.run.trial.log import TrialLog

Parts = Mapping[str, tuple[TurnedPart[Any], Any]]  # by the key that asks: the part, and what it is to be
_NOT_KNOWN = object()  # what is in force after a write that failed


def parts_of(settings: Experiment, state: StateDir, name: str = "plan") -> Parts:
    """All that each turn of a server with these settings could set."""
    site = knobs.site_of(settings, state, name)
    return {key: (part, value) for knob in knobs.KNOBS for key, part, value in knob.turned(site)}


def varied(plan: Plan, state: StateDir) -> frozenset[str]:
    """The keys of those in which the treatments of a plan differ."""
    values = [
        {key: value for key, (_, value) in parts_of(treatment.settings, state).items()} for treatment in plan.treatments
    ]
    return frozenset(
        key
        for key in set().union(*values)
        if any(of_treatment.get(key) != values[0].get(key) for of_treatment in values)
    )


def left(value: Any, key: str, keys: frozenset[str]) -> Any:
    """What remains of a setting, or of a table of them, that every server of a block has to agree in."""
    if key in keys:
        return None
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if f"{key}.{name}" not in keys}
    return value


@dataclass
class _Switch:
    """One setting: what is in force of it (None: as found), and how its part shows that."""

    part: TurnedPart[Any]
    entry: Entry
    shown: object
    value: Any = None

    def put(self, value: Any) -> None:
        if value == self.value:
            return
        self.value = _NOT_KNOWN
        if value is None:
            _restore(self.entry)
        else:
            self.part.write(value)
        self.value = value


@dataclass
class Turning:
    """What is in force in each turn. A treatment that does not name a key has what was found."""

    switches: Mapping[str, _Switch]  # by key
    values: Mapping[int, Mapping[str, Any]]  # by the trial's number, then by key

    def turn(self, trial: PlannedTrial) -> None:
        """Makes it so for a trial's server. Raises Fault where the machine refuses, TrialFailed where somebody else has
        set something since: that is theirs, and no turn writes over it."""
        for key, switch in self.switches.items():
            now = switch.part.show()
            if now != switch.shown:
                what = f"{key} was changed by another program or user during the block: {switch.shown} has become {now}"
                raise TrialFailed(f"{what}; it is left as it is")
        wanted = self.of(trial)
        try:
            # To put one of a pair back clears the other, so what is wanted is written after that.
            for key in sorted(wanted, key=lambda name: wanted[name] is not None):
                self.switches[key].put(wanted[key])
        finally:
            for switch in self.switches.values():
                switch.shown = switch.part.show()

    def of(self, trial: PlannedTrial) -> dict[str, Any]:
        """What each key is in its turns, None as found: as trial.json has it."""
        return {key: self.values[trial.number].get(key) for key in self.switches}

    def caveats(self) -> Iterator[str]:
        """What the reader of each of its trials has to know."""
        for key, switch in self.switches.items():
            beside = f"; {switch.part.unseen_in_turns}" if switch.part.unseen_in_turns else ""
            yield (
                f"{key} was switched for the whole machine at each turn of a server: what the kernel does for one "
                f"during another's turn is done under the other's setting{beside}"
            )


def _restore(entry: Entry) -> None:
    try:
        registry.find(entry.kind, entry.by).action(entry.args)
    except registry.ChangedSince as changed:
        raise Fault(changed.what, remedy=changed.remedy) from None


@contextmanager
def turned(context: RunContext, trials: Sequence[PlannedTrial], logs: Sequence[TrialLog]) -> Iterator[Turning]:
    """For a block; puts back at its end, whatever happened. `logs`: those of the trials that have begun by then."""
    if not context.at_turns:
        yield Turning({}, {})
        return
    parts = {
        trial.number: parts_of(trial.treatment.settings, context.state, context.trial_name(trial)) for trial in trials
    }
    values = {number: {key: value for key, (_, value) in mine.items()} for number, mine in parts.items()}
    asked = {key: part for mine in parts.values() for key, (part, _) in mine.items() if key in context.at_turns}
    journal = Journal.create(context.state, f"{context.trial_name(trials[0])}-turns")
    try:
        yield Turning(_switches(asked, values, journal), values)
    finally:
        put_back(context, journal, logs)


def _switches(
    asked: Mapping[str, TurnedPart[Any]], values: Mapping[int, Mapping[str, Any]], journal: Journal
) -> dict[str, _Switch]:
    """Of all that is asked for, with every value that a turn may write in the journal; nothing is changed yet."""
    wanted = {
        part.name: list(dict.fromkeys(mine[key] for mine in values.values() if key in mine))
        for key, part in asked.items()
    }
    switches = {}
    for key, part in sorted(asked.items()):
        able = part.available()
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        switches[key] = _Switch(part, part.expect(wanted, journal), part.show())
    return switches
