"""What the probes say about themselves, as rows for the page."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.instruments import LABELS
from plimsoll.report.drawing.tables import interval, trials_words
from plimsoll.report.section import Page, Section

Json = dict[str, Any]
_SELF_TEST = {
    "pages": "pages read at random",
    "missed_cold": "missed when cold",
    "missed_warm": "missed when warm",
    "sequential_pages": "pages read in order",
    "sequential_added": "added by that",
}


def _span(ends: list[int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _self_test(found: Json | None) -> str | None:
    if not found:
        return None
    figures = ", ".join(f"{name} {_span(found[key])}" for key, name in _SELF_TEST.items() if key in found)
    return f"passed in {found['passed']} of {found['trials']} trials: {figures}"


def _identity(found: Json | None) -> str | None:
    if not found:
        return None
    text = f"{found['added']:,} pages added, {found['accounted']:,} accounted for"
    return f"{text}; DOES NOT HOLD in {trials_words(found['broken'])}" if found["broken"] else f"{text}; holds"


def _programs(found: Json | None) -> str | None:
    if not found:
        return None
    parts = [
        f"{name} {program['runs']:,} runs" + (f" of {program['ns_per_run']:.0f} ns" if program["ns_per_run"] else "")
        for name, program in found["programs"].items()
    ]
    return f"{found['run_ns'] / 1e6:,.1f} ms over all trials" + (f": {', '.join(parts)}" if parts else "")


def _rows(found: Json) -> list[tuple[str, str]]:
    refused = [
        f"refused in {trials_words(row['trials'])}: {row['reason']}" + (f"; {row['remedy']}" if row["remedy"] else "")
        for row in found["refused"]
    ]
    status = [f"on in {trials_words(found['on'])}"] if found["on"] else []
    lost = ", ".join(f"{count:,} {what}" for what, count in found["lost"].items())
    bound = f"{lost}, in {trials_words(found['lost_trials'])}: the counts are lower bounds"
    rows: list[tuple[str, str | None]] = [
        ("status", "; ".join(status + refused)),
        ("programs attached as", ", ".join(found["programs"]) or None),
        ("ranges of reads come from", ", ".join(found["requests"]) or None),
        ("file systems", ", ".join(found["file_systems"]) or None),
        ("self-test", _self_test(found["self_test"])),
        ("lost events", bound if lost else "none" if found["on"] else None),
        ("page accounting", _identity(found["identity"])),
        ("not counted on this kernel", "; ".join(f"{key}: {why}" for key, why in found["absent"].items()) or None),
        ("cost", _programs(found["cost"])),
    ]
    return [(key, value) for key, value in rows if value]


def instrument_tables(verdict: Json) -> list[Json]:
    """A table a probe that was asked for; one line for those that were not."""
    return [
        {"label": LABELS.get(name, name), "rows": _rows(found)}
        if found.get("on") or found.get("refused")
        else {"label": LABELS.get(name, name), "rows": [("status", f"absent: {found.get('why_absent')}")]}
        for name, found in (verdict.get("instruments") or {}).items()
    ]


def probe_rows(verdict: Json) -> list[Json]:
    """What else the page-cache probe counted, and its cost, by treatment."""
    labels, rows = treatment_labels(verdict), []
    for treatment, entry in verdict["treatments"].items():
        metrics = entry["metrics"]
        if metrics.get("probe_ns_per_transaction"):
            rows.append(
                {
                    "label": labels.get(treatment, treatment),
                    "each": interval(metrics["probe_ns_per_transaction"], ",.1f", 1e-3),
                    "share": interval(metrics.get("probe_core_share"), ".2f", 100),
                    "waited": interval(metrics.get("page_cache_waited_reads_per_transaction"), ".3f"),
                    "ahead": interval(metrics.get("readahead_pages_per_missed_page"), ".2f"),
                    "used": interval(metrics.get("ahead_used_share"), ".0f", 100),
                    "brought": interval(metrics.get("page_cache_brought_bytes_per_transaction"), ",.1f", 1 / 1024),
                }
            )
    return rows


def _context(page: Page) -> Json:
    return {"instruments": instrument_tables(page.verdict), "probe_rows": probe_rows(page.verdict)}


SECTION = Section(key="instruments", template="probes/instruments.html.j2", context=_context)
