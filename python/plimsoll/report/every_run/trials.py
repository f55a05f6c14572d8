"""Every trial with its measures, and what entered no verdict and why."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.comparing.unbounded import reading
from plimsoll.analysis.trial.throughput import relative_half_width
from plimsoll.record import Run
from plimsoll.record.judged_trial import Commits, Throughput
from plimsoll.record.verdict import Exclusion, TrialEntry
from plimsoll.report.drawing.tables import NONE, number, short_form
from plimsoll.report.section import Section

Json = dict[str, Any]
_TAIL_CHARS = 4000


def _latency(trial: TrialEntry, key: str) -> str:
    """Milliseconds; of a percentile that has no bound the least it can be."""
    value, is_beyond = reading(trial, key)
    return ("> " if is_beyond else "") + number(value, ",.2f", 1e-6)


def trial_rows(verdict: Json) -> list[Json]:
    """Every trial, entered or not."""
    rows = []
    labels = treatment_labels(verdict)
    trials: list[TrialEntry] = verdict["trials"]
    for trial in trials:
        metrics = trial["metrics"]
        label = labels.get(trial["treatment"], trial["treatment"])
        throughput = metrics.get("throughput_per_second")
        rows.append(
            {
                "number": trial["number"],
                "block": trial["block"],
                "label": label + (" (duplicate)" if trial["duplicate"] else ""),
                "status": "entered"
                if trial["admitted"]
                else "excluded"
                if trial["status"] == "finished"
                else trial["status"],
                "throughput": number(throughput, short_form(throughput)),
                "within": _within(trial["throughput"]),
                "p50": _latency(trial, "latency_ns_p50"),
                "p99": _latency(trial, "latency_ns_p99"),
                "hit": number(metrics.get("database_hit_ratio"), ".1f", 100),
                "reads": number(metrics.get("device_read_bytes_per_transaction"), ",.1f", 1 / 1024),
                "wal": number(metrics.get("wal_bytes_per_transaction"), ",.0f"),
                "fpi": number(metrics.get("full_page_images_per_transaction"), ".2f"),
                "swap": number(metrics.get("swap_bytes_max"), ",.0f", 2.0**-20),
                "swap_in": number(metrics.get("swap_in_pages_per_transaction"), ".2f"),
                "swap_out": number(metrics.get("swap_out_pages_per_transaction"), ".2f"),
                "cpu": number(metrics.get("cpu_busy_share"), ".0f", 100),
                "steal": number(metrics.get("cpu_steal_share"), ".1f", 100),
                "warmup": number(trial["stationary"].get("warmup_seconds"), ".0f"),
                "commits": _commits(trial["commits"]),
            }
        )
    return rows


def _within(throughput: Throughput | None) -> str:
    return number(relative_half_width(throughput), ".1f", 100)


def _commits(commits: Commits) -> str:
    if not commits or commits.get("ok") is None:
        return NONE
    if not commits["ok"]:
        return f"off by {commits['excess']}"
    return f"equal (+{commits['excess']})" if commits["excess"] else "equal"


def exclusions(run: Run, verdict: Json) -> list[Json]:
    """What entered no verdict, with the server's last words."""
    labels = treatment_labels(verdict)
    excluded: list[Exclusion] = verdict["exclusions"]
    tails = {trial.number: trial.data.get("server_log_tail") for trial in run.trials}
    return [
        {
            **entry,
            "label": labels.get(entry["treatment"], entry["treatment"]),
            "tail": str(tails.get(entry["trial"]) or "")[-_TAIL_CHARS:],
        }
        for entry in excluded
    ]


SECTION = Section(
    key="trials",
    title="All trials",
    template="every_run/trials.html.j2",
    context=lambda page: {"trials": trial_rows(page.verdict), "exclusions": exclusions(page.run, page.verdict)},
)
