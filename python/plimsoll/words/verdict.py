"""The verdict in words: the sentences that lead the report and the terminal, how far equals differ, the generator.

Says nothing the verdict does not hold.
"""

from typing import Any

from plimsoll.analysis.metric import EVIDENCE, Metric
from plimsoll.analysis.metrics import METRICS, metric_of, unit_of_work
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN
from plimsoll.record.verdict import Comparison, Equals, GeneratorOfRun, Mean
from plimsoll.words import parts
from plimsoll.words.levels import at_words, headline
from plimsoll.words.said import Said

Json = dict[str, Any]
LEVELS = "levels"  # the section of every run's page that has what is compared


def a_a_words(verdict: Json) -> str:
    """How much equals differ, in a sentence."""
    evidence: Equals = verdict["a_a"]
    own, stored = evidence["within_run"], evidence["stored"]
    if evidence["ratio_spread"] is None:
        return "A/A: not known here; run the experiment a-a, or set design.duplicate"
    said = []
    if own:
        interval = f" [{own['low']:.2f}, {own['high']:.2f}]" if own["low"] is not None else " [no interval]"
        said.append(
            f"equal trials of this run differ by a ratio of {own['ratio']:.2f}{interval} over {own['blocks']} blocks"
        )
    if stored and stored.get("ratio"):
        interval = f" [{stored['low']:.2f}, {stored['high']:.2f}]" if stored.get("low") is not None else ""
        said.append(f"stored A/A run: {stored['ratio']:.2f}{interval} over {stored.get('blocks')} blocks")
    ratios = [comparison["noise"]["ratio_told"] for comparison in verdict["comparisons"] if comparison.get("noise")]
    if ratios:
        least = f"{min(ratios):.2f}" + (
            f" to {max(ratios):.2f}" if f"{max(ratios):.2f}" != f"{min(ratios):.2f}" else ""
        )
        return f"A/A: {'; '.join(said)}. By the scatter of all trials ratios of {least} or more are significant"
    if verdict["comparisons"]:
        unknown = f"From which ratio on a difference is significant is not known: that takes {BLOCKS_MIN} common blocks"
        return f"A/A: {'; '.join(said)}. {unknown}"
    return f"A/A: {'; '.join(said)}. Later runs here take this scatter where it is larger than their own"


def answers(verdict: Json) -> list[Said]:
    """The answers of parts and one sentence a comparison; for a run that compares nothing, the A/A finding."""
    whole = [Said(line, part.section) for part in parts.SENTENCES if part.is_whole for line in part.leads(verdict)]
    if whole:
        return whole
    leading = [Said(line, part.section) for part in parts.SENTENCES for line in part.leads(verdict)]
    if verdict["comparisons"] or leading:
        work = unit_of_work(verdict)
        return leading + [Said(headline(comparison, work), LEVELS) for comparison in verdict["comparisons"]]
    if verdict["a_a"]["within_run"]:
        return [Said(a_a_words(verdict), LEVELS)]
    return [Said(_alone(verdict), "time")]


def _alone(verdict: Json) -> str:
    """What a run of one treatment found: what would be judged, with its interval."""
    metric = metric_of(verdict["metric"], verdict)
    for treatment in verdict["treatments"]:
        mean, shown = _metric(verdict, treatment, metric.key), metric.shown
        if mean:
            ends = [end for end in (mean["low"], mean["high"]) if end is not None]
            interval = ", ".join(_digits(end * shown.factor, shown.form) for end in ends) or "no interval"
            value = _digits(mean["value"] * shown.factor, shown.form)
            return f"{metric.name} {value} [{interval}] {shown.unit}; nothing to compare: the run has one treatment"
    return "no result: no trial could be used"


def trials_begun(verdict: Json) -> int:
    """How many trials there were, without those that a decided run need not begin."""
    return sum(trial["status"] != "skipped" for trial in verdict["trials"])


def headlines(verdict: Json) -> list[str]:
    """The same without the sections that have the numbers."""
    return [said.text for said in answers(verdict)]


def _metric(verdict: Json, treatment: str, key: str) -> Mean | None:
    mean: Mean | None = (verdict["treatments"].get(treatment, {}).get("metrics") or {}).get(key)
    return mean


def _least(mean: Mean | None) -> str:
    """What stands before a mean that is only a bound."""
    if not mean or not mean.get("unbounded"):
        return ""
    return "at most " if mean.get("stood_still") else "at least "


def _row(verdict: Json, comparison: Comparison, metric: Metric) -> str | None:
    cells, shown = [], metric.shown
    for level in comparison["levels"]:
        mean = _metric(verdict, level["treatment"], metric.key)
        text = _least(mean) + _digits(mean["value"] * shown.factor, shown.form) if mean else "-"
        cells.append(f"{level['level']} {text}")
    where = at_words(comparison)
    name = f"{metric.name}, {shown.unit}" + (f" ({where})" if where else "")
    return None if all(cell.endswith(" -") for cell in cells) else f"{name}: {' · '.join(cells)}"


def _digits(value: float, form: str) -> str:
    """A value by its form; with more digits where that would leave one."""
    return format(value, ",.2f" if form == ",.0f" and abs(value) < 10 else form)


def figure_lines(verdict: Json) -> list[str]:
    """The figure of a page where there is room for lines alone: that of a part, or the levels of the first comparison
    in what is judged."""
    for part in parts.SENTENCES:
        if lines := part.figures(verdict):
            return lines
    rows = [
        _row(verdict, comparison, metric_of(verdict["metric"], verdict)) for comparison in verdict["comparisons"][:1]
    ]
    return [row for row in rows if row]


def evidence_lines(verdict: Json, most: int) -> list[str]:
    """The levels of the first comparison that tells some apart, in the measures that may explain it.

    Those in which they differ most come first.

    Rates of another unit of work say nothing beside what is judged: a stream's queries differ by orders of magnitude.
    """
    judged, unit = metric_of(verdict["metric"], verdict), unit_of_work(verdict)
    others = (metric for key, metric in METRICS.items() if key != judged.key)
    beside = [metric.of(unit) for metric in others if EVIDENCE in metric.shown_in]
    alike = [metric for metric in beside if metric.work in (None, judged.work)]
    for comparison in [compared for compared in verdict["comparisons"] if _tells(compared)][:1]:
        ordered = sorted(alike, key=lambda metric: -_spread(verdict, comparison, metric))
        return [row for metric in ordered if (row := _row(verdict, comparison, metric))][:most]
    return []


def _tells(comparison: Comparison) -> bool:
    return any(level["verdict"] == "worse" for level in comparison["levels"])


def _spread(verdict: Json, comparison: Comparison, metric: Metric) -> float:
    """How far the levels lie apart, as a share of the largest."""
    means = (_metric(verdict, level["treatment"], metric.key) for level in comparison["levels"])
    values = [abs(mean["value"]) for mean in means if mean]
    return (max(values) - min(values)) / max(values) if any(values) else 0.0


def generator_words(verdict: Json) -> str:
    """What the generator took and what that alone could explain."""
    generator: GeneratorOfRun = verdict["generator"]
    if generator["core_share_max"] is None:
        return "Load generator: its CPU time is not known"
    text = f"Load generator: at most {generator['core_share_max']:.0%} of the core time"
    if generator["shares_cores"] and generator["explains_between_trials_ratio"]:
        text += (
            f", on cores it shares with the server; between trials that alone explains a ratio of at most "
            f"{generator['explains_between_trials_ratio']:.2f}"
        )
    return text
