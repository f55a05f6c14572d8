"""From a run to its verdict: trials judged, treatments estimated, levels compared, everything left out named.

verdict.json holds all the report draws; schema/verdict.md describes it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.analysis.admission import admit, commit_words, settle_commits
from plimsoll.analysis.breakdown import breakdown
from plimsoll.analysis.caches import double_caching, reconcile
from plimsoll.analysis.comparing import a_a, unbounded
from plimsoll.analysis.comparing.compare import ALPHA, DELTA
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.comparing.levels import Group, compare_levels, groups
from plimsoll.analysis.decision_support import run as decision_support_run
from plimsoll.analysis.estimates import estimates
from plimsoll.analysis.metrics import METRICS, judged_of, shown_for
from plimsoll.analysis.order_entry import order_entry
from plimsoll.analysis.percentiles import PERCENTILES
from plimsoll.analysis.probes import block_requests, instruments, profile, syscalls
from plimsoll.analysis.statistics import stationary
from plimsoll.analysis.statistics.intervals import CONFIDENCE, grade
from plimsoll.analysis.studies import clients, memory_scaling, scaling
from plimsoll.analysis.trial import generator, histograms, latency, placement, throughput
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record import Run, Trial

FORMAT = 1
Json = dict[str, Any]


def _trial_entry(trial: Trial, swap_counted: bool) -> Json:
    values = estimates(trial)
    reconciled = reconcile.reconcile(trial, swap_counted)
    values["device_read_unexplained_share"] = None if reconciled is None else reconciled["unexplained_share"]
    admission = admit(trial, values)
    summary = trial.measure.summary or {}
    least = {f"latency_ns_{name}": value for name, value in latency.unbounded(trial.measure).items()}
    return {
        "number": trial.number,
        "block": trial.block,
        "position": trial.planned.get("position"),
        "treatment": trial.treatment,
        "levels": trial.planned.get("levels") or {},
        "duplicate": trial.duplicate,
        "status": trial.status,
        "admitted": not admission.reasons,
        "reasons": admission.reasons,
        "caveats": admission.caveats + instruments.caveats(trial),
        "metrics": values,
        "unbounded": least or None,
        "latency_ns": latency.latency_by_kind(trial.measure),
        "latency_source": latency.source(trial.measure),
        "throughput": throughput.as_json(trial.measure),
        "placement": placement.placement(trial),
        "identity": _summed_identity(trial),
        "errors": summary.get("errors") or [],
        "commits": admission.commits,
        "generator": admission.generator,
        "stationary": admission.stationary,
        "reconciliation": reconciled,
    }


def _summed_identity(trial: Trial) -> Json | None:
    """The measured segment's identity; of several tests their sum, the pass for plans left out."""
    segments = [segment for test, segment in trial.tests if test != "plans"] or [trial.measure]
    found = [identity for one in segments if (identity := (one.summary or {}).get("identity"))]
    if len(found) < 2:
        return found[0] if found else None
    return {key: sum(int(one.get(key) or 0) for one in found) for key in found[0]}


def _trials(run: Run, timed: Mapping[int, Json]) -> tuple[list[Json], Json]:
    """The trials, judged, and how they were placed on the CPUs."""
    swap_counted = bool(reconcile.swap_of(run)["counted"])
    entries = [_trial_entry(trial, swap_counted) for trial in run.trials]
    settle_commits([entry["commits"] for entry in entries])
    for entry in entries:
        entry["caveats"] += breakdown.caveats(timed.get(entry["number"]))
        if entry["commits"].get("ok") is False:
            entry["caveats"].append(commit_words(entry["commits"]))
    return entries, placement.settle(entries, run.plan)


def chosen(entries: list[Json]) -> dict[tuple[int, str], Json]:
    """The trial that stands for each (block, treatment): the original, or its duplicate where that did not enter."""
    result: dict[tuple[int, str], Json] = {}
    for entry in sorted(entries, key=lambda entry: bool(entry["duplicate"])):
        if entry["admitted"]:
            result.setdefault((entry["block"], entry["treatment"]), entry)
    return result


def _estimate(entries: Iterable[Json], key: str) -> Json | None:
    return unbounded.estimate([unbounded.reading(entry, key) for entry in entries], METRICS[key])


def _percentile(entries: Iterable[Json], kind: str, name: str) -> Json | None:
    """A percentile of one kind; those of all kinds together are metrics of the trial, too."""
    key = f"latency_ns_{name}"
    if kind == ALL:
        return _estimate(entries, key)
    values = [entry["latency_ns"].get(kind, {}).get(name) for entry in entries]
    return unbounded.estimate([(value, False) for value in values], METRICS[key])


