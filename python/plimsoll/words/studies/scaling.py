"""Scaling in words: what more CPUs carry, what the law says of it, what a knob does at each memory size, what grows.

Says nothing that the numbers do not carry: a factor whose interval holds 1, or that equal trials differ by, is "cannot
tell"; a parameter whose interval holds zero is called so.
"""

from typing import Any

from plimsoll.analysis.breakdown.document import Breakdown, Difference
from plimsoll.analysis.breakdown.trial import MEAN
from plimsoll.analysis.metrics import metric_of, unit_of_work
from plimsoll.analysis.statistics.law import Parameter
from plimsoll.analysis.studies.document import Law, MemoryPair, MemoryScaling, Over, Scaling, ScalingFactor
from plimsoll.analysis.studies.scaling import ABOUT
from plimsoll.words.part import Sentences
from plimsoll.words.probes.breakdown import exceeds_spread, is_told, named_parts, part_words, subject

Json = dict[str, Any]
SHOWN_MAX = 2
_WORTH = 0.01  # of the time a transaction takes with the fewest: less of growth is not worth a word
_THROUGHPUT = {"better": "more", "worse": "fewer"}
_COST = {"better": "less", "worse": "more"}


def scaling_lines(verdict: Json) -> list[str]:
    """One sentence for each number of clients, the fewest first."""
    scaling: Scaling | None = verdict.get("scaling")
    laws = [law for law in (scaling["laws"] if scaling else []) if law["over"] == "cpus"]
    laws.sort(key=lambda law: (law["clients"] or 0, sorted(law["at"].items())))
    return [text for law in laws if (text := _line(verdict, law)) is not None]


def _line(verdict: Json, law: Law) -> str | None:
    rows: list[ScalingFactor] = verdict["scaling"]["factors"]
    alike = [row for row in rows if (row["clients"], row["at"]) == (law["clients"], law["at"])]
    if not alike:
        return None
    row = max(alike, key=lambda one: int(one["cpus"]))
    work = f"{metric_of(verdict['scaling'].get('metric'), verdict).work}s"
    text = f"{where(law)}{many(row['cpus'], 'CPU')} {_verb(row['cpus'])} {times(row)} the {work} of {row['fewest']}"
    return f"{text}{_judged(verdict, row)}; {law_words(law)}"


def where(law: Law) -> str:
    """ "32 clients, isolation serializable: "; empty where nothing else varies and the clients are not known."""
    parts = [many(law["clients"], "client")] if law["clients"] is not None else []
    parts += [many(law["cpus"], "CPU")] if law["cpus"] is not None else []
    parts += [f"{law['at_labels'].get(path, path)} {level}" for path, level in law["at"].items()]
    return f"{', '.join(parts)}: " if parts else ""


def many(count: int, what: str) -> str:
    """1 CPU, 2 CPUs."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _verb(count: int) -> str:
    return "carries" if count == 1 else "carry"


def times(row: Over) -> str:
    """1.83 x [1.75, 1.91]"""
    if row["low"] is None:
        return f"{row['ratio']:.2f} x [no interval]"
    return f"{row['ratio']:.2f} x [{row['low']:.2f}, {row['high']:.2f}]"


def _judged(verdict: Json, row: ScalingFactor) -> str:
    spread = float((verdict.get("a_a") or {}).get("ratio_spread") or 1)
    if row["low"] is None or row["high"] is None:
        return ", from fewer than three blocks"
    if row["low"] <= 1 <= row["high"]:
        return ", cannot tell whether more"
    if max(row["ratio"], 1 / row["ratio"]) <= spread:
        return f", cannot tell whether more: equal trials differ as much (A/A {spread:.2f} x)"
    if row["high"] < 1:
        return ", so fewer"
    return f", {row['efficiency']:.0%} of what as many CPUs could"


def law_words(law: Law) -> str:
    """The law's parameters, or why it is withheld."""
    sigma, kappa = law["sigma"], law["kappa"]
    if law["status"] != "fitted" or sigma is None or kappa is None:
        return f"scaling law: cannot tell ({law['why']})"
    parameters = f"contention {share(sigma)}{_zero(sigma)}, coherency {small(kappa)}{_zero(kappa)}"
    return f"by the Universal Scalability Law {parameters}; {peak_words(law)}"


def _zero(parameter: Parameter) -> str:
    return " (includes zero)" if parameter["holds_zero"] else ""


