"""Trials that failed, done again on the user's word: `run --resume --again`.

The facts that constrain it: a kill may come between any two of them, so each is set aside by one rename, after which it
has no result and any resume does it; and what a server did is a result, so a trial that ended because its server stood
still is none of these. In a design of windows a block is done whole, so all of its trials are set aside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll.experiment import Plan, PlannedTrial
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.record.trial import FAILED
from plimsoll.run.trial.log import TrialLog

Json = dict[str, Any]
BEFORE = ".before-"  # trials/0003.before-1: what a trial was before it was done again


def failed(out: Path, plan: Plan) -> list[PlannedTrial]:
    """The trials of a run that failed, and might do better."""
    return [trial for trial in plan.trials if _has_failed(_stored(out, trial))]


def to_do(out: Path, plan: Plan) -> list[PlannedTrial]:
    """These, in windows with all others of their blocks."""
    chosen = failed(out, plan)
    if plan.experiment.design.kind != "windows":
        return chosen
    blocks = {trial.block for trial in chosen}
    return [trial for trial in plan.trials if trial.block in blocks]


def set_aside(out: Path, trials: list[PlannedTrial]) -> None:
    """Makes them trials without a result; what they were is kept beside."""
    if trials:
        writer.append_event(out, "again", trials=[trial.number for trial in trials])
    # Of a block one that failed comes last: until then a kill leaves a block that is to be done again all the same.
    for trial in sorted(trials, key=lambda one: _has_failed(_stored(out, one))):
        folder = writer.trial_folder(out, trial.number)
        if folder.is_dir():
            folder.rename(folder.with_name(f"{folder.name}{BEFORE}{len(before(out, trial)) + 1}"))


def note(out: Path, log: TrialLog) -> None:
    """What trial.json says of earlier ones: the folders that they are in, and why each had failed (null: not)."""
    if earlier := before(out, log.trial):
        told = [read_json(folder / "trial.json") or {} for folder in earlier]
        why = [one.get("reason") if one.get("status") == FAILED else None for one in told]
        log.facts["again"] = {"left": [folder.name for folder in earlier], "why": why}


def before(out: Path, trial: PlannedTrial) -> list[Path]:
    """The folders of what a trial was, in their order."""
    folder = writer.trial_folder(out, trial.number)
    return sorted(folder.parent.glob(f"{folder.name}{BEFORE}*"), key=lambda one: int(one.name.partition(BEFORE)[2]))


def _stored(out: Path, trial: PlannedTrial) -> Json:
    return read_json(writer.trial_folder(out, trial.number) / "trial.json") or {}


def _has_failed(stored: Json) -> bool:
    return stored.get("status") == FAILED and (stored.get("windows") or {}).get("stood_still_seconds") is None
