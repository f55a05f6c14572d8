"""A capacity run's verdict in words. Says nothing that capacity.json does not hold."""

import math

from plimsoll.analysis.capacity.document import Capacity, LinesCompared, MovedCondition, SearchTrial, Term
from plimsoll.analysis.capacity.drift import value_words
from plimsoll.analysis.capacity.line import SIMULATED_SECONDS
from plimsoll.analysis.capacity.objective import time_words
from plimsoll.quantities import rate


def unit(verdict: Capacity) -> str:
    """What a rate of the search is a number of: operations a second, or connections."""
    return "/s" if verdict["objective"].get("conforming") is None else " connections"


def interval(low: float | None, high: float | None) -> str:
    """[low, high]"""
    if low is None or high is None:
        return "[no interval]"
    return f"[{rate(low)}, {rate(high)}]"


def headline(verdict: Capacity) -> str:
    """What the system carries, in one sentence."""
    line, subject, text = verdict["line"], verdict["subject"], verdict["objective"]["text"]
    if line["status"] == "found" and line["rate"] is not None:
        said = f"{subject} carries {rate(line['rate'])}{unit(verdict)} {interval(line['low'], line['high'])} at {text}"
    elif line["status"] == "at least" and line["rate"] is not None:
        broke = any(one["verdict"] == "breaks" for one in verdict["trials"])
        what = "rate that breaks" if unit(verdict) == "/s" else "number of connections that breaks"
        unbounded = "trials that broke it do not agree with others" if broke else f"no {what} it was reached"
        why = "the load generator was saturated" if line["generator"] else unbounded
        said = f"{subject} carries at least {rate(line['rate'])}{unit(verdict)} at {text}; {why}"
    elif line["status"] == "below" and line["high"] is not None:
        tried = "at any rate tried" if unit(verdict) == "/s" else "with any number of connections tried"
        said = f"{subject} does not hold {text} {tried}, down to {rate(line['high'])}{unit(verdict)}"
        if line["generator"]:
            said += "; the load generator was saturated"
    else:
        said = f"{subject}: cannot tell what it carries at {text}: the trials do not decide it{more_words(verdict)}"
    return f"{said}; {knee_words(verdict)}" if knee_words(verdict) else said


def more_words(verdict: Capacity) -> str:
    """How long a search might tell."""
    more, budget = verdict["line"].get("more"), verdict["budget_seconds"]
    return f"; --minutes {math.ceil(more * budget / 60)} might" if more and budget else ""


def knee_words(verdict: Capacity) -> str:
    """Where the queue starts to grow."""
    knee = verdict["knee"]
    if knee is None:
        return ""
    if knee["low"] is None:
        return f"the queue grows already at the lowest rate tried, {rate(knee['rate'])}/s"
    said = f"the queue starts to grow at {rate(knee['rate'])}/s {interval(knee['low'], knee['high'])}"
    return said + {"above": ", above the load line", "beside": ", not distinguishable from the load line"}.get(
        knee["place"] or "", ""
    )


def near_line(verdict: Capacity) -> SearchTrial | None:
    """The trial at the highest rate that holds."""
    held = [trial for trial in verdict["trials"] if trial["verdict"] == "holds"]
    return max(held, key=lambda trial: (trial["rate"] or 0.0, trial["number"]), default=None)


def trial_words(entry: SearchTrial) -> str:
    """A trial in a few words: what it showed, and its verdict."""
    if entry["status"] != "finished" or "throughput" not in entry:
        return f"{entry['status']}: {entry['reason'] or 'no result'}"
    if entry["rate"] is None:
        return f"{rate(entry['throughput'])}/s done, all clients busy"
    terms = "  ".join(term_words(term) for term in entry["terms"])
    disturbed = f", disturbed: {entry['disturbed']}" if entry.get("disturbed") else ""
    return f"{terms}  {entry['verdict']}{disturbed}"


def term_words(term: Term) -> str:
    """p99 8.1 ms [7.2 ms, 9.5 ms]"""
    name = term["term"].partition(" ")[0]
    if "limit_ns" not in term:
        return f"{name} {term['value']:.2%}"
    if term["value"] is None:
        return f"{name} unbounded (operations without an answer)"
    high = time_words(term["high"]) if term["high"] is not None else "no bound"
    return f"{name} {time_words(term['value'])} [{time_words(term['low'] or 0.0)}, {high}]"


def evidence_lines(verdict: Capacity) -> list[str]:
    """What stands behind the headline."""
    lines = []
    closed, held = verdict["closed_loop"], near_line(verdict)
    if closed is not None:
        lines.append(
            f"Closed loop with {closed['clients']} {verdict.get('clients_called', 'connections')}: "
            f"{rate(closed['throughput'])}/s, whatever the latency"
        )
    if verdict["line"]["status"] == "found" and unit(verdict) == "/s":
        shorter = (verdict["budget_seconds"] or 0.0) < SIMULATED_SECONDS
        lines.append(
            "In simulated ten-minute searches of steady servers the interval held the true line in about nine of "
            f"ten or more; {'how often in shorter ones, as this is, is not known; ' if shorter else ''}another hour "
            "may find another machine"
        )
    if held is not None and held["rate"] is not None:
        what = "Highest rate" if unit(verdict) == "/s" else "Highest number"
        terms = ", ".join(map(term_words, held["terms"]))
        lines.append(f"{what} that held: {rate(held['rate'])}{unit(verdict)}: {terms}")
    opened = [trial for trial in verdict["trials"] if trial["rate"] is not None and trial["verdict"]]
    if opened:
        words = [trial["verdict"] for trial in opened]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        what = "rates" if unit(verdict) == "/s" else "numbers of connections"
        lines.append(f"{len(opened)} trials at {len({trial['rate'] for trial in opened})} {what}: {counts}")
    return lines


def earlier_lines(verdict: Capacity) -> list[str]:
    """The same question asked before on this machine: agreement, or what moved."""
    lines = []
    for earlier_run in verdict.get("earlier", []):
        lines.append(compared_words(earlier_run, unit(verdict)))
    return lines


def compared_words(compared: LinesCompared, of: str = "/s") -> str:
    """One comparison of two load lines; `of`: their unit."""
    first = compared["first"]
    if compared["ratio"] is None or first["line"]["rate"] is None:
        return f"Against {first['run']}: cannot be compared, one of the two has no load line"
    bounds = f" [{compared['low']:.2f}, {compared['high']:.2f}]" if compared["low"] is not None else ""
    said = f"Against {first['run']} ({rate(first['line']['rate'])}{of}): ratio {compared['ratio']:.3f}{bounds}"
    if compared["agree"]:
        return f"{said}: agree within 5 %"
    moved = "; ".join(moved_words(row) for row in compared["moved"][:3])
    verdict = "differ" if compared["agree"] is False else "cannot tell"
    return f"{said}: {verdict}; what changed: {moved or 'nothing that is recorded'}"


def moved_words(row: MovedCondition) -> str:
    """One condition that differs."""
    return f"{row['label']} {value_words(row['unit'], row['first'])} then {value_words(row['unit'], row['second'])}"


def terminal_lines(verdict: Capacity, report_path: object) -> list[str]:
    """The end of a capacity run on the terminal."""
    lines = [headline(verdict), *evidence_lines(verdict), *earlier_lines(verdict)]
    lines += [f"Caveat: {caveat}" for caveat in verdict["caveats"][:4]]
    if len(verdict["caveats"]) > 4:
        lines.append(f"and {len(verdict['caveats']) - 4} more caveats, in the report")
    return [*lines, f"Report: {report_path}"]
