"""The profile on the page: flame graphs on the CPUs and off them, functions by share, what has no name and why."""

import re
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.document import Box, Locks, LockWait, Profile, Share, Ticks, TreatmentProfile
from plimsoll.analysis.probes.profile import (
    cost_shares,
    is_kernel,
    is_nameless,
    share_of,
    stacks_of,
    ticks_missing,
    wait_mean_ns,
)
from plimsoll.record import Run
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.flame import flame
from plimsoll.report.section import Section

Json = dict[str, Any]
_SHOWN_MAX = 12
_TICKS_MISSING = 0.05  # of those due; the kernel's account of idle time was within 1.4 % of what came
_ON = (
    "Width is the share of the samples; each box was called by the one below it; siblings stand by name. Boxes under a "
    "thousandth are not drawn. A name in brackets is the file of a function without one. What runs with interrupts off "
    "is seen where they are switched on again."
)


def _kind(box: Box) -> str:
    if box["depth"] < 2:
        return "whose"
    if is_nameless(box["name"]):
        return "no name"
    return "kernel" if is_kernel(box["name"]) else "server"


def _file_name(treatment: str) -> str:
    return "profile-" + re.sub(r"[^A-Za-z0-9]+", "-", treatment)


def profile_figures(verdict: Json) -> list[Figure]:
    """A flame graph a treatment; none for a run without the probe."""
    profiles: Profile | None = verdict.get("profile")
    if profiles is None:
        return []
    title = "Where the server is when it is on a CPU"
    if profiles["why_absent"]:
        return [Figure("profile", title, absent=profiles["why_absent"])]
    labels = treatment_labels(verdict)
    shown = list(profiles["treatments"].items())[:_SHOWN_MAX]
    return [
        flame(
            _file_name(name),
            f"{title}: {labels.get(name, name)}",
            f"{entry['samples']:,} samples. {_ON}",
            [box | {"kind": _kind(box), "name": box["name"].removesuffix("_[k]")} for box in entry["boxes"]],
            "samples",
        )
        for name, entry in shown
    ]


def off_cpu_figures(verdict: Json) -> list[Figure]:
    """Beside the profile, what the breakdown knows of the time off the CPUs."""
    waiting: dict[str, list[Box]] = verdict.get("off_cpu") or {}
    if "profile" not in verdict:
        return []
    labels = treatment_labels(verdict)
    title = "What transactions wait for when they are not on a CPU"
    caption = (
        "From the breakdown: nanoseconds of all recorded transactions by type, part and the server's name of the wait, "
        "of the trials that entered the verdict."
    )
    return [
        flame(
            "off-cpu-" + _file_name(name).removeprefix("profile-"),
            f"{title}: {labels.get(name, name)}",
            caption,
            [box | {"kind": "whose" if box["depth"] < 2 else "wait"} for box in boxes],
            "ms",
            1e-6,
        )
        for name, boxes in list(waiting.items())[:_SHOWN_MAX]
    ]


def _percent(share: Share | None) -> str:
    if share is None:
        return "not known"
    return f"{share['value']:.1%} [{share['low']:.1%}, {share['high']:.1%}]"


def profile_part(verdict: Json) -> Json | None:
    """Tables and sentences beside the figures."""
    profiles: Profile | None = verdict.get("profile")
    if profiles is None:
        return None
    labels = treatment_labels(verdict)
    parts = []
    for name, entry in profiles["treatments"].items():
        lost = ", ".join(f"{count:,} {what}" for what, count in entry["lost"].items())
        parts.append(
            {
                "label": labels.get(name, name),
                "samples": f"{entry['samples']:,} at {', '.join(map(str, entry['hz']))} a second on each CPU",
                "roles": ", ".join(f"{role} {count:,}" for role, count in entry["roles"].items()),
                "in_kernel": _percent(entry["in_kernel"]),
                "named": _percent(entry["named"]),
                "complete": _percent(entry["complete"]),
                "spinlocks": {
                    "server": _percent(entry["spinlocks"]["server"]),
                    "kernel": _percent(entry["spinlocks"]["kernel"]),
                },
                "lost": lost or "none",
                "ticks": _ticks_words(entry["ticks"]),
                "cost": _cost(entry),
                "functions": [
                    {
                        "name": row["name"].removesuffix("_[k]"),
                        "where": "kernel" if is_kernel(row["name"]) else "server",
                        "share": _percent(row["share"]),
                        "total": f"{share_of(row['total'], entry):.1%}",
                    }
                    for row in entry["functions"]
                ],
                "nameless": [
                    row | {"share": f"{share_of(row['unnamed'], entry):.1%}", "remedy": row["remedy"] or ""}
                    for row in entry["nameless"]
                ],
                "locks": _lock_rows(entry["locks"]),
                "folded": f"figures/{_file_name(name)}.folded",
            }
        )
    return {"absent": profiles["why_absent"], "treatments": parts}


def _ticks_words(ticks: Ticks | None) -> str:
    """What of the sampling clock did not come; empty where it is not known, or within what it counts coarsely."""
    missing = ticks_missing(ticks)
    if ticks is None or missing is None or missing < _TICKS_MISSING:
        return ""
    return (
        f"Of {ticks['due']:,} ticks due while CPUs were at work {missing:.0%} did not come (the hypervisor had the "
        "CPU, or the kernel lowered perf_event_max_sample_rate): samples are fewer than CPU time says, and shares "
        "hold only where they are missing for all alike"
    )


def _lock_rows(locks: Locks | None) -> dict[str, list[dict[str, str]]] | None:
    """Waits for the kernel's locks: a row a kind, then a row a place."""
    if locks is None:
        return None
    return {"kinds": [_wait_row(row) for row in locks["kinds"]], "sites": [_wait_row(row) for row in locks["sites"]]}


def _wait_row(row: LockWait) -> dict[str, str]:
    return {
        "kind": row["kind"],
        "caller": row["caller"],
        "stack": " < ".join(reversed(row["stack"].split(";")[-5:])),
        "count": f"{row['count']:,}",
        "total": f"{row['total_ns'] / 1e6:,.3f}",
        "mean": "" if (mean := wait_mean_ns(row)) is None else f"{mean / 1e3:,.1f}",
        "max": f"{row['max_ns'] / 1e3:,.1f}",
    }


def _cost(entry: TreatmentProfile) -> str:
    shares = cost_shares(entry)
    if shares is None:
        return "not known"
    return f"{shares[0]:.2%} of one CPU, {shares[1]:.2%} of it in the agent"


def folded_files(run: Run, verdict: Json) -> dict[str, str]:
    """The collapsed stacks of each treatment, as other tools read them: texts by the file's name."""
    profiles: Profile = verdict["profile"]
    files = {}
    for name, entry in profiles["treatments"].items():
        stacks = stacks_of(trial for trial in run.trials if trial.number in entry["trials"])
        files[f"{_file_name(name)}.folded"] = "".join(f"{';'.join(stack)} {count}\n" for stack, count in stacks)
    return files


SECTION = Section(
    key="profile",
    title="On the CPUs",
    template="probes/profile.html.j2",
    applies=lambda page: page.verdict.get("profile") is not None,
    context=lambda page: {"profile": profile_part(page.verdict)},
    figures=lambda page: profile_figures(page.verdict) + off_cpu_figures(page.verdict),
    files=lambda page: folded_files(page.run, page.verdict),
    says_why=lambda page: bool(page.verdict["profile"]["why_absent"]),
)
