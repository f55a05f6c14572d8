"""Where each transaction's time goes, over a run: by treatment and type, the slowest, and the difference of treatments.

Rests on the breakdown's record in each trial (breakdown_trial.py); a run without one has no such part in its verdict. A
trial in which time was counted twice gives no figures, and says so.
"""

from collections.abc import Mapping
from typing import cast

from plimsoll.analysis.breakdown import waits as breakdown_waits
from plimsoll.analysis.breakdown.changes import of_latency
from plimsoll.analysis.breakdown.difference import (
    band_over_blocks,
    beyond_mean,
    difference,
    kinds_of,
    pairs,
)
from plimsoll.analysis.breakdown.document import (
    Band,
    Breakdown,
    Difference,
    OfTreatment,
    OfTrial,
    OfType,
    Refused,
    Slowest,
    Syncs,
    System,
    TypeReads,
    TypeSpent,
    TypeWait,
    TypeWaits,
)
from plimsoll.analysis.breakdown.parts import PARTS, PLAIN
from plimsoll.analysis.breakdown.reading import Reading, TypeSums, Waits
from plimsoll.analysis.breakdown.sampling import sampling_caveats
from plimsoll.analysis.breakdown.slowest import SLOWEST as SLOWEST_COUNT
from plimsoll.analysis.breakdown.trial import BANDS, MEAN, SLOWEST, TOLD, reading
from plimsoll.analysis.breakdown.waits import NFS, READ, READ_CAUSES
from plimsoll.analysis.part import Context, Pair, Part
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Comparison, Treatment, Used

CLOSURE_MAX = 0.01
UNNAMED_MAX = 0.05


def over_trials(trials: list[Trial]) -> dict[int, Reading]:
    """The breakdowns of the finished trials whose records mention one, by trial."""
    readings = {trial.number: reading(trial) for trial in trials if trial.status == "finished"}
    return {number: entry for number, entry in readings.items() if entry is not None}


def caveats(breakdown: Reading | None) -> list[str]:
    """What a trial's breakdown says that bears on its figures; a refusal is told once, with the figures."""
    if breakdown is None or breakdown["status"] == "refused":
        return []
    if breakdown["reason"]:
        return [f"no breakdown: {breakdown['reason']}"]
    said = [
        f"no breakdown, because time is counted twice: {what} ({count})" for what, count in breakdown["faults"].items()
    ]
    said += sampling_caveats(breakdown["sampling"], breakdown["joined"])
    if breakdown["lost"]:
        said.append("the breakdown probe lost events: some requests are missing")
    seen, sent = breakdown["requests"]["seen"], breakdown["requests"]["sent"]
    watched_all = breakdown["sampling"]["one_in_max"] == 1
    if watched_all and seen is not None and sent is not None and seen != sent:
        said.append(f"the breakdown probe saw {seen} requests and the load sent {sent}")
    nameless = {}
    for kind, of_kind in breakdown["types"].items():
        if kind not in kinds_of([breakdown]):
            continue
        share, unnamed = of_kind["closure"]["share"], of_kind["closure"]["unnamed_share"]
        if share is not None and abs(share) > CLOSURE_MAX:
            said.append(f"the breakdown of {kind} does not close: {share:+.1%} of the time is in no bucket")
        if unnamed is not None and unnamed > UNNAMED_MAX:
            nameless[kind] = f"{kind} has {unnamed:.0%}"
    if nameless:
        of_kinds = ", ".join(nameless.values())
        said.append(f"the breakdown of {of_kinds} of the time in waits without a bucket of their own")
    return said


def breakdown(
    readings: Mapping[int, Reading],
    used: Used,
    treatments: Mapping[str, Treatment],
    comparisons: list[Comparison],
    beside: list[Pair] | None = None,
) -> Breakdown | None:
    """The `breakdown` of verdict.json; None for a run whose records do not mention it. A pure function of its parts."""
    if not readings:
        return None
    present = by_treatment(readings, used, treatments)
    return {
        "parts": {part: PLAIN[part] for part in PARTS},
        "bands": list(BANDS),
        "refused": _refused(readings),
        "why_absent": None if present else _why(readings),
        "trials": [_trial(entry) for entry in readings.values() if entry["status"] == "on"],
        "treatments": {name: _treatment(blocks) for name, blocks in present.items()},
        "differences": _differences(present, pairs(comparisons, beside)),
    }


