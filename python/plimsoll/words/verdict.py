"""The verdict in words: the sentence that leads the report, and about twenty lines for the terminal.

Says nothing the verdict does not hold.
"""

import itertools
import textwrap
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metric import EVIDENCE, Metric
from plimsoll.analysis.metrics import METRICS, metric_of
from plimsoll.words import parts
from plimsoll.words.levels import at_words, headline

Json = dict[str, Any]
LINES_MAX = 20
HEADLINES_MAX = 6
WIDTH = 118


def a_a_words(verdict: Json) -> str:
    """How much equals differ, in a sentence."""
    evidence = verdict["a_a"]
    own, stored = evidence["within_run"], evidence["stored"]
    if evidence["ratio_spread"] is None:
        return "A/A: not known here; run the experiment a-a, or set design.duplicate"
    said = []
    if own:
        interval = f" [{own['low']:.2f}, {own['high']:.2f}]" if own["low"] is not None else " [no interval]"
        said.append(
            f"equal trials of this run differ by ratio {own['ratio']:.2f}{interval} over {own['blocks']} blocks"
        )
    if stored and stored.get("ratio"):
        interval = f" [{stored['low']:.2f}, {stored['high']:.2f}]" if stored.get("low") is not None else ""
        said.append(f"stored A/A run: {stored['ratio']:.2f}{interval} over {stored.get('blocks')} blocks")
    told = [one["noise"]["ratio_told"] for one in verdict["comparisons"] if one.get("noise")]
    if told:
        least = f"{min(told):.2f}" + (f" to {max(told):.2f}" if f"{max(told):.2f}" != f"{min(told):.2f}" else "")
        return f"A/A: {'; '.join(said)}. By the scatter of all trials levels are told apart from a ratio of {least} on"
    return f'A/A: {"; ".join(said)}. Ratios within {evidence["ratio_spread"]:.2f} are called "cannot tell"'


def headlines(verdict: Json) -> list[str]:
    """The answers of parts and one sentence a comparison; for a run that compares nothing, the A/A finding."""
    leading = [line for part in parts.SENTENCES for line in part.leads(verdict)]
    if verdict["comparisons"] or leading:
        return leading + [headline(comparison) for comparison in verdict["comparisons"]]
    return [a_a_words(verdict) if verdict["a_a"]["within_run"] else "nothing to compare: the run has one treatment"]


def _metric(verdict: Json, treatment: str, key: str) -> Json | None:
    return (verdict["treatments"].get(treatment, {}).get("metrics") or {}).get(key)


def _evidence_row(verdict: Json, comparison: Json, metric: Metric) -> str | None:
    cells, shown = [], metric.shown
    for level in comparison["levels"]:
        found = _metric(verdict, level["treatment"], metric.key)
        least = "at least " if found and found.get("unbounded") else ""
        text = least + format(found["value"] * shown.factor, shown.form) if found else "-"
        cells.append(f"{level['level']} {text}")
    name = f"{metric.name}, {shown.unit}"
    return None if all(cell.endswith(" -") for cell in cells) else f"  {name}: " + " · ".join(cells)


def _evidence(judged: Metric, rows: int) -> list[Metric]:
    """What is judged, where that does not go without saying, and the first metrics that explain it.

    Rates of another unit of work say nothing beside it: a stream's queries differ by orders of magnitude.
    """
    beside = [metric for metric in METRICS.values() if EVIDENCE in metric.shown_in][:rows]
    alike = [metric for metric in beside if metric.work in (None, judged.work)]
    return alike if judged.is_usual else [judged, *alike]


def evidence_lines(verdict: Json, rows: int = 4) -> list[str]:
    """What stands behind the first comparison: its levels in the measures that explain it."""
    lines: list[str] = []
    for comparison in verdict["comparisons"][:1] if rows > 1 else []:
        where = at_words(comparison)
        lines.append(f"Evidence{' ' + where if where else ''} (means over blocks; intervals in the report):")
        told = (_evidence_row(verdict, comparison, metric) for metric in _evidence(metric_of(verdict["metric"]), rows))
        lines += [row for row in told if row]
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
        why = [line for part in parts.SENTENCES for line in part.explains(verdict)]
        lines += [line for text in why for line in _wrap(text, width)]
        lines += _wrap(a_a_words(verdict), width)
    beside = [line for part in parts.SENTENCES for line in part.adds(verdict)]
    lines += [line for text in beside for line in _wrap(text, width)]
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
