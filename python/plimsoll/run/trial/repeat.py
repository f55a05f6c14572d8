"""A trial is done again where what spoilt it is cured by time: caches that were still filling, a hypervisor's steal.

The fact that constrains it: the choice must know nothing of what is compared, else luck is chosen. So it goes by the
rules of admission alone, once for each trial, at once and so within its block, and within the share of trials that the
design gives for it. What was tried before is kept beside (trials/0003.attempt-1), and only what lies there is counted:
a run that goes on after a kill decides as it would have. That holds for a kill before the choice, too: from before a
trial has its result until the choice is made repeat.json lies in its folder, and it is not done.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from plimsoll.analysis.admission import admit
from plimsoll.analysis.admission_stationary import FILLING
from plimsoll.analysis.estimates import estimates
from plimsoll.experiment import Plan, PlannedTrial
from plimsoll.record import RecordError, Trial, writer
from plimsoll.record.run import read_json
from plimsoll.run.trial.log import TrialLog

Json = dict[str, Any]
ATTEMPTS_MAX = 2
FILE = "repeat.json"
LONGER = 2.0  # times the warm-up of an attempt that was still filling


def begun(out: Path, trial: PlannedTrial) -> TrialLog:
    """The log of the next attempt: of the first nothing is said, a later one knows why and has a longer warm-up."""
    earlier = _set_aside_of(out, trial.number)
    if not earlier:
        return TrialLog(trial)
    told = (read_json(earlier[-1] / FILE) or {}).get("why") or []
    planned = _with_longer_warmup(trial, earlier[-1]) if any(why.startswith(FILLING) for why in told) else trial
    warmup = planned.treatment.settings.warmup
    entry: Json = {
        "attempt": len(earlier) + 1,
        "why": told,
        "left": [folder.name for folder in earlier],
        "warmup_seconds_min": warmup.seconds_min,
        "warmup_seconds_max": warmup.seconds_max,
    }
    return TrialLog(planned, {"repeated": entry})


def is_open(out: Path, number: int) -> bool:
    """Whether a trial that has its result may still be set aside: the run was killed before that was chosen."""
    return (writer.trial_folder(out, number) / FILE).exists()


def leave_open(out: Path, number: int) -> None:
    """Before a trial has its result: from now on it is not done before `set_aside` has chosen."""
    folder = writer.trial_folder(out, number)
    folder.mkdir(parents=True, exist_ok=True)
    writer.write_json(folder / FILE, {"why": None})


def set_aside(out: Path, plan: Plan, log: TrialLog) -> list[str]:
    """Why the trial that has just finished is to be done again, its folder set aside; empty where it stands."""
    folder, why = writer.trial_folder(out, log.trial.number), _why_again(out, plan, log)
    if why:
        writer.write_json(folder / FILE, {"why": why})
        attempt = len(_set_aside_of(out, log.trial.number)) + 1
        folder.rename(folder.with_name(f"{folder.name}.attempt-{attempt}"))
    else:
        (folder / FILE).unlink(missing_ok=True)
    return why


def follow(summaries: list[Path], folder: Path) -> None:
    """Paths into a trial's folder, from the attempt before this one, are led to where that was set aside: what it did
    to a server that stays between trials is there still."""
    earlier = _set_aside_beside(folder)
    if earlier:
        summaries[:] = [
            earlier[-1] / path.relative_to(folder) if path.is_relative_to(folder) else path for path in summaries
        ]


def _why_again(out: Path, plan: Plan, log: TrialLog) -> list[str]:
    number = log.trial.number
    attempts = len(_set_aside_of(out, number)) + 1
    if attempts >= ATTEMPTS_MAX or len(_set_aside_of(out)) >= _budget(plan):
        return []
    # How it is judged depends on its workload.
    workload = {"name": log.trial.treatment.settings.workload.name}
    return curable(Trial(writer.trial_folder(out, number), {"resolved": {"workload": workload}}))


def curable(trial: Trial) -> list[str]:
    """What spoilt a finished trial and would not spoil a later one; empty where something else is wrong with it too."""
    if trial.data.get("silences"):
        return []  # that a server of NFS was silent is the result, and what it moved looks like caches that fill
    try:
        admission = admit(trial, estimates(trial))
    except RecordError:
        return []  # the verdict will say what cannot be read
    return [] if set(admission.reasons) - set(admission.curable) else admission.curable


def _budget(plan: Plan) -> int:
    """Of a plan's trials so many; where any, one at least."""
    share = plan.experiment.design.repeat_share_max
    return max(1, int(share * len(plan.trials))) if share > 0 else 0


def _set_aside_of(out: Path, number: int | None = None) -> list[Path]:
    """Folders of attempts that were set aside, of one trial or of all, in their order."""
    return _set_aside_beside(out / "trials" / ("*" if number is None else f"{number:04d}"))


def _set_aside_beside(folder: Path) -> list[Path]:
    return sorted(folder.parent.glob(f"{folder.name}.attempt-*"))


def _with_longer_warmup(trial: PlannedTrial, earlier: Path) -> PlannedTrial:
    """A warm-up that ended too soon has to go on beyond that end, whatever it looks like there."""
    settings = trial.treatment.settings
    told = (read_json(earlier / "trial.json") or {}).get("stationary") or {}
    longest = LONGER * settings.warmup.seconds_max
    shortest = min(longest, max(settings.warmup.seconds_min, LONGER * float(told.get("seconds") or 0)))
    if not told.get("reached"):  # it used up its time: it ends when rest is shown, as the first should have
        shortest = settings.warmup.seconds_min
    warmup = settings.warmup.model_copy(update={"seconds_min": shortest, "seconds_max": longest})
    longer = settings.model_copy(update={"warmup": warmup})
    return replace(trial, treatment=replace(trial.treatment, settings=longer))