def _treatments(run: Run, entries: list[Json]) -> Json:
    """Every metric of every treatment with its interval over blocks, and latency by kind."""
    used, metrics = chosen(entries), shown_for(run.experiment)
    trials = {trial.number: trial for trial in run.trials}
    shown = double_caching.shown_relations([trials[entry["number"]] for entry in used.values()])
    result: Json = {}
    for name, planned in (run.plan.get("treatments") or {}).items():
        mine = [entry for (_, treatment), entry in sorted(used.items()) if treatment == name]
        kinds = sorted({kind for entry in mine for kind in entry["latency_ns"]})
        result[name] = {
            "label": planned.get("label") or name,
            "levels": planned.get("levels") or {},
            "trials": [entry["number"] for entry in mine],
            "blocks": len(mine),
            "grade": grade(len(mine)),
            "metrics": {key: _estimate(mine, key) for key in metrics},
            "latency_ns": {kind: {name: _percentile(mine, kind, name) for name in PERCENTILES} for kind in kinds},
            "latency_merged_ns": histograms.over_trials([trials[entry["number"]].measure for entry in mine]),
            "reconciliation": reconcile.over_trials([one for entry in mine if (one := entry["reconciliation"])]),
            "double_caching": double_caching.over_trials([trials[entry["number"]] for entry in mine], shown),
        }
    return result


def twins(entries: list[Json]) -> dict[tuple[int, str], Json]:
    """The duplicates whose originals were admitted as well, by (block, treatment)."""
    places = {(entry["block"], entry["treatment"]) for entry in entries if entry["admitted"] and not entry["duplicate"]}
    found = {(entry["block"], entry["treatment"]): entry for entry in entries if entry["duplicate"]}
    return {place: entry for place, entry in found.items() if entry["admitted"] and place in places}


def _duplicate_pairs(entries: list[Json], metric: str) -> list[Json]:
    originals = {
        (entry["block"], entry["treatment"]): entry for entry in entries if entry["admitted"] and not entry["duplicate"]
    }
    pairs = []
    for entry in entries:
        first = originals.get((entry["block"], entry["treatment"]))
        if entry["duplicate"] and entry["admitted"] and first is not None:
            (one, is_one), (two, is_two) = (unbounded.reading(trial, metric) for trial in (first, entry))
            pairs.append(
                {
                    "block": entry["block"],
                    "treatment": entry["treatment"],
                    "first": one,
                    "second": one if is_one and is_two else two,
                    "unbounded": is_one != is_two,
                }
            )
    return pairs


def _generator(entries: list[Json]) -> Json:
    """The worst of the admitted trials, and what shared cores alone could explain between two of them."""

    def largest(key: str) -> float | None:
        return max((entry["generator"].get(key) or 0.0 for entry in admitted), default=None)

    def worst(key: str) -> float | None:
        known = [entry["generator"][key] for entry in admitted if entry["generator"].get(key) is not None]
        return max(known, default=None)

    admitted = [entry for entry in entries if entry["admitted"]]
    shares = [entry["generator"]["core_share"] for entry in admitted if entry["generator"].get("core_share")]
    shared = any(entry["generator"].get("shares_cores") for entry in admitted)
    between = (1 - min(shares)) / (1 - max(shares)) if shares and max(shares) < 1 else None
    return {
        "rule": generator.RULE,
        "blocked_trials": [entry["number"] for entry in entries if entry["generator"].get("limit")],
        "shares_cores": shared if admitted else None,
        "core_share_max": largest("core_share"),
        "busy_share_max": largest("busy_share"),
        "lag_share_max": largest("lag_share"),
        "own_lag_share_max": worst("own_lag_share"),
        "connections_busy_share_max": worst("connections_busy_share"),
        "explains_ratio_max": largest("explains_ratio") or None,
        "explains_between_trials_ratio": between if shared else None,
    }


def _identity(entries: list[Json]) -> Json:
    total = dict.fromkeys(("planned", "done", "failed", "skipped", "lost"), 0)
    for entry in entries:
        for key in total:
            total[key] += int((entry["identity"] or {}).get(key) or 0)
    holds = total["planned"] == sum(total[key] for key in ("done", "failed", "skipped", "lost"))
    return {**total, "holds": holds}


