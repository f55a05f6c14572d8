"""The verdict in words: the sentence that leads the report, and about twenty lines for the terminal.

Says nothing the verdict does not hold. A comparison without an interval gets no ratio in its sentence, because a bare
ratio would be read as a finding.
"""

import itertools
import math
import textwrap
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.comparing.unbounded import blocks_words
from plimsoll.analysis.decision_support.metrics import LOAD, NAMES
from plimsoll.analysis.percentiles import PERCENTILE_NAMES
from plimsoll.analysis.studies import clients
from plimsoll.words import breakdown as breakdown_words
from plimsoll.words import decision_support as decision_support_words
from plimsoll.words import order_entry as order_entry_words
from plimsoll.words import scaling as scaling_words
from plimsoll.words import syncs as sync_words
from plimsoll.words.caches import device_reads_line, held_twice_line, most_twice, most_twice_bytes

Json = dict[str, Any]
LINES_MAX = 20
HEADLINES_MAX = 6
WIDTH = 118
NO_INTERVAL = "[no interval]"


def ratio(value: Json) -> str:
    """1.42 x [1.31, 1.54]; without interval the bare ratio says so, and one that is a bound says which."""
    if value.get("ratio") is None:
        return "a ratio that is not known"
    return f"{_bound(value)}{value['ratio']:.2f} x {ends(value)}"


def _bound(value: Json) -> str:
    return f"{value['bound']} " if value.get("bound") else ""


def ends(value: Json) -> str:
    """[1.31, 1.54], with "no bound" where a ratio is only a bound; [no interval] where there is none."""
    low, high = value.get("low"), value.get("high")
    if low is None and high is None:
        return NO_INTERVAL
    return f"[{'no bound' if low is None else f'{low:.2f}'}, {'no bound' if high is None else f'{high:.2f}'}]"


def is_latency(metric: object) -> bool:
    """Whether levels are compared by a latency, so that worse means longer and not slower."""
    return str(metric).startswith("latency_ns_")


def is_time(metric: object) -> bool:
    """Whether less of the metric is better, because it is a time."""
    return is_latency(metric) or metric == LOAD


def metric_words(metric: object) -> str:
    """ "throughput", "latency p99.9", or DBT-3's name of a test's figure."""
    if metric in NAMES:
        return NAMES[str(metric)]
    label = str(metric).removeprefix("latency_ns_")
    return f"latency {PERCENTILE_NAMES.get(label, label)}" if is_latency(metric) else "throughput"


def _slower(value: Json, metric: object) -> str:
    word = "longer" if is_time(metric) else "slower"
    return f"{_bound(value)}{value['ratio']:.2f} x {word} {ends(value)}"


def _worse(level: Json, metric: object) -> str:
    """How much worse a level is; "worst" where no block has a bound."""
    found = level.get("unbounded")
    text = _slower(level["times_slower"], metric)
    if not found:
        return text
    if found["blocks"] == found["of"]:
        return f"worst: {blocks_words(found)}, {text}"
    return f"{text} ({blocks_words(found)})"


def _unbounded(level: Json, metric: object) -> str:
    """In how many blocks a level that is not worse has no bound, and the least that its ratio to the best can be."""
    slower = level["times_slower"]
    least = f", {_slower(slower, metric)}" if slower and slower.get("bound") == "at least" else ""
    return f"{blocks_words(level['unbounded'])}{least}"


def _span(comparison: Json, chosen: list[str]) -> str:
    """A to B when the levels stand side by side in the sweep, else all of them."""
    order = [level["level"] for level in comparison["levels"]]
    places = [order.index(level) for level in chosen]
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"{chosen[0]} to {chosen[-1]}"
    return ", ".join(chosen)


def at_words(comparison: Json) -> str:
    """The other factors, for a sentence: "at database size 2 x memory"; empty when there are none."""
    names = comparison.get("at_labels") or {}
    parts = [f"{names.get(path, path)} {level}" for path, level in comparison["at"].items()]
    return "at " + ", ".join(parts) if parts else ""