def by_treatment(
    readings: Mapping[int, Reading], used: Used, treatments: Mapping[str, Treatment]
) -> dict[str, dict[int, Reading]]:
    """The readings that have figures, by treatment and block."""
    blocks_of: dict[str, dict[int, Reading]] = {name: {} for name in treatments}
    for (block, treatment), entry in used.items():
        trial = readings.get(entry["number"])
        if trial is not None and trial.get("types") and trial["types"][ALL]["bands"][MEAN]["transactions"]:
            blocks_of.setdefault(treatment, {})[block] = trial
    return {name: blocks for name, blocks in blocks_of.items() if blocks}


def _refused(readings: Mapping[int, Reading]) -> list[Refused]:
    trials_of: dict[tuple[str, str | None], list[int]] = {}
    for number, trial in readings.items():
        if trial["reason"]:
            trials_of.setdefault((trial["reason"], trial["remedy"]), []).append(number)
    return [{"reason": reason, "remedy": remedy, "trials": numbers} for (reason, remedy), numbers in trials_of.items()]


def _why(readings: Mapping[int, Reading]) -> str:
    refused = _refused(readings)
    if refused:
        first = refused[0]
        return f"the probe was refused: {first['reason']}" + (f" ({first['remedy']})" if first["remedy"] else "")
    if any(trial.get("faults") for trial in readings.values()):
        return "time is counted twice in the records, so that no figure from them can be trusted"
    if any((trial.get("joined") or {}).get("transactions_in_part") for trial in readings.values()):
        return "no transaction is recorded with all its requests in a trial that entered the verdict"
    if any((trial.get("joined") or {}).get("transactions_not_watched") for trial in readings.values()):
        return "too little of the time was watched in the trials that entered the verdict"
    return "no trial that entered the verdict has transactions with requests"


def _trial(trial: Reading) -> OfTrial:
    return {
        "number": trial["number"],
        "lost": trial["lost"],
        "checks": trial["checks"],
        "boundaries": trial["boundaries"],
        "absent": trial["absent"],
        "counts": trial["counts"],
        "requests": trial["requests"],
        "done": trial["done"],
        "cost": trial["cost"],
        "joined": trial["joined"],
        "sampled": trial["sampled"],
        "sampling": trial["sampling"],
        "syncs": trial["syncs"],
        "faults": trial["faults"],
        "closure": {kind: of_kind["closure"] for kind, of_kind in trial["types"].items()},
    }


def _treatment(blocks: Mapping[int, Reading]) -> OfTreatment:
    trials = list(blocks.values())
    slowest: list[Slowest] = [{"trial": trial["number"], **row} for trial in trials for row in trial["slowest"]]
    slowest.sort(key=lambda row: (-row["latency_ns"], row["trial"], row["index"]))
    return {
        "trials": [trial["number"] for trial in trials],
        "types": {kind: _of_type(blocks, kind) for kind in kinds_of(trials)},
        "slowest": slowest[:SLOWEST_COUNT],
        "system": _system(trials),
        "one_in_max": max(trial["sampling"]["one_in_max"] for trial in trials),
        "syncs": _syncs(trials),
    }


def _syncs(trials: list[Reading]) -> dict[str, Syncs]:
    """Calls that sync, of all the server's processes, by what was synced, over the trials whose file system tells."""
    known = [trial for trial in trials if trial["syncs"]]
    done = sum(trial["done"] or 0 for trial in known)
    counts = {
        what: sum(int(trial["syncs"].get(what) or 0) for trial in known) for trial in known for what in trial["syncs"]
    }
    return {what: {"count": count, "per_transaction": count / done if done else None} for what, count in counts.items()}


def _of_type(blocks: Mapping[int, Reading], kind: str) -> OfType:
    of_kind = [trial["types"][kind] for trial in blocks.values() if kind in trial["types"]]
    bands = {band: band_over_blocks(blocks, kind, band) for band in BANDS}
    closures = [sums["closure"] for sums in of_kind]
    return {
        "bands": bands,
        "beyond_mean": beyond_mean(blocks, kind),
        "closure_share_worst": max(
            (sums["share"] for sums in closures if sums["share"] is not None), key=abs, default=None
        ),
        "absolute_share_max": max((sums["absolute_share"] or 0.0 for sums in closures), default=None),
        "unnamed_share_max": max((sums["unnamed_share"] or 0.0 for sums in closures), default=None),
        **_waits(of_kind, bands),
    }