def share(parameter: Parameter) -> str:
    """4.6 % [3.8, 5.4]"""
    high = "100" if parameter["high"] is None else f"{100 * parameter['high']:.1f}"
    return f"{100 * parameter['value']:.1f} % [{100 * parameter['low']:.1f}, {high}]"


def small(parameter: Parameter) -> str:
    """0.0043 [0.0038, 0.0049]"""
    high = "no bound" if parameter["high"] is None else f"{parameter['high']:.2g}"
    return f"{parameter['value']:.2g} [{parameter['low']:.2g}, {high}]"


def peak_words(law: Law) -> str:
    """Where throughput is largest, as far as the law and its intervals say."""
    peak, name = law["peak"], "CPUs" if law["over"] == "cpus" else "clients"
    if peak is None or peak["low"] is None:
        return "cannot tell where throughput is largest"
    if peak["value"] is None or peak["high"] is None:
        return f"throughput is largest at no fewer than {peak['low']:.3g} {name}, if anywhere"
    beyond = ", beyond what was measured" if peak["beyond_measured"] else ""
    return f"throughput is largest at {peak['value']:.3g} {name} [{peak['low']:.3g}, {peak['high']:.3g}]{beyond}"


def growth_lines(verdict: Json) -> list[str]:
    """Which parts of a transaction's time grow from the fewest to the most CPUs, or clients."""
    breakdown: Breakdown | None = verdict.get("breakdown")
    rows = [row for row in (breakdown["differences"] if breakdown else []) if row["band"] == MEAN]
    rows = [row for row in rows if row["about"] in ABOUT.values()]
    return [f"What grows: {_growth(verdict, row)}" for row in rows if row["kind"] == first_kind(verdict, row["second"])]


def first_kind(verdict: Json, treatment: str) -> str:
    """All types together, or the only one."""
    return next(iter(verdict["breakdown"]["treatments"][treatment]["types"]))


def _growth(verdict: Json, row: Difference) -> str:
    text = subject(row)
    if row["total"]["low"] is None:
        return f"{text}: cannot tell, no interval from fewer than three blocks"
    if is_told(row["total"]) and not exceeds_spread(verdict, row):
        return f"{text}: cannot tell, equal trials differ as much"
    least = _WORTH * _latency(verdict, row)
    named = [part for part in named_parts(row, only_growing=True) if row["parts"][part]["value"] >= least]
    if not named:
        return f"{text}: no single part grew significantly"
    return f"{text}: {', '.join(part_words(verdict, row, part) for part in named)} a transaction"


def _latency(verdict: Json, row: Difference) -> float:
    """The mean of the fewest, to set what grows against."""
    breakdown: Breakdown = verdict["breakdown"]
    of_type = breakdown["treatments"][row["first"]]["types"].get(row["kind"])
    band = of_type["bands"][MEAN] if of_type else None
    return band["latency"]["value"] if band else 0.0


def memory_lines(verdict: Json) -> list[str]:
    """What the knob does at each memory size: units of work, CPU cost, steal."""
    memory: MemoryScaling | None = verdict.get("memory_scaling")
    work = unit_of_work(verdict)
    return [text for pair in memory["pairs"] if (text := _pair(memory, pair, work))] if memory else []


def _pair(memory: MemoryScaling, pair: MemoryPair, work: str) -> str | None:
    knob, ratio = memory["knob"], pair["throughput"]
    if ratio is None:
        return None
    at = "".join(f", {pair['at_labels'].get(path, path)} {level}" for path, level in pair["at"].items())
    text = (
        f"{memory['memory_label']} {pair['memory']}{at}: {knob['label']} {knob['on']} carries {times(ratio)} the "
        f"{work}s of {knob['off']} ({_THROUGHPUT.get(ratio['verdict'], ratio['verdict'])})"
    )
    if pair["cpu"]:
        text += f" at {times(pair['cpu'])} the CPU cost ({_COST.get(pair['cpu']['verdict'], pair['cpu']['verdict'])})"
    steal = pair["steal"]
    if steal and steal["low"] is not None and steal["high"] is not None and is_told(steal):
        text += f", steal {100 * steal['value']:+.1f} points [{100 * steal['low']:.1f}, {100 * steal['high']:.1f}]"
    return text


def _leads(verdict: Json) -> list[str]:
    """Of the most clients."""
    return scaling_lines(verdict)[-SHOWN_MAX:]


def _explains(verdict: Json) -> list[str]:
    return growth_lines(verdict)[-1:]


SENTENCES = Sentences("scaling", leads=_leads, explains=_explains, section="scaling")
MEMORY = Sentences("memory_scaling", leads=memory_lines, section="scaling")