def _caveats(run: Run, entries: list[Json], evidence: Json, comparisons: list[Json]) -> list[str]:
    found = []
    if run.data.get("quick"):
        found.append("quick: few levels and short trials; run the experiment without --quick before deciding by it")
    if run.data.get("left_out"):
        found.append(f"levels that this machine cannot give were left out: {'; '.join(run.data['left_out'])}")
    if run.data.get("status") not in (None, "finished"):
        found.append(f"the run is {run.data.get('status')}: blocks that did not run are missing")
    if any(comparison["grade"] == "indicative" for comparison in comparisons):
        found.append("three or four blocks: the intervals are indicative")
    if evidence["ratio_spread"] is None:
        found.append("no A/A evidence: how much two equal trials differ here is not known")
    own = evidence["within_run"]
    if own and own["low"] is not None and not own["low"] <= 1 <= own["high"]:
        found.append(
            f"the A/A pair inside this run differs: ratio {own['ratio']:.3f} [{own['low']:.3f}, {own['high']:.3f}]"
        )
    counted: dict[str, list[int]] = {}
    for entry in entries:
        for caveat in entry["caveats"]:
            counted.setdefault(caveat, []).append(entry["number"])
    for caveat, numbers in counted.items():
        where = f"trial {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} trials"
        found.append(f"{where}: {caveat}")
    return found


def analyse(run: Run, timed: Mapping[int, Json] | None = None) -> Json:
    """The verdict of a run; a pure function of its record. `timed`: its breakdowns by trial, where they are read."""
    if timed is None:
        timed = breakdown.over_trials(run.trials)
    entries, placed = _trials(run, timed)
    judged = judged_of(run.plan, run.experiment)
    evidence = a_a.spread(a_a.within_run(_duplicate_pairs(entries, judged), judged), run.data.get("a_a"), judged)
    relevant = float(
        run.plan.get("relevant_ratio") or (run.experiment.get("design") or {}).get("relevant_ratio") or 1 + DELTA
    )
    found: list[Group] = groups(run.plan, run.experiment)
    spread_log = math.log(evidence["ratio_spread"]) if evidence["ratio_spread"] else 0.0
    used = chosen(entries)
    noise = a_a.stored_noise(run.data.get("a_a"), judged)
    comparisons = [compare_levels(group, used, twins(entries), METRICS[judged], relevant - 1, noise) for group in found]
    treatments = _treatments(run, entries)
    labels = treatment_labels({"treatments": treatments, "comparisons": comparisons})
    by_clients = clients.clients(run.plan, run.experiment, used, relevant - 1)
    scaled = scaling.scaling(run.plan, run.experiment, used, relevant - 1)
    by_memory = memory_scaling.memory_scaling(run.plan, run.experiment, used, relevant - 1, spread_log)
    split = breakdown.breakdown(timed, used, treatments, comparisons, by_clients, scaling.pairs(scaled))
    by_rules = order_entry.order_entry(run, used)
    by_tests = decision_support_run.decision_support(run, used, comparisons, split, relevant - 1, spread_log)
    sampled = profile.profile(run.trials, used, treatments)
    called = syscalls.system_calls(run, used)
    requested = block_requests.block_requests(run, used)
    swap_note = reconcile.swap_of(run)["note"]
    return {
        "format": FORMAT,
        "run": run.data.get("id"),
        "experiment": run.data.get("experiment"),
        "title": run.data.get("title") or run.data.get("experiment"),
        "quick": bool(run.data.get("quick")),
        "metric": judged,
        "relevant_ratio": relevant,
        "alpha": ALPHA,
        "confidence": CONFIDENCE,
        "blocks": max((entry["block"] for entry in entries), default=0),
        "comparisons": comparisons,
        "treatments": treatments,
        "trials": entries,
        "a_a": evidence,
        "generator": _generator(entries) | {"placement": placed},
        "clients": by_clients,
        "scaling": scaled,
        "memory_scaling": by_memory,
        **({} if split is None else {"breakdown": split}),
        **({} if sampled is None else {"profile": sampled, "off_cpu": profile.off_cpu(split)}),
        **({} if by_rules is None else {"order_entry": by_rules}),
        **({} if by_tests is None else {"decision_support": by_tests}),
        **({} if called is None else {"syscalls": called}),
        **({} if requested is None else {"block": requested}),
        "throughput_method": throughput.METHOD,
        "identity": _identity(entries),
        "exclusions": [
            {
                "trial": entry["number"],
                "treatment": entry["treatment"],
                "block": entry["block"],
                "reasons": entry["reasons"],
            }
            for entry in entries
            if not entry["admitted"]
        ],
        "instruments": instruments.instruments(run.trials),
        "double_caching_absent": double_caching.absent(run.trials),
        "reconciliation": {"rule": reconcile.RULE, "parts": reconcile.PARTS, "swap_note": swap_note},
        "caveats": _caveats(run, entries, evidence, comparisons) + reconcile.caveats(treatments, labels),
        "stationarity_test": stationary.TEST,
        "metrics": {
            key: {"label": m.label, "unit": m.unit, "scale": m.scale, "definition": m.definition}
            for key in shown_for(run.experiment)
            for m in (METRICS[key],)
        },
    }
