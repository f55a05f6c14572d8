"""What the probes say about themselves, as rows for the page."""

from typing import Any, Final

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.document import Accounting, Cost, Instrument, SelfTest, SelfTestFigure
from plimsoll.analysis.probes.instruments import LABELS
from plimsoll.report.drawing.tables import interval, trials_words
from plimsoll.report.section import Page, Section

Json = dict[str, Any]
_SELF_TEST: Final[dict[SelfTestFigure, str]] = {
    "pages": "pages read at random",
    "missed_cold": "missed when cold",
    "missed_warm": "missed when warm",
    "sequential_pages": "pages read in order",
    "sequential_added": "added by that",
}


def _span(ends: list[int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _self_test(instrument: SelfTest | None) -> str | None:
    if not instrument:
        return None
    figures = ", ".join(f"{name} {_span(instrument[key])}" for key, name in _SELF_TEST.items() if key in instrument)
    return f"passed in {instrument['passed']} of {instrument['trials']} trials: {figures}"


def _identity(instrument: Accounting | None) -> str | None:
    if not instrument:
        return None
    text = f"{instrument['added']:,} pages added, {instrument['accounted']:,} accounted for"
    return (
        f"{text}; DOES NOT HOLD in {trials_words(instrument['broken'])}" if instrument["broken"] else f"{text}; holds"
    )


def _programs(instrument: Cost | None) -> str | None:
    if not instrument:
        return None
    parts = [
        f"{name} {program['runs']:,} runs" + (f" of {program['ns_per_run']:.0f} ns" if program["ns_per_run"] else "")
        for name, program in instrument["programs"].items()
    ]
    return f"{instrument['run_ns'] / 1e6:,.1f} ms over all trials" + (f": {', '.join(parts)}" if parts else "")


def _rows(instrument: Instrument) -> list[tuple[str, str]]:
    refused = [
        f"refused in {trials_words(row['trials'])}: {row['reason']}" + (f"; {row['remedy']}" if row["remedy"] else "")
        for row in instrument["refused"]
    ]
    status = [f"on in {trials_words(instrument['on'])}"] if instrument["on"] else []
    lost = ", ".join(f"{count:,} {what}" for what, count in instrument["lost"].items())
    bound = f"{lost}, in {trials_words(instrument['lost_trials'])}: the counts are lower bounds"
    rows: list[tuple[str, str | None]] = [
        ("status", "; ".join(status + refused)),
        ("programs attached as", ", ".join(instrument["programs"]) or None),
        ("ranges of reads come from", ", ".join(instrument["requests"]) or None),
        ("file systems", ", ".join(instrument["file_systems"]) or None),
        ("self-test", _self_test(instrument["self_test"])),
        ("lost events", bound if lost else "none" if instrument["on"] else None),
        ("page accounting", _identity(instrument["identity"])),
        ("not counted on this kernel", "; ".join(f"{key}: {why}" for key, why in instrument["absent"].items()) or None),
        ("cost", _programs(instrument["cost"])),
    ]
    return [(key, value) for key, value in rows if value]


def instrument_tables(verdict: Json) -> list[Json]:
    """A table a probe that was asked for; one line for those that were not."""
    instruments: dict[str, Instrument] = verdict.get("instruments") or {}
    return [
        {"label": LABELS.get(name, name), "rows": _rows(instrument)}
        if instrument["on"] or instrument["refused"]
        else {"label": LABELS.get(name, name), "rows": [("status", f"absent: {instrument['why_absent']}")]}
        for name, instrument in instruments.items()
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


SECTION = Section(
    key="instruments", title="Instruments in the kernel", template="probes/instruments.html.j2", context=_context
)