def _waits(of_kind: list[TypeSums], bands: Mapping[str, Band | None]) -> TypeWaits:
    """Named waits with their nanoseconds a transaction, of all and of the slowest hundredth; and who ended which."""
    every = breakdown_waits.together([sums[MEAN] for sums in of_kind])
    slow = _all_waits([sums[SLOWEST] for sums in of_kind])
    counts = {band: sums["transactions"] if sums else 0 for band, sums in bands.items()}
    waits: list[TypeWait] = []
    for row in every["waits"]:
        spent = slow.get((row["name"], row["bucket"]), 0) if row["bucket"] else None
        waits.append(
            {
                **row,
                "times_per_transaction": row["count"] / counts[MEAN],
                "ns_per_transaction": row["ns"] / counts[MEAN],
                "ns_per_slowest": spent / counts[SLOWEST] if spent is not None and counts[SLOWEST] else None,
            }
        )
    of_slowest = cast(Mapping[str, int], breakdown_waits.reads_together([sums[SLOWEST] for sums in of_kind]))
    reads = cast(dict[str, float | None], {**every[READ]})
    for key in (f"{name}_ns" for name in READ_CAUSES):
        reads[f"{key}_per_transaction"] = (reads[key] or 0) / counts[MEAN]
        reads[f"{key}_per_slowest"] = of_slowest[key] / counts[SLOWEST] if counts[SLOWEST] else None
    nfs_of_slowest = breakdown_waits.nfs_together([sums[SLOWEST] for sums in of_kind])
    nfs: dict[str, TypeSpent] = {}
    for part, sums in every[NFS].items():
        spent = nfs_of_slowest[part]["ns"] if part in nfs_of_slowest else 0
        nfs[part] = {
            **sums,
            "ns_per_transaction": sums["ns"] / counts[MEAN],
            "ns_per_slowest": spent / counts[SLOWEST] if counts[SLOWEST] else None,
        }
    return {"waits": waits, "payers": every["payers"], "data_read": cast(TypeReads, reads), "nfs": nfs}


def _all_waits(bands: list[Waits]) -> dict[tuple[str, str], int]:
    sums: dict[tuple[str, str], int] = {}
    for row in (row for band in bands for row in band["waits"]):
        sums[row["name"], row["bucket"]] = sums.get((row["name"], row["bucket"]), 0) + row["ns"]
    return sums


def _system(trials: list[Reading]) -> list[System]:
    """The server's processes that carry no client's requests, over the trials by what they are.

    Of slices of time there are no figures a transaction: a slice is kept open for what is under way, so that they are
    watched for longer than transactions begin.
    """
    sampled = any(trial["sampling"]["one_in_max"] > 1 for trial in trials)
    done = 0 if sampled else sum(trial["done"] or 0 for trial in trials)
    by_role: dict[str, System] = {}
    for process in (process for trial in trials for process in trial["processes"]):
        what = str(process.get("what") or "unknown")
        nothing: System = {
            "what": what,
            "processes": 0,
            "cpu_ns": 0,
            "run_queue_ns": 0,
            "waits": {},
            "cpu_ns_per_transaction": None,
        }
        row = by_role.setdefault(what, nothing)
        row["processes"] += 1
        row["cpu_ns"] += int(process.get("cpu_ns") or 0)
        row["run_queue_ns"] += int(process.get("run_queue_ns") or 0)
        for name, wait in (process.get("waits") or {}).items():
            sums = row["waits"].setdefault(str(name), {"count": 0, "ns": 0})
            sums["count"] += int(wait.get("count") or 0)
            sums["ns"] += int(wait.get("ns") or 0)
    rows = sorted(by_role.values(), key=lambda row: (-row["cpu_ns"], row["what"]))
    return [{**row, "cpu_ns_per_transaction": row["cpu_ns"] / done if done else None} for row in rows]


def _differences(present: Mapping[str, Mapping[int, Reading]], wanted: list[Pair]) -> list[Difference]:
    differences: list[Difference] = []
    for pair in wanted:
        first, second = present.get(pair["first"]), present.get(pair["second"])
        if not first or not second:
            continue
        for kind in kinds_of([*first.values(), *second.values()]):
            for band in TOLD:
                change = difference(first, second, kind, band)
                by_event = of_latency(first, second, kind, band, is_paired=True)
                if change is not None and by_event is not None:
                    differences.append({**pair, "kind": kind, "band": band, **change, "waits": by_event["waits"]})
    return differences


def _read(run: Run) -> dict[int, Reading]:
    return over_trials(run.trials)


def _trial_caveats(trial: Trial, read: Mapping[int, Reading]) -> list[str]:
    return caveats(read.get(trial.number))


def _judge(context: Context) -> Breakdown | None:
    return breakdown(context.read["breakdown"], context.used, context.treatments, context.comparisons, context.pairs)


PART = Part("breakdown", _judge, needs=("clients", "scaling"), read=_read, trial_caveats=_trial_caveats)
