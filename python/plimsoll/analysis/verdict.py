"""From a run to its verdict: trials judged, treatments estimated, levels compared, everything left out named.

verdict.json holds all the report draws; schema/verdict.md describes it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from plimsoll.analysis import methods, parts
from plimsoll.analysis.admission import admit, commit_words, settle_commits
from plimsoll.analysis.admission_stationary import test_in_words
from plimsoll.analysis.comparing import a_a, unbounded
from plimsoll.analysis.comparing.a_a import Duplicated
from plimsoll.analysis.comparing.compare import ALPHA, DELTA
from plimsoll.analysis.comparing.levels import compare_levels, groups
from plimsoll.analysis.comparing.standing import chosen, twins
from plimsoll.analysis.estimates import estimates
from plimsoll.analysis.metrics import METRICS, judged_of, shown_for
from plimsoll.analysis.part import Context, Pair
from plimsoll.analysis.percentiles import PERCENTILES
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE, grade
from plimsoll.analysis.trial import generator, histograms, latency, placement, throughput
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.analysis.trial.standstill import bounds
from plimsoll.analysis.workloads import of_settings
from plimsoll.record import Run, Trial
from plimsoll.record.judged_trial import Placements
from plimsoll.record.summary import Identity, accounted, summed
from plimsoll.record.trial import SKIPPED
from plimsoll.record.verdict import (
    Comparison,
    Equals,
    GeneratorOfRun,
    IdentityOfRun,
    Mean,
    Treatment,
    TrialEntry,
    Used,
    Verdict,
)

FORMAT = 1
Json = dict[str, Any]


def _trial_entry(run: Run, trial: Trial, read: Mapping[str, Any]) -> TrialEntry:
    values = estimates(trial)
    of_parts: Json = {}
    for part in parts.PARTS:
        if part.of_trial is not None:
            of_parts[part.key] = part.of_trial(run, trial)
            values |= part.trial_values(of_parts[part.key])
    admission = admit(trial, values)
    caveats = [caveat for part in parts.PARTS for caveat in part.trial_caveats(trial, read[part.key])]
    entry: TrialEntry = {
        "number": trial.number,
        "block": trial.block,
        "position": trial.planned.get("position"),
        "treatment": trial.treatment,
        "levels": trial.planned.get("levels") or {},
        "duplicate": trial.duplicate,
        "status": trial.status,
        "admitted": not admission.reasons,
        "reasons": admission.reasons,
        "caveats": admission.caveats + caveats,
        "metrics": values,
        "unbounded": bounds(trial) or None,
        "latency_ns": latency.latency_by_kind(trial.measure),
        "latency_source": latency.source(trial.measure),
        "throughput": throughput.as_json(trial),
        "placement": placement.placement(trial),
        "identity": _summed_identity(trial),
        "errors": trial.measure.errors,
        "commits": admission.commits,
        "generator": admission.generator,
        "stationary": admission.stationary,
    }
    return cast(TrialEntry, {**entry, **of_parts})


def _summed_identity(trial: Trial) -> Identity | None:
    """The measured segment's identity; of several tests their sum, the pass for plans left out."""
    segments = [segment for test, segment in trial.tests if test != "plans"] or [trial.measure]
    identities = [segment.identity for segment in segments if segment.identity]
    if len(identities) < 2:
        return identities[0] if identities else None
    return summed(identities)


def _trials(run: Run, read: Mapping[str, Any]) -> tuple[list[TrialEntry], Placements]:
    """The trials, judged, and how they were placed on the CPUs."""
    entries = [_trial_entry(run, trial, read) for trial in run.trials]
    settle_commits([entry["commits"] for entry in entries])
    for entry in entries:
        if entry["commits"].get("ok") is False:
            entry["caveats"].append(commit_words(entry["commits"]))
    return entries, placement.settle(entries, run.plan)


def _estimate(entries: Iterable[TrialEntry], again: Used, key: str) -> Mean | None:
    metric = METRICS[key]
    readings = [unbounded.together(entry, again.get((entry["block"], entry["treatment"])), metric) for entry in entries]
    return unbounded.estimate(readings, metric)


