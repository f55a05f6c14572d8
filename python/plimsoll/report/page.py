"""What the report of a run says, and in which order."""

from pathlib import Path
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metrics import metric_of
from plimsoll.record import Run, open_run, writer
from plimsoll.record.run import read_json
from plimsoll.report import figures, load
from plimsoll.report.breakdown.figures import breakdown_figures
from plimsoll.report.breakdown.part import breakdown_part
from plimsoll.report.caches import double_caching, reconcile
from plimsoll.report.decision_support.figures import decision_support_figures
from plimsoll.report.decision_support.part import decision_support_part
from plimsoll.report.drawing import tables, theme
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.html import write_page
from plimsoll.report.drawing.machine import machine_rows
from plimsoll.report.order_entry.part import order_entry_part
from plimsoll.report.probes import instruments
from plimsoll.report.probes.block_figures import block_figures
from plimsoll.report.probes.block_requests import block_part
from plimsoll.report.probes.profile import off_cpu_figures, profile_figures, profile_part, write_folded
from plimsoll.report.probes.syscalls import system_calls_part
from plimsoll.report.probes.syscalls_figures import sync_figures
from plimsoll.report.probes.writeback import writeback_figures, writeback_tables
from plimsoll.report.studies.clients import clients_figures
from plimsoll.report.studies.scaling import scaling_part
from plimsoll.report.studies.scaling_figures import scaling_figures
from plimsoll.report.studies.studies import study_of
from plimsoll.words import breakdown as breakdown_words
from plimsoll.words import decision_support as decision_support_words
from plimsoll.words import order_entry as order_entry_words
from plimsoll.words import verdict as words
from plimsoll.words.caches import cache_lines

Json = dict[str, Any]
_TABLES_SHOWN = 4


def _verdict(run: Run) -> Json:
    """The stored verdict; made first where there is none, or an older one."""
    found = read_json(run.path / "verdict.json")
    if found is None or "scaling" not in found:  # none yet, or of a version that knew less
        from plimsoll.analysis import analyse

        found = analyse(run)
        writer.write_json(run.path / "verdict.json", found)
    return found


def _facts(run: Run, verdict: Json) -> list[tuple[str, str]]:
    """What was run, in a few rows under the title."""
    data = run.data
    plimsoll = data.get("plimsoll") or {}
    return [
        ("run", str(data.get("id") or run.path.name)),
        ("experiment", str(data.get("experiment") or "")),
        ("began", tables.when(data.get("started_epoch_ns"))),
        ("blocks", str(verdict["blocks"])),
        ("trials", f"{len(verdict['trials'])}, {len(verdict['exclusions'])} excluded"),
        ("seed", str(data.get("seed"))),
        ("plimsoll", f"{plimsoll.get('version', '?')} ({plimsoll.get('commit') or 'no commit'})"),
    ]


