"""What watching a server found: breakdown.json, a pure function of the record (schema/breakdown.md)."""

from __future__ import annotations

import numpy as np

from plimsoll.analysis.watch.document import Cost, LooksTaken, WatchDocument, Watched, WatchedServer
from plimsoll.analysis.watch.record import activity, replay
from plimsoll.analysis.watch.slowest import transactions
from plimsoll.analysis.watch.statements import caveats, headline
from plimsoll.record import RecordError, Run, Segment, read_table
from plimsoll.record.summary import Probe

FORMAT = 1
TOP = 20


def analyse_live(run: Run, top: int | None = None) -> WatchDocument:
    """The document. Raises RecordError where the watch left too little."""
    if not run.trials:
        raise RecordError(f"{run.path}: nothing was watched; watch again")
    segment = run.trials[0].measure
    names, asked = activity(segment), run.data.get("breakdown") or {}
    probe = segment.probes.get("breakdown") or {}
    picture = replay(segment)
    watched: Watched = {
        "format": FORMAT,
        "run": str(run.data.get("id") or run.path.name),
        "status": run.data.get("status"),
        "started_epoch_ns": run.data.get("started_epoch_ns"),
        "asked_seconds": asked.get("seconds"),
        "server": asked.get("server") or WatchedServer(),
        "session": names["session"] or {},
        **picture.document(int(top or asked.get("top") or TOP)),
        "looks": looks_taken(segment),
        "latency": transactions(segment, probe, names["own_pids"], names) if probe.get("buckets") else None,
        "cost": cost(segment, probe),
        "probe": {
            "status": probe.get("status"),
            "reason": probe.get("reason"),
            "lost": _losses(probe),
            "boundaries": probe.get("boundaries") or {},
        },
        "ended_early": asked.get("ended_early"),
    }
    return {**watched, "headline": headline(watched), "caveats": caveats(watched)}


def looks_taken(segment: Segment) -> LooksTaken | None:
    """How many looks there were and what they took; None without any."""
    looks = read_table(segment.path / "looks.npy")
    if looks is None or not len(looks):
        return None
    took = looks["took_ns"]
    span = int(looks["t_ns"][-1] - looks["t_ns"][0])
    return {
        "count": len(looks),
        "per_second": (len(looks) - 1) / span * 1e9 if span > 0 else None,
        "took_ns_p50": float(np.percentile(took, 50)),
        "took_ns_p99": float(np.percentile(took, 99)),
    }


def cost(segment: Segment, probe: Probe) -> Cost:
    """Shares of the machine's CPU time that watching took: the probe's programs, the looks, Plimsoll's processes."""
    summary = segment.told
    own = summary.get("instrument") or {}
    begin, end, cpus = summary.get("started_ns"), summary.get("ended_ns"), own.get("cpus")
    room = (end - begin) * cpus if begin is not None and end is not None and cpus else 0
    taken = probe.get("cost") or {}
    run_ns, over = taken.get("run_ns"), (taken.get("segment_ns") or 0) * (cpus or 0)
    looks = [own[key] for key in ("session_cpu_ns", "looker_cpu_ns") if own.get(key) is not None]
    own_cpu_ns = [own[key] for key in ("agent_cpu_ns", "front_cpu_ns") if own.get(key) is not None]
    return {
        "probe_share": run_ns / over if run_ns is not None and over else None,
        "looks_share": sum(looks) / room if room and looks else None,
        "plimsoll_share": sum(own_cpu_ns) / room if room and own_cpu_ns else None,
        "cpus": cpus,
    }


def _losses(probe: Probe) -> dict[str, int]:
    return {what: count for what, count in (probe.get("lost") or {}).items() if count}