def _percentile(entries: Iterable[TrialEntry], again: Used, kind: str, name: str) -> Mean | None:
    """A percentile of one kind; those of all kinds together are metrics of the trial, too."""
    key = f"latency_ns_{name}"
    if kind == ALL:
        return _estimate(entries, again, key)
    values = [entry["latency_ns"].get(kind, {}).get(name) for entry in entries]
    return unbounded.estimate([(value, False) for value in values], METRICS[key])


def _treatments(run: Run, entries: list[TrialEntry]) -> dict[str, Treatment]:
    """Every metric of every treatment with its interval over blocks, and latency by kind."""
    used, again, metrics = chosen(entries), twins(entries), shown_for(run.experiment)
    trials = {trial.number: trial for trial in run.trials}
    planned_treatments = run.plan.get("treatments") or {}
    standing = {
        name: [entry for (_, treatment), entry in sorted(used.items()) if treatment == name]
        for name in planned_treatments
    }
    of_parts = {part.key: part.of_treatments(run, standing) for part in parts.PARTS if part.of_treatments is not None}
    result: dict[str, Treatment] = {}
    for name, planned in planned_treatments.items():
        of_treatment = standing[name]
        kinds = sorted({kind for entry in of_treatment for kind in entry["latency_ns"]})
        treatment: Treatment = {
            "label": planned.get("label") or name,
            "levels": planned.get("levels") or {},
            "trials": [entry["number"] for entry in of_treatment],
            "blocks": len(of_treatment),
            "grade": grade(len(of_treatment)),
            "metrics": {key: _estimate(of_treatment, again, key) for key in metrics},
            "latency_ns": {
                kind: {name: _percentile(of_treatment, again, kind, name) for name in PERCENTILES} for kind in kinds
            },
            "latency_merged_ns": histograms.over_trials([trials[entry["number"]].measure for entry in of_treatment]),
        }
        result[name] = cast(
            Treatment, {**treatment, **{key: by_treatment[name] for key, by_treatment in of_parts.items()}}
        )
    return result


def _duplicate_pairs(entries: list[TrialEntry], metric: str) -> list[Duplicated]:
    originals = {
        (entry["block"], entry["treatment"]): entry for entry in entries if entry["admitted"] and not entry["duplicate"]
    }
    pairs: list[Duplicated] = []
    for entry in entries:
        first = originals.get((entry["block"], entry["treatment"]))
        if entry["duplicate"] and entry["admitted"] and first is not None:
            (before, is_before), (after, is_after) = (unbounded.reading(trial, metric) for trial in (first, entry))
            pairs.append(
                {
                    "block": entry["block"],
                    "treatment": entry["treatment"],
                    "first": before,
                    "second": before if is_before and is_after else after,
                    "unbounded": is_before != is_after,
                }
            )
    return pairs


def _generator(entries: list[TrialEntry], placed: Placements) -> GeneratorOfRun:
    """The worst of the admitted trials, and what shared cores alone could explain between two of them."""

    def largest(key: Literal["core_share", "busy_share", "lag_share", "explains_ratio"]) -> float | None:
        return max((entry["generator"].get(key) or 0.0 for entry in admitted), default=None)

    def worst(key: Literal["own_lag_share", "connections_busy_share"]) -> float | None:
        known = [share for entry in admitted if (share := entry["generator"].get(key)) is not None]
        return max(known, default=None)

    admitted = [entry for entry in entries if entry["admitted"]]
    shares = [share for entry in admitted if (share := entry["generator"].get("core_share"))]
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
        "placement": placed,
    }


def _identity(entries: list[TrialEntry]) -> IdentityOfRun:
    """Of all trials together, and whether it adds up."""
    total = summed([entry["identity"] for entry in entries if entry["identity"] is not None])
    return {**total, "holds": total["planned"] == accounted(total)}