def headline(comparison: Json) -> str:
    """One sentence for one comparison."""
    name, levels = comparison["label"], comparison["levels"]
    measured = [level for level in levels if level["estimate"] is not None]
    where = at_words(comparison)
    judged = comparison.get("metric")
    is_named = is_latency(judged) or judged in NAMES
    where = f"{where}, by {metric_words(judged)}".lstrip(", ") if is_named else where
    tail = f" ({where})" if where else ""
    if not measured:
        lacks = " with a value (too many transactions were not answered in time, or too few done)"
        return f"{name}: no verdict, because no trial could be used{lacks if is_latency(judged) else ''}{tail}"
    if comparison["grade"] == "none":
        best = comparison["reference"]
        most = "lowest" if is_time(judged) else "highest"
        return f"{name}: no verdict from fewer than three common blocks; {most} estimate at {best}{tail}"
    if all((level.get("unbounded") or {}).get("blocks") == level["blocks"] for level in measured):
        what = "too many of the transactions that were due were not answered in time"
        return f"{name}: no verdict, {metric_words(judged)} is unbounded in every block of every level ({what}){tail}"
    inside = comparison["best_set"]
    measured = [level for level in measured if level["verdict"] != "too few blocks"]
    few = [level["level"] for level in levels if level["verdict"] in ("too few blocks", "no data")]
    tail = (f"; not judged, too few blocks: {', '.join(few)}" if few else "") + tail
    losers = sorted(
        (level for level in levels if level["verdict"] == "worse" and level["times_slower"]),
        key=lambda level: -(level["times_slower"]["ratio"] or math.inf),
    )
    doubtful = [level for level in levels if level.get("unbounded") and level not in losers]
    tail = "".join(f"; {level['level']}: {_unbounded(level, judged)}" for level in doubtful) + tail
    sure = [one for one in inside if one == comparison["reference"] or one not in {d["level"] for d in doubtful}]
    if len(inside) == len(measured):
        if comparison["best_set_alike"]:
            return f"{name} {_span(comparison, inside)}: no difference larger than {comparison['delta']:.0%}{tail}"
        return f"{name} {_span(comparison, inside)}: indistinguishable; cannot tell any of them apart{tail}"
    alone = "best" if len(inside) == 1 else "best estimate"
    best = f"{name} {_span(comparison, sure)}: {'indistinguishable best' if len(sure) > 1 else alone}"
    others = ", ".join(f"{level['level']} is {_worse(level, judged)}" for level in losers[:3])
    more = f", and {len(losers) - 3} more" if len(losers) > 3 else ""
    return f"{best}{'; ' + others + more if others else ''}{tail}"


def a_a_words(verdict: Json) -> str:
    """How much equals differ, in a sentence."""
    evidence = verdict["a_a"]
    own, stored = evidence["within_run"], evidence["stored"]
    if evidence["ratio_spread"] is None:
        return "A/A: not known here; run the experiment a-a, or set design.duplicate"
    parts = []
    if own:
        interval = f" [{own['low']:.2f}, {own['high']:.2f}]" if own["low"] is not None else " [no interval]"
        parts.append(
            f"equal trials of this run differ by ratio {own['ratio']:.2f}{interval} over {own['blocks']} blocks"
        )
    if stored and stored.get("ratio"):
        interval = f" [{stored['low']:.2f}, {stored['high']:.2f}]" if stored.get("low") is not None else ""
        parts.append(f"stored A/A run: {stored['ratio']:.2f}{interval} over {stored.get('blocks')} blocks")
    told = [one["noise"]["ratio_told"] for one in verdict["comparisons"] if one.get("noise")]
    if told:
        least = f"{min(told):.2f}" + (f" to {max(told):.2f}" if f"{max(told):.2f}" != f"{min(told):.2f}" else "")
        return f"A/A: {'; '.join(parts)}. By the scatter of all trials levels are told apart from a ratio of {least} on"
    return f'A/A: {"; ".join(parts)}. Ratios within {evidence["ratio_spread"]:.2f} are called "cannot tell"'


