"""What the device read, set against what the page-cache probe saw brought: explained by part, and a remainder.

The remainder may be of either sign. Above zero: other users of the device, the file system's own metadata, swap of
others, files that are not the target's. Below zero: pages that no device has to read (holes, parts just written) and
pages whose read was already under way when the segment began.
"""

from collections.abc import Collection, Mapping
from typing import Final

from plimsoll.analysis.caches.document import (
    Brought,
    BroughtPart,
    DeviceReads,
    MeanDeviceReads,
    PartOfReads,
    Reconciliation,
    Swap,
)
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.page_cache import added, column, probe, totals
from plimsoll.analysis.trial.readings import SECTOR_BYTES, device_counter, grown, per
from plimsoll.record import Run, Trial
from plimsoll.record.summary import Probe
from plimsoll.record.verdict import Treatment, TrialEntry

UNEXPLAINED_MAX = 0.05
PARTS: Final[dict[PartOfReads, str]] = {
    "demand_bytes": "asked for and missed",
    "ahead_used_bytes": "prefetched, used",
    "ahead_unused_bytes": "prefetched, not seen used",
    "other_bytes": "loaded otherwise",
    "swap_in_bytes": "swapped in",
    "unexplained_bytes": "unexplained",
}
BROUGHT: Final[tuple[BroughtPart, ...]] = ("demand_bytes", "ahead_used_bytes", "ahead_unused_bytes", "other_bytes")
_NOTHING: Final[Brought] = {"demand_bytes": 0.0, "ahead_used_bytes": 0.0, "ahead_unused_bytes": 0.0, "other_bytes": 0.0}
RULE = (
    "device reads are the sectors read from the data's device around the measured segment; explained by pages asked "
    "for and missed, pages prefetched (used: as many as were first asked for in the segment, at most those prefetched "
    "in it), pages added otherwise or by reads of unknown range, of every file class, and by pages swapped in on the "
    "whole host; pages added by writes are not read; the remainder is what is left, of either sign: above zero other "
    "users of the device (its other partitions too), metadata and files that are not the server's, below it holes and "
    "reads begun before the segment"
)


def swap_of(run: Run) -> Swap:
    """Whether pages swapped in were read from the data's device: {counted, note}.

    Our swap file lies on the data's file system. Of areas that were there before only their names are known.
    """
    ours = bool((run.experiment.get("environment") or {}).get("swap"))
    names = [str(area.get("path")) for area in run.fingerprint.get("swap") or [] if isinstance(area, dict)]
    in_memory = [name for name in names if "/zram" in name]
    others = [name for name in names if name not in in_memory]
    if in_memory and not ours and not others:
        return {"counted": False, "note": f"swap lies in memory ({', '.join(in_memory)}): swapping in reads no device"}
    if names:
        note = f"swap that was there before ({', '.join(names)}) is counted as if it lay on the data's device"
        return {"counted": True, "note": note}
    return {"counted": True, "note": None}


def _class_parts(entry: Probe, columns: Mapping[str, int], page: float) -> Brought | None:
    """One file class in bytes: missed by reads and faults, brought ahead, used of it, otherwise."""

    def value(name: str) -> float | None:
        return column(entry, columns, name)

    demand = added(value("read_missed_pages"), value("fault_missed_pages"))
    ahead = added(value("readahead_pages"), value("prefetch_pages"))
    other = added(value("other_pages"), value("unsettled_pages"))
    used = value("ahead_used_pages")
    if demand is None or ahead is None or other is None or used is None:
        return None
    used = min(used, ahead)
    return {
        "demand_bytes": demand * page,
        "ahead_used_bytes": used * page,
        "ahead_unused_bytes": (ahead - used) * page,
        "other_bytes": other * page,
    }


def reconcile(trial: Trial, swap_counted: bool = True) -> DeviceReads | None:
    """One trial's device reads by part, in bytes; None where the probe or the device's counters are missing."""
    entry, by_class = probe(trial.measure, "page_cache"), totals(trial.measure, "page_cache")
    if entry is None or by_class is None or not entry.get("page_bytes"):
        return None
    page = float(entry["page_bytes"])
    sectors = device_counter(trial, "read_sectors")
    classes = {name: _class_parts(entry, columns, page) for name, columns in by_class.items()}
    known = {name: parts for name, parts in classes.items() if parts is not None}
    if sectors is None or len(known) < len(classes):
        return None
    pswpin = grown(trial.measure, "host", "pswpin") if swap_counted else 0.0
    device_bytes, swap_in_bytes = sectors * SECTOR_BYTES, None if pswpin is None else pswpin * page
    brought = _summed(known.values())
    unexplained_bytes = device_bytes - sum((*(brought[part] for part in BROUGHT), swap_in_bytes or 0.0))
    return {
        "device_bytes": device_bytes,
        **brought,
        "swap_in_bytes": swap_in_bytes,
        "unexplained_bytes": unexplained_bytes,
        "unexplained_share": per(unexplained_bytes, device_bytes),
        "classes": {name: parts for name, parts in known.items() if any(parts.values())},
    }


