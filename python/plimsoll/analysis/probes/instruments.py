"""What the probes say about themselves, over a run's trials: on or refused, proven or not, what they lost and cost.

A figure that rests on a probe asks here why it is absent, and whether its counts are only lower bounds.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.document import (
    Accounting,
    Cost,
    Instrument,
    ProgramCost,
    Refusal,
    SelfTest,
    SelfTestFigure,
)
from plimsoll.analysis.probes.page_cache import lost_events, probe
from plimsoll.record import Trial
from plimsoll.record.summary import Probe

NAMES = ("page_cache", "buffer_heads", "throttle")
# Named only where they were asked for: few runs ask, and they have a part of the page of their own.
_ON_REQUEST = ("syscalls", "sync", "block", "file_waits", "worker_waits", "nfs_calls", "machine_speed")
LABELS = {
    "page_cache": "page cache",
    "buffer_heads": "buffer heads",
    "throttle": "throttling of writers",
    "syscalls": "system calls",
    "sync": "syncs",
    "block": "block device",
    "file_waits": "waits of operations on files",
    "worker_waits": "waits of the server's processes",
    "nfs_calls": "NFS calls",
    "machine_speed": "machine speed",
}
_SELF_TEST: Final[tuple[SelfTestFigure, ...]] = get_args(SelfTestFigure)


def _refusals(entries: list[tuple[Trial, Probe]]) -> list[Refusal]:
    reasons: dict[tuple[str, str | None], list[int]] = {}
    for trial, entry in entries:
        if entry.get("status") != "on":
            remedy = entry.get("remedy")
            key = (str(entry.get("reason") or "no reason recorded"), str(remedy) if remedy else None)
            reasons.setdefault(key, []).append(trial.number)
    return [{"reason": reason, "remedy": remedy, "trials": numbers} for (reason, remedy), numbers in reasons.items()]


def _self_test(entries: list[Probe]) -> SelfTest | None:
    """Of the trials with a self-test: how many passed, and each figure from its least to its most."""
    tests = [entry["self_test"] for entry in entries if isinstance(entry.get("self_test"), dict)]
    if not tests:
        return None
    found: SelfTest = {"trials": len(tests), "passed": sum(bool(test.get("passed")) for test in tests)}
    for name in _SELF_TEST:
        if values := [test[name] for test in tests if test.get(name) is not None]:
            found[name] = [min(values), max(values)]
    return found


def _identity(entries: list[tuple[Trial, Probe]]) -> Accounting | None:
    """Additions counted apart against the sum of their kinds."""
    by_trial = {
        trial.number: [part for part in (entry.get("identity") or {}).values() if isinstance(part, dict)]
        for trial, entry in entries
        if entry.get("identity")
    }
    if not by_trial:
        return None
    broken = [number for number, parts in by_trial.items() if not all(part.get("holds") for part in parts)]
    return {
        "trials": len(by_trial),
        "broken": broken,
        "added": sum(int(part.get("added") or 0) for parts in by_trial.values() for part in parts),
        "accounted": sum(int(part.get("accounted") or 0) for parts in by_trial.values() for part in parts),
    }


def _cost(entries: list[Probe]) -> Cost | None:
    """Run time and runs of the programs, summed over the trials."""
    costs = [entry["cost"] for entry in entries if (entry.get("cost") or {}).get("run_ns") is not None]
    if not costs:
        return None
    programs: dict[str, ProgramCost] = {}
    for program in (program for cost in costs for program in cost.get("programs") or []):
        sums = programs.setdefault(str(program.get("name")), {"runs": 0, "run_ns": 0, "ns_per_run": None})
        sums["runs"] += int(program.get("runs") or 0)
        sums["run_ns"] += int(program.get("run_ns") or 0)
    for sums in programs.values():
        sums["ns_per_run"] = sums["run_ns"] / sums["runs"] if sums["runs"] else None
    return {"run_ns": sum(int(cost["run_ns"]) for cost in costs), "programs": programs}


def _different(texts: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(str(text) for text in texts if text))


def _one(trials: list[Trial], name: str) -> Instrument | None:
    """One probe over the finished trials; None when no trial mentions it."""
    known = [(trial, entry) for trial in trials if (entry := probe(trial.measure, name)) is not None]
    if not known:
        return None
    on = [(trial, entry) for trial, entry in known if entry.get("status") == "on"]
    entries = [entry for _, entry in on]
    lost: dict[str, int] = {}
    for entry in entries:
        for what, count in lost_events(entry).items():
            lost[what] = lost.get(what, 0) + count
    systems = [system for entry in entries for system in entry.get("file_systems") or [] if isinstance(system, dict)]
    refused = _refusals(known)
    result: Instrument = {
        "on": [trial.number for trial, _ in on],
        "refused": refused,
        "programs": _different(entry.get("programs") for entry in entries),
        "requests": _different(entry.get("requests") for entry in entries),
        "self_test": _self_test([entry for _, entry in known]),
        "absent": {key: why for entry in entries for key, why in (entry.get("absent") or {}).items()},
        "file_systems": list(dict.fromkeys(f"{system.get('type')} on {system.get('device')}" for system in systems)),
        "lost": lost,
        "lost_trials": [trial.number for trial, entry in on if lost_events(entry)],
        "identity": _identity(on),
        "cost": _cost(entries),
        "why_absent": None if on else _why(refused),
    }
    result["note"] = _note(result)
    return result


def _why(refused: list[Refusal]) -> str:
    first = refused[0]
    return f"the probe was refused: {first['reason']}" + (f" ({first['remedy']})" if first["remedy"] else "")


def _trials(numbers: list[int]) -> str:
    return f"trial {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} trials"


def _note(instrument: Instrument) -> str | None:
    """What a figure that rests on the probe has to say beside itself."""
    parts = []
    if instrument["lost"]:
        what = ", ".join(f"{count:,} {name}" for name, count in instrument["lost"].items())
        parts.append(f"Lower bound: the probe lost events ({what}) in {_trials(instrument['lost_trials'])}.")
    if instrument["on"]:
        parts += [f"Not from {_trials(row['trials'])}: refused, {row['reason']}." for row in instrument["refused"]]
        parts += [f"{column} is not counted: {why}." for column, why in instrument["absent"].items()]
    return " ".join(parts) or None


def instruments(trials: list[Trial]) -> dict[str, Instrument]:
    """{name: what one probe says of itself} over the finished trials; `why_absent` is set where none was on."""
    finished = [trial for trial in trials if trial.status == "finished"]
    recorded = any("probes" in trial.measure.told for trial in finished)
    missing = "it was not asked for" if recorded else "the record has no probes: it is of an earlier version"
    by_name: dict[str, Instrument] = {
        name: _one(finished, name) or {"on": [], "refused": [], "why_absent": missing} for name in NAMES
    }
    return by_name | {name: entry for name in _ON_REQUEST if (entry := _one(finished, name)) is not None}


def instrument_of(verdict: Mapping[str, Any], name: str) -> Instrument:
    """What a verdict says of a probe; nothing where it is of an earlier version than the probe."""
    found: Instrument | None = (verdict.get("instruments") or {}).get(name)
    return found or {"on": [], "refused": [], "why_absent": None}


def caveats(trial: Trial) -> list[str]:
    """What a trial's probes say that bears on its figures."""
    said = []
    for name in (*NAMES, *_ON_REQUEST):
        entry, label = probe(trial.measure, name), LABELS[name]
        if entry is None:
            continue
        if entry.get("status") != "on":
            said.append(f"the {label} probe was refused: {entry.get('reason') or 'no reason recorded'}")
            continue
        if lost_events(entry):
            said.append(f"the {label} probe lost events: its counts are lower bounds")
        if any(not part.get("holds") for part in (entry.get("identity") or {}).values() if isinstance(part, dict)):
            said.append(
                f"the {label} probe's page accounting does not add up: pages added and pages accounted for differ"
            )
        if any(not disk.get("holds") for disk in (entry.get("disk_requests") or {}).values()):
            said.append(
                f"the {label} probe's request accounting does not add up: requests issued and accounted for differ"
            )
    return said


def _judge(context: Context) -> dict[str, Instrument]:
    return instruments(context.run.trials)


def _trial_caveats(trial: Trial, _read: Any) -> list[str]:
    return caveats(trial)


PART = Part("instruments", _judge, trial_caveats=_trial_caveats)