def headlines(verdict: Json) -> list[str]:
    """One sentence a comparison; for a run that compares nothing, the A/A finding."""
    special = clients.lines(verdict) + scaling_words.lines(verdict)
    special += sync_words.lines(verdict, treatment_labels(verdict))
    if verdict["comparisons"] or special:
        return special + [headline(comparison) for comparison in verdict["comparisons"]]
    return [a_a_words(verdict) if verdict["a_a"]["within_run"] else "nothing to compare: the run has one treatment"]


def _metric(verdict: Json, treatment: str, key: str) -> Json | None:
    return (verdict["treatments"].get(treatment, {}).get("metrics") or {}).get(key)


def _evidence_row(verdict: Json, comparison: Json, key: str, name: str, scale: float, form: str) -> str | None:
    cells = []
    for level in comparison["levels"]:
        found = _metric(verdict, level["treatment"], key)
        least = "at least " if found and found.get("unbounded") else ""
        cells.append(f"{level['level']} " + (least + format(found["value"] * scale, form) if found else "-"))
    return None if all(cell.endswith(" -") for cell in cells) else f"  {name}: " + " · ".join(cells)


_EVIDENCE = (
    ("throughput_per_second", "throughput, transactions/s", 1.0, ",.0f"),
    ("database_hit_ratio", "database hit ratio, %", 100.0, ".1f"),
    ("device_read_bytes_per_transaction", "device reads, KiB/transaction", 1 / 1024, ".1f"),
    ("swap_bytes_max", "swap at most, MiB", 2.0**-20, ".0f"),
    ("page_cache_hit_ratio", "Linux page-cache hit ratio, %", 100.0, ".1f"),
)


def cache_lines(verdict: Json) -> list[str]:
    """What both caches hold twice and what explains the device reads, for each comparison that has it."""
    lines = []
    for line in (held_twice_line, device_reads_line):
        found = (line(verdict, comparison, at_words(comparison)) for comparison in verdict["comparisons"])
        lines += [text for text in found if text]
    return lines


def _twice(verdict: Json) -> list[str]:
    """The sentence of the comparison in which most is held twice."""
    found = [comparison for comparison in verdict["comparisons"] if most_twice(verdict, comparison)]
    most = max(found, key=lambda comparison: most_twice_bytes(verdict, comparison), default=None)
    line = held_twice_line(verdict, most, at_words(most)) if most else None
    return [line] if line else []


def _judged_row(verdict: Json) -> tuple[tuple[str, str, float, str], ...]:
    """What is judged, where it is not the transactions a second that the evidence begins with."""
    metric = verdict["metric"]
    if metric in NAMES:
        unit = "s" if metric == LOAD else "queries/hour x scale factor"
        return ((metric, f"{metric_words(metric)}, {unit}", 1.0, ",.1f"),)
    return ((metric, f"{metric_words(metric)}, ms", 1e-6, ",.2f"),) if is_latency(metric) else ()


def evidence_lines(verdict: Json, rows: int = 4) -> list[str]:
    """What stands behind the first comparison: its levels in the measures that explain it."""
    lines: list[str] = []
    for comparison in verdict["comparisons"][:1] if rows > 1 else []:
        where = at_words(comparison)
        lines.append(f"Evidence{' ' + where if where else ''} (means over blocks; intervals in the report):")
        # Queries a second say nothing beside DBT-3's figures: a stream's queries differ by orders of magnitude.
        beside = _EVIDENCE[1:rows] if verdict["metric"] in NAMES else _EVIDENCE[:rows]
        found = (_evidence_row(verdict, comparison, *row) for row in _judged_row(verdict) + beside)
        lines += [row for row in found if row]
    return lines


def generator_words(verdict: Json) -> str:
    """What the generator took and what that alone could explain."""
    found = verdict["generator"]
    if found["core_share_max"] is None:
        return "Load generator: its CPU time is not known"
    text = f"Load generator: at most {found['core_share_max']:.0%} of the core time"
    if found["shares_cores"] and found["explains_between_trials_ratio"]:
        text += (
            f", on cores it shares with the server; between trials that alone explains a ratio of at most "
            f"{found['explains_between_trials_ratio']:.2f}"
        )
    return text