def _caveats(run: Run, entries: list[TrialEntry], evidence: Equals, comparisons: list[Comparison]) -> list[str]:
    caveats = []
    if run.data.get("quick"):
        caveats.append("quick: few levels and short trials; run the experiment without --quick before deciding by it")
    if run.data.get("left_out"):
        caveats.append(f"levels that this machine cannot give were left out: {'; '.join(run.data['left_out'])}")
    if run.data.get("status") not in (None, "finished"):
        caveats.append(f"the run is {run.data.get('status')}: blocks that did not run are missing")
    few = [comparison for comparison in comparisons if comparison["grade"] == "indicative"]
    if few:
        usual = all(comparison["blocks_min"] >= BLOCKS_MIN for comparison in few)
        caveats.append(f"{'three or four' if usual else 'fewer than five'} blocks: the intervals are indicative")
    if evidence["ratio_spread"] is None:
        caveats.append("no A/A evidence: how much two equal trials differ here is not known")
    own = evidence["within_run"]
    if own and own["low"] is not None and own["high"] is not None and not own["low"] <= 1 <= own["high"]:
        caveats.append(
            f"the A/A pair inside this run differs: ratio {own['ratio']:.3f} [{own['low']:.3f}, {own['high']:.3f}]"
        )
    counted: dict[str, list[int]] = {}
    for entry in (one for one in entries if one["admitted"]):  # what does not enter makes no verdict doubtful
        for caveat in entry["caveats"]:
            counted.setdefault(caveat, []).append(entry["number"])
    for caveat, numbers in counted.items():
        where = f"trial {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} trials"
        caveats.append(f"{where}: {caveat}")
    return caveats


def read_by_parts(run: Run) -> Json:
    """What the parts read of a record, by key: given to `analyse`, it is not read again."""
    return {part.key: part.read(run) for part in parts.PARTS}


def _judge_parts(context: Context) -> Json:
    """Every part that applies, as verdict.json has them."""
    document: Json = {}
    judged: dict[str, Any] = {}
    pairs: list[Pair] = []
    for part in parts.PARTS:
        if part.judge is None:
            continue
        part_verdict = judged[part.key] = part.judge(replace(context, parts=judged, pairs=pairs))
        pairs = pairs + part.pairs(part_verdict)
        if part_verdict is not None or part.is_null_where_absent:
            document[part.key] = part_verdict
    return document


def analyse(run: Run, read: Mapping[str, Any] | None = None) -> Json:
    """The verdict of a run; a pure function of its record. `read`: what `read_by_parts` gave, if at hand."""
    read = read_by_parts(run) if read is None else read
    entries, placed = _trials(run, read)
    judged = judged_of(run.plan, run.experiment)
    evidence = a_a.spread(a_a.within_run(_duplicate_pairs(entries, judged), judged), run.data.get("a_a"), judged)
    relevant = float(
        run.plan.get("relevant_ratio") or (run.experiment.get("design") or {}).get("relevant_ratio") or 1 + DELTA
    )
    spread_log = math.log(evidence["ratio_spread"]) if evidence["ratio_spread"] else 0.0
    used = chosen(entries)
    method = methods.method_of(run, METRICS[judged], a_a.stored_noise(run.data.get("a_a"), judged))
    comparisons = [
        compare_levels(group, used, twins(entries), METRICS[judged], relevant - 1, method)
        for group in groups(run.plan, run.experiment)
    ]
    treatments, unit = _treatments(run, entries), of_settings(run.experiment).unit
    context = Context(run, read, used, comparisons, treatments, relevant - 1, spread_log, {}, [], twins(entries))
    of_parts = [caveat for part in parts.PARTS for caveat in part.caveats(context)]
    core: Verdict = {
        "format": FORMAT,
        "run": run.data.get("id"),
        "experiment": run.data.get("experiment"),
        "title": run.data.get("title") or run.data.get("experiment"),
        "quick": bool(run.data.get("quick")),
        "metric": judged,
        "unit_of_work": unit,
        "relevant_ratio": relevant,
        "alpha": ALPHA,
        "confidence": CONFIDENCE,
        "blocks": max((entry["block"] for entry in entries if entry["status"] != SKIPPED), default=0),
        "comparisons": comparisons,
        "treatments": treatments,
        "trials": entries,
        "a_a": evidence,
        "generator": _generator(entries, placed),
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
            if not entry["admitted"] and entry["status"] != SKIPPED
        ],
        "caveats": _caveats(run, entries, evidence, comparisons) + of_parts,
        "stationarity_test": test_in_words([entry["stationary"] for entry in entries]),
        "metrics": {
            key: {"label": m.label, "unit": m.unit, "scale": m.scale, "definition": m.definition}
            for key in shown_for(run.experiment)
            for m in (METRICS[key].of(unit),)
        },
    }
    return {**core, **_judge_parts(context)}
