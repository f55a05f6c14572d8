"""The page of a load line: latency against rate with the line drawn on it, every trial with its verdict, its health.

Computes nothing: every number stands in capacity.json and is only given a unit here.
"""

from pathlib import Path
from typing import Any, cast

from plimsoll.analysis.capacity.document import Capacity, SearchTrial
from plimsoll.analysis.capacity.drift import value_words
from plimsoll.quantities import rate
from plimsoll.record import RecordError, Run, open_run
from plimsoll.record.run import read_json
from plimsoll.report.capacity.figures import answer_figure, capacity_figures
from plimsoll.report.drawing import tables, theme
from plimsoll.report.drawing.html import write_page
from plimsoll.report.drawing.machine import machine_rows
from plimsoll.report.drawing.tables import NONE, number
from plimsoll.words.capacity import capacity as words
from plimsoll.words.capacity.capacity_screen import capacity_screen

Json = dict[str, Any]
_TITLES = {
    "line": "The load line",
    "caveats": "Caveats",
    "earlier": "Earlier searches for the same objective",
    "trials": "All trials",
    "machine": "Machine and settings",
    "method": "How it was measured",
}


def _facts(run: Run, verdict: Capacity) -> list[tuple[str, str]]:
    plimsoll = run.data.get("plimsoll") or {}
    return [
        ("run", str(run.data.get("id") or run.path.name)),
        ("objective", verdict["objective"]["text"]),
        *_load(verdict),
        ("began", tables.when(run.data.get("started_epoch_ns"))),
        ("trials", str(len(verdict["trials"]))),
        ("seed", str(run.data.get("seed"))),
        ("plimsoll", f"{plimsoll.get('version', '?')} ({plimsoll.get('commit') or 'no commit'})"),
    ]


def _load(verdict: Capacity) -> list[tuple[str, str]]:
    """How it was asked; what a search over connections varied is in its trials."""
    if words.unit(verdict) != "/s":
        return [("arrivals", "each connection asks again at once")]
    return [
        ("arrivals", str(verdict["arrivals"])),
        (verdict.get("clients_called", "connections"), str(verdict["clients"])),
    ]


def trial_rows(verdict: Capacity) -> list[Json]:
    """Every trial in the order of the search: rate, percentiles, verdict and why, and how generator and host did."""
    rows = []
    for trial in verdict["trials"]:
        health, conditions, backlog = trial.get("health"), trial["conditions"], trial.get("backlog")
        rows.append(
            {
                "number": trial["number"],
                "role": trial["role"] or NONE,
                "rate": "closed loop" if trial["rate"] is None else rate(trial["rate"]),
                "seconds": number(trial["seconds"], ".0f"),
                "verdict": trial["verdict"] or (NONE if trial["status"] == "finished" else trial["status"]),
                "class": {"holds": "word-best", "breaks": "word-worse"}.get(trial["verdict"] or "", ""),
                "why": "; ".join(trial["reasons"]) or trial["reason"] or "",
                "terms": [words.term_words(term) for term in trial.get("terms", [])],
                "done": number(trial.get("throughput"), ",.0f"),
                "p50": _ms(trial, "p50"),
                "p99": _ms(trial, "p99"),
                "growth": number(backlog["growth"] if backlog else None, "+,.1f"),
                "skipped": number(trial.get("identity", {}).get("skipped"), ",.0f"),
                "busy": number(health["busy_connections"] if health else None, ".1f"),
                "lag": number(health["lag_ns_mean"] if health else None, ",.2f", 1e-6),
                "load": number(health["load_busy_share"] if health else None, ".0f", 100),
                "host": number(conditions.get("host_busy_share"), ".0f", 100),
                "steal": number(conditions.get("cpu_steal_share"), ".1f", 100),
            }
        )
    return rows


def _ms(entry: SearchTrial, name: str) -> str:
    percentile = entry.get("percentiles", {}).get(name)
    return number(percentile["value"] if percentile else None, ",.2f", 1e-6)


def condition_rows(verdict: Capacity) -> list[Json]:
    """The conditions trial by trial, where any trial has them."""
    rows = []
    for key, described in verdict["conditions"].items():
        values = [trial["conditions"].get(key) for trial in verdict["trials"]]
        if any(value is not None for value in values):
            cells = [value_words(described["unit"], value) for value in values]
            rows.append({"label": described["label"], "cells": cells})
    return rows


def earlier_rows(verdict: Capacity) -> list[Json]:
    """Earlier searches for the same line on this machine."""
    rows = []
    for earlier_run in verdict.get("earlier", []):
        first = earlier_run["first"]
        line = first["line"]
        rows.append(
            {
                "run": first["run"],
                "began": tables.when(first["started_epoch_ns"]),
                "line": NONE
                if line["rate"] is None
                else f"{rate(line['rate'])} {words.interval(line['low'], line['high'])}",
                "ratio": number(earlier_run["ratio"], ".3f"),
                "agree": {True: "agrees", False: "differs", None: "cannot tell"}[earlier_run["agree"]],
                "moved": [words.moved_words(row) for row in earlier_run["moved"]],
            }
        )
    return rows


def _sections(verdict: Capacity) -> list[Json]:
    """What the page has below its first screen, in its order."""
    there = {"caveats": bool(verdict["caveats"]), "earlier": bool(verdict.get("earlier"))}
    return [{"key": key, "title": title} for key, title in _TITLES.items() if there.get(key, True)]


def _context(run: Run, verdict: Capacity) -> Json:
    figures, shown = capacity_figures(verdict), answer_figure(verdict)
    command = run.data.get("command")
    return {
        "title": f"{verdict['subject']}: the load line",
        "quick": verdict["quick"],
        "status": verdict["status"],
        "facts": _facts(run, verdict),
        "first": capacity_screen(verdict),
        "shown_figure": shown,
        "titles": _TITLES,
        "sections": _sections(verdict),
        "evidence": words.evidence_lines(verdict),
        "figures": figures,
        "all_figures": [*figures, *([shown] if shown else [])],
        "trials": trial_rows(verdict),
        "conditions": condition_rows(verdict),
        "numbers": [trial["number"] for trial in verdict["trials"]],
        "earlier": earlier_rows(verdict),
        "drift": None
        if verdict["drift"] is None
        else {**verdict["drift"], "p": number(verdict["drift"]["p_value"], ".2g")},
        "caveats": verdict["caveats"],
        "checks": verdict["checks"] or [],
        "rules": verdict["rules"],
        "durability": tables.durability(run),
        "settings": tables.server_settings(run),
        "machine": machine_rows(run),
        "fingerprint": tables.flat(run.fingerprint),
        "experiment": tables.flat(run.experiment),
        "command": " ".join(str(word) for word in command) if isinstance(command, list) else "",
        "configs": {"light": theme.config("light"), "dark": theme.config("dark")},
        "unit": words.unit(verdict).strip(),
        "specs": {
            figure.name: figure.spec for figure in (*figures, *([shown] if shown else [])) if figure.spec is not None
        },
    }


def write_capacity_report(run_dir: str | Path, is_with_files: bool = False) -> Path:
    """Draws capacity.json; returns the page's path. With files the figures lie beside it as SVG and PNG, too."""
    run = open_run(run_dir)
    verdict = cast(Capacity | None, read_json(run.path / "capacity.json"))
    if verdict is None:
        raise RecordError(f"{run.path}: no capacity.json; judge the run first with plimsoll report")
    context = _context(run, verdict)
    return write_page(run, "capacity/capacity.html.j2", context, context["all_figures"], is_with_files)
