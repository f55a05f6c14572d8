"""What the device read, set against what the page-cache probe saw brought: explained by part, and a remainder.

The remainder may be of either sign. Above zero: other users of the device, the file system's own metadata, swap of
others, files that are not the target's. Below zero: pages that no device has to read (holes, parts just written) and
pages whose read was already under way when the segment began.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.page_cache import added, column, probe, totals
from plimsoll.analysis.trial.readings import SECTOR_BYTES, device_counter, grown, per
from plimsoll.record import Run, Trial
from plimsoll.record.summary import Probe
from plimsoll.record.verdict import Treatment, TrialEntry

Json = dict[str, Any]
UNEXPLAINED_MAX = 0.05
PARTS = {
    "demand_bytes": "asked for and missed",
    "ahead_used_bytes": "prefetched, used",
    "ahead_unused_bytes": "prefetched, not seen used",
    "other_bytes": "loaded otherwise",
    "swap_in_bytes": "swapped in",
    "unexplained_bytes": "unexplained",
}
RULE = (
    "device reads are the sectors read from the data's device around the measured segment; explained by pages asked "
    "for and missed, pages prefetched (used: as many as were first asked for in the segment, at most those prefetched "
    "in it), pages added otherwise or by reads of unknown range, of every file class, and by pages swapped in on the "
    "whole host; pages added by writes are not read; the remainder is what is left, of either sign: above zero other "
    "users of the device (its other partitions too), metadata and files that are not the server's, below it holes and "
    "reads begun before the segment"
)


def swap_of(run: Run) -> Json:
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


def _class_parts(entry: Probe, columns: Json, page: float) -> Json | None:
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
    pages = {"demand_bytes": demand, "ahead_used_bytes": used, "ahead_unused_bytes": ahead - used, "other_bytes": other}
    return {name: count * page for name, count in pages.items()}


def reconcile(trial: Trial, swap_counted: bool = True) -> Json | None:
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
    result: Json = {"device_bytes": sectors * SECTOR_BYTES}
    for part in ("demand_bytes", "ahead_used_bytes", "ahead_unused_bytes", "other_bytes"):
        result[part] = sum(parts[part] for parts in known.values())
    result["swap_in_bytes"] = None if pswpin is None else pswpin * page
    explained = sum(value or 0.0 for part, value in result.items() if part != "device_bytes")
    result["unexplained_bytes"] = result["device_bytes"] - explained
    result["unexplained_share"] = per(result["unexplained_bytes"], result["device_bytes"])
    result["classes"] = {name: parts for name, parts in known.items() if any(parts.values())}
    return result


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def over_trials(reconciliations: list[Json]) -> Json | None:
    """The mean over a treatment's trials, one a block; the share is of the means."""
    if not reconciliations:
        return None
    result: Json = {
        key: _mean(reconciliation[key] for reconciliation in reconciliations) for key in ("device_bytes", *PARTS)
    }
    names = dict.fromkeys(name for reconciliation in reconciliations for name in reconciliation["classes"])
    result["unexplained_share"] = per(result["unexplained_bytes"], result["device_bytes"])
    result["exceeds"] = _exceeds(result)
    result["classes"] = {
        name: {
            part: sum((reconciliation["classes"].get(name) or {}).get(part, 0.0) for reconciliation in reconciliations)
            / len(reconciliations)
            for part in ("demand_bytes", "ahead_used_bytes", "ahead_unused_bytes", "other_bytes")
        }
        for name in names
    }
    result["blocks"] = len(reconciliations)
    return result


def _exceeds(reconciliation: Json) -> bool:
    share = reconciliation["unexplained_share"]
    if share is None:  # the device read nothing
        return bool(reconciliation["unexplained_bytes"])
    return abs(float(share)) > UNEXPLAINED_MAX


def caveats(treatments: Mapping[str, Treatment], labels: dict[str, str]) -> list[str]:
    """Where more than UNEXPLAINED_MAX of the device reads is not explained, with the amount."""
    parts = []
    for name, entry in treatments.items():
        reconciliation = entry.get("reconciliation")
        if reconciliation and reconciliation["exceeds"]:
            share = reconciliation["unexplained_share"]
            percent = f"{share:+.1%} of " if share is not None else "beside "
            amount, read = reconciliation["unexplained_bytes"] / 1e6, reconciliation["device_bytes"] / 1e6
            parts.append(f"{labels.get(name, name)}: {percent}{read:,.1f} MB read ({amount:+,.1f} MB)")
    if not parts:
        return []
    return [f"device reads that the page-cache probe does not explain exceed {UNEXPLAINED_MAX:.0%}: {'; '.join(parts)}"]


def _of_trial(run: Run, trial: Trial) -> Json | None:
    return reconcile(trial, bool(swap_of(run)["counted"]))


def _values(reconciliation: Json | None) -> dict[str, float | None]:
    return {"device_read_unexplained_share": None if reconciliation is None else reconciliation["unexplained_share"]}


def _of_treatments(_run: Run, entries: Mapping[str, list[TrialEntry]]) -> Json:
    return {
        name: over_trials([reconciliation for entry in of_treatment if (reconciliation := entry["reconciliation"])])
        for name, of_treatment in entries.items()
    }


def _judge(context: Context) -> Json:
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