def _summed(parts: Collection[Brought]) -> Brought:
    return {
        "demand_bytes": sum(one["demand_bytes"] for one in parts),
        "ahead_used_bytes": sum(one["ahead_used_bytes"] for one in parts),
        "ahead_unused_bytes": sum(one["ahead_unused_bytes"] for one in parts),
        "other_bytes": sum(one["other_bytes"] for one in parts),
    }


def _mean(parts: Collection[Brought]) -> Brought:
    sums, count = _summed(parts), len(parts)
    return {
        "demand_bytes": sums["demand_bytes"] / count,
        "ahead_used_bytes": sums["ahead_used_bytes"] / count,
        "ahead_unused_bytes": sums["ahead_unused_bytes"] / count,
        "other_bytes": sums["other_bytes"] / count,
    }


def over_trials(reconciliations: list[DeviceReads]) -> MeanDeviceReads | None:
    """The mean over a treatment's trials, one a block; the share is of the means."""
    if not reconciliations:
        return None
    blocks = len(reconciliations)
    swapped = [one["swap_in_bytes"] for one in reconciliations if one["swap_in_bytes"] is not None]
    device_bytes = sum(one["device_bytes"] for one in reconciliations) / blocks
    unexplained_bytes = sum(one["unexplained_bytes"] for one in reconciliations) / blocks
    share = per(unexplained_bytes, device_bytes)
    names = dict.fromkeys(name for one in reconciliations for name in one["classes"])
    return {
        "device_bytes": device_bytes,
        **_mean(reconciliations),
        "swap_in_bytes": sum(swapped) / len(swapped) if swapped else None,
        "unexplained_bytes": unexplained_bytes,
        "unexplained_share": share,
        # Where the device read nothing there is no share, and anything that was brought is too much.
        "exceeds": bool(unexplained_bytes) if share is None else abs(share) > UNEXPLAINED_MAX,
        "classes": {name: _mean([one["classes"].get(name, _NOTHING) for one in reconciliations]) for name in names},
        "blocks": blocks,
    }


def caveats(treatments: Mapping[str, Treatment], labels: dict[str, str]) -> list[str]:
    """Where more than UNEXPLAINED_MAX of the device reads is not explained, with the amount."""
    parts = []
    for name, entry in treatments.items():
        reconciliation: MeanDeviceReads | None = entry.get("reconciliation")
        if reconciliation and reconciliation["exceeds"]:
            share = reconciliation["unexplained_share"]
            percent = f"{share:+.1%} of " if share is not None else "beside "
            amount, read = reconciliation["unexplained_bytes"] / 1e6, reconciliation["device_bytes"] / 1e6
            parts.append(f"{labels.get(name, name)}: {percent}{read:,.1f} MB read ({amount:+,.1f} MB)")
    if not parts:
        return []
    return [f"device reads that the page-cache probe does not explain exceed {UNEXPLAINED_MAX:.0%}: {'; '.join(parts)}"]


def _of_trial(run: Run, trial: Trial) -> DeviceReads | None:
    return reconcile(trial, swap_of(run)["counted"])


def _values(reconciliation: DeviceReads | None) -> dict[str, float | None]:
    return {"device_read_unexplained_share": None if reconciliation is None else reconciliation["unexplained_share"]}


def _of_treatments(_run: Run, entries: Mapping[str, list[TrialEntry]]) -> dict[str, MeanDeviceReads | None]:
    return {
        name: over_trials([reconciliation for entry in of_treatment if (reconciliation := entry["reconciliation"])])
        for name, of_treatment in entries.items()
    }


def _judge(context: Context) -> Reconciliation:
    return {"rule": RULE, "parts": PARTS, "swap_note": swap_of(context.run)["note"]}


def _caveats(context: Context) -> list[str]:
    labels = treatment_labels({"treatments": context.treatments, "comparisons": context.comparisons})
    return caveats(context.treatments, labels)


PART = Part(
    "reconciliation",
    _judge,
    of_trial=_of_trial,
    trial_values=_values,
    of_treatments=_of_treatments,
    caveats=_caveats,
)