def _context(run: Run, verdict: Json) -> Json:
    shown: list[tuple[str, list[Figure]]] = [
        ("main", [figures.main_figure(verdict)]),
        ("decision_support", decision_support_figures(run, verdict)),
        ("breakdown", breakdown_figures(verdict)),
        ("profile", profile_figures(verdict) + off_cpu_figures(verdict)),
        ("clients", clients_figures(verdict, study_of(run.experiment) or {})),
        ("scaling", scaling_figures(verdict, study_of(run.experiment) or {})),
        ("study", figures.study_figures(run, verdict)),
        ("device", figures.device_figures(verdict)),
        ("twice", figures.twice_figures(verdict)),
        ("time", figures.time_figures(run, verdict)),
        ("syncs", sync_figures(run, verdict)),
        ("block", block_figures(run, verdict)),
        ("writeback", writeback_figures(run, verdict, study_of(run.experiment) or {})),
    ]
    command = run.data.get("command")
    heads = words.headlines(verdict)
    # As many as a reader takes in; the rest is folded, and never a single one.
    shown_heads = words.HEADLINES_MAX - 1 if len(heads) > words.HEADLINES_MAX else len(heads)
    return {
        "title": verdict["title"],
        "synthetic": run.data.get("synthetic"),
        "quick": verdict["quick"],
        "status": run.data.get("status"),
        "facts": _facts(run, verdict),
        "headlines": heads[:shown_heads],
        "more_headlines": heads[shown_heads:],
        "tables_shown": _TABLES_SHOWN,
        "a_a": words.a_a_words(verdict),
        "generator": words.generator_words(verdict),
        "cache_lines": cache_lines(verdict),
        "why_lines": breakdown_words.why_lines(verdict),
        "breakdown": breakdown_part(verdict),
        "profile": profile_part(verdict),
        "order_entry": order_entry_part(verdict),
        "order_entry_lines": order_entry_words.lines(verdict),
        "decision_support": decision_support_part(verdict),
        "decision_support_lines": decision_support_words.lines(verdict, treatment_labels(verdict)),
        "scaling": scaling_part(verdict),
        "syscalls": system_calls_part(verdict),
        "block": block_part(verdict),
        "level_tables": tables.level_tables(verdict),
        "judged": metric_of(verdict["metric"]).name,
        "open_rows": load.open_rows(verdict),
        "merged_rows": load.merged_rows(verdict),
        "percentile_names": load.percentile_names(),
        "figures": dict(shown),
        "drawn": {name for name, group in shown if any(figure.spec is not None for figure in group)},
        "not_drawn": _not_drawn(verdict, shown),
        "reconciled": reconcile.reconciliation_rows(verdict),
        "reconciliation": verdict["reconciliation"],
        "classes": reconcile.class_rows(verdict),
        "twice_rows": double_caching.double_caching_rows(verdict),
        "instruments": instruments.instrument_tables(verdict),
        "probe_rows": instruments.probe_rows(verdict),
        "study": study_of(run.experiment),
        "writeback": writeback_tables(run, verdict),
        "trials": tables.trial_rows(verdict),
        "exclusions": tables.exclusions(run, verdict),
        "caveats": verdict["caveats"],
        "identity": verdict["identity"],
        "durability": tables.durability(run),
        "settings": tables.server_settings(run),
        "machine": machine_rows(run),
        "fingerprint": tables.flat(run.fingerprint),
        "grid": len(verdict["comparisons"]) == 1,
        "experiment": tables.flat(run.experiment),
        "generator_rows": tables.generator_rows(verdict),
        "generator_rule": verdict["generator"]["rule"],
        "a_a_definition": verdict["a_a"]["definition"],
        "commit_rule": next((t["commits"]["rule"] for t in verdict["trials"] if t["commits"].get("rule")), ""),
        "stationarity_test": verdict["stationarity_test"],
        "metrics": verdict["metrics"],
        "verdict": verdict,
        "command": " ".join(str(word) for word in command) if isinstance(command, list) else "",
        "configs": {"light": theme.config("light"), "dark": theme.config("dark")},
        "specs": {figure.name: figure.spec for _, group in shown for figure in group if figure.spec is not None},
        "all_figures": [figure for _, group in shown for figure in group],
    }


def _not_drawn(verdict: Json, shown: list[tuple[str, list[Figure]]]) -> list[tuple[str, list[str]]]:
    """Why what is not drawn is not: each reason with the titles of the figures. A part of the page says its own."""
    parts = {name for name in ("profile",) if (verdict.get(name) or {}).get("why_absent")}
    found: dict[str, list[str]] = {}
    for figure in (figure for name, group in shown if name not in parts for figure in group if figure.spec is None):
        found.setdefault(figure.absent, []).append(figure.title)
    return list(found.items())


def write_report(run_dir: str | Path, is_with_files: bool = False) -> Path:
    """Draw a run's verdict; returns the page's path. With files the figures lie beside it as SVG and PNG, too."""
    run = open_run(run_dir)
    verdict = _verdict(run)
    context = _context(run, verdict)
    write_folded(run, verdict)
    return write_page(run, "report.html.j2", context, context["all_figures"], is_with_files)