def exclusion_lines(verdict: Json, most: int = 3) -> list[str]:
    """Trials that entered no verdict, with the reason."""
    found = verdict["exclusions"]
    if not found:
        return ["Excluded: none"]
    lines = [f"Excluded: {len(found)} of {len(verdict['trials'])} trials{'' if most else ', in the report'}"]
    labels = treatment_labels(verdict)
    for exclusion in found[:most]:
        label = labels.get(exclusion["treatment"], exclusion["treatment"])
        lines.append(
            f"  trial {exclusion['trial']} ({label}, block {exclusion['block']}): {'; '.join(exclusion['reasons'])}"
        )
    if len(found) > most > 0:
        lines.append(f"  and {len(found) - most} more, in the report")
    return lines


def _wrap(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent="    ", break_long_words=False) or [""]


def _cut(line: str, width: int) -> list[str]:
    """As much as a wide terminal has in a line, in as many as a narrow one needs."""
    return _wrap(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…", width)


def _fitting(texts: list[list[str]], room: int) -> list[list[str]]:
    """The first of these texts that have at most so many rows together; one at least."""
    ends = itertools.accumulate(map(len, texts))
    return texts[: max(1, sum(end <= room for end in ends))]


def _middle(verdict: Json, rows: int, exclusions: int, width: int) -> list[str]:
    """What stands between the verdict and the caveats, with so many rows of evidence and so many trials left out."""
    lines = [row for line in evidence_lines(verdict, rows) for row in _cut(line, width)]
    if verdict["comparisons"]:
        why = breakdown_words.why_lines(verdict, 1) + scaling_words.growth_lines(verdict)[-1:]
        lines += [line for text in [*why, *_twice(verdict)] for line in _wrap(text, width)]
        lines += _wrap(a_a_words(verdict), width)
    by_rules = order_entry_words.lines(verdict) + decision_support_words.lines(verdict, treatment_labels(verdict))
    lines += [line for text in by_rules for line in _wrap(text, width)]
    lines += _wrap(generator_words(verdict), width)
    # Reasons end with what to do, so they are never cut.
    return lines + [row for line in exclusion_lines(verdict, exclusions) for row in _wrap(line, width)]


def terminal_lines(
    verdict: Json, report_path: object, own_server_command: str | None = None, width: int = WIDTH
) -> list[str]:
    """About twenty lines, more in a narrower terminal: verdict, evidence, what was left out, where to read on."""
    most_lines = LINES_MAX * WIDTH // width
    heads = headlines(verdict)
    if len(heads) > HEADLINES_MAX:
        heads = [*heads[: HEADLINES_MAX - 1], f"and {len(heads) - HEADLINES_MAX + 1} more, in the report"]
    end = [f"Report: {report_path}"]
    if own_server_command:
        end += ["For your own server:", f"  {own_server_command}"]
    middle: list[str] = []
    for rows, most in ((5, 3), (5, 1), (4, 1), (3, 0), (2, 0)):
        middle = _middle(verdict, rows, most, width)
        if len(heads) + len(middle) + len(end) + bool(verdict["caveats"]) <= most_lines:
            break
    room = most_lines - len(heads) - len(middle) - len(end) - 1
    caveats = verdict["caveats"]
    if caveats and room < 2:
        middle.append(f"Caveats: {len(caveats)}, in the report")
    elif caveats:
        middle.append("Caveats:")
        wrapped = [_wrap(f"  {caveat}", width) for caveat in caveats]
        shown = wrapped if sum(map(len, wrapped)) <= room else _fitting(wrapped, room - 1)
        middle += [row for rows in shown for row in rows]
        if len(shown) < len(caveats):
            middle.append(f"  and {len(caveats) - len(shown)} more, in the report")
    return [*heads, *(line for line in middle if line), *end]
