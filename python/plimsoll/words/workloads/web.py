"""Web serving in sentences: how many connections were served fast enough, and what went wrong."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.web.document import Errors, RequestTimes, Serving, WebServing, WebWorkers
from plimsoll.analysis.web.serving import FAULTS
from plimsoll.words.part import Sentences
from plimsoll.words.workloads.files import PART_NAMES

Json = dict[str, Any]
_TREATMENTS_SHOWN: Final = 2
KBIT: Final = 1e-3
US: Final = 1e-3  # of nanoseconds
_LEAST_SHARE: Final = 0.02


def serving_lines(verdict: Json) -> list[str]:
    """One line a treatment, a few of them; then what had no right answer."""
    found: WebServing | None = verdict.get("web_serving")
    if not found:
        return []
    labels, lines = treatment_labels(verdict), []
    for name, mine in list(found["treatments"].items())[:_TREATMENTS_SHOWN]:
        if text := _served(mine, has_lines=found["speed"] is not None):
            lines.append(f"{labels.get(name, name)}: {text}")
    said = [f"Web serving ({found['like']}): {'; '.join(lines)}"] if lines else []
    wrong = [
        (labels.get(name, name), mine["errors"])
        for name, mine in found["treatments"].items()
        if mine["errors"]["failed"] or mine["errors"]["lost"]
    ]
    if wrong:
        label, errors = max(wrong, key=lambda one: one[1]["share"] or 0)
        said.append(f"Without a right answer, at most, of {label}: {error_words(errors)}")
    return said


def _served(mine: Serving, *, has_lines: bool) -> str:
    rate, conforming, speed = mine["operations_per_second"], mine["conforming"], mine["connection_bits_per_second"]
    if rate is None:
        return ""
    text = f"{rate['value']:,.0f} requests/s"
    if has_lines and conforming is not None:
        requested = "" if mine["requested"] is None else f" of {mine['requested']:,}"
        text = f"{conforming['value']:,.0f}{requested} connections conforming, {text}"
    return text + (f", {speed['value'] * KBIT:,.0f} kbit/s a connection" if speed and has_lines else "")


def error_words(errors: Errors) -> str:
    """How many of how many, and what was wrong with them."""
    count = errors["failed"] + errors["lost"]
    if not count:
        return f"none of {errors['requests']:,}"
    kinds = ", ".join(f"{number:,} {FAULTS[what]}" for what, number in errors["kinds"].items())
    lost = f"{errors['lost']:,} lost" if errors["lost"] else ""
    detail = ", ".join(filter(None, (kinds, lost)))
    return f"{count:,} of {errors['requests']:,}" + (f" ({detail})" if detail else "")


def worker_lines(verdict: Json) -> list[str]:
    """What the server's processes did for a request beside what its client waited, of a few treatments."""
    found: WebWorkers | None = verdict.get("web_workers")
    if not found:
        return []
    labels = treatment_labels(verdict)
    told = list(found["treatments"].items())[:_TREATMENTS_SHOWN]
    held = " at the speed of its line" if has_lines(verdict) else ""
    lines = [f"{labels.get(name, name)}: {text}{held}" for name, mine in told if (text := request_words(mine))]
    return [f"What a request took in the server's processes: {'; '.join(lines)}"] if lines else []


def has_lines(verdict: Json) -> bool:
    """Whether connections read no faster than a line would carry: most of what a client waits is then its line."""
    return (verdict.get("web_serving") or {}).get("speed") is not None


def request_words(mine: RequestTimes) -> str:
    """The parts that matter, the largest first, and how long a client waited."""
    whole = sum(mean["value"] for mean in mine["parts_ns"].values())
    parts = sorted(mine["parts_ns"].items(), key=lambda one: -one[1]["value"])
    shown = [
        f"{_us(mean['value'])} {PART_NAMES.get(name, name)}"
        for name, mean in parts
        if whole and mean["value"] >= _LEAST_SHARE * whole
    ]
    if not shown:
        return ""
    waited = mine["latency_ns"]
    said = "" if waited is None else f", while its client waited and read for {_us(waited['value'])}"
    return f"{', '.join(shown)}{said}"


def _us(ns: float) -> str:
    return f"{ns * US:,.0f} µs" if ns * US >= 10 else f"{ns * US:.2f} µs"


WORKERS = Sentences("web_workers", adds=worker_lines, section="web_workers")
SENTENCES = Sentences("web_serving", adds=serving_lines, section="web_serving")
