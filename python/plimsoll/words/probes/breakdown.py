"""The breakdown in words: what a difference consists of, what the slowest wait for, and why a level is slower.

Says nothing that the numbers do not carry: a part is named only where its interval leaves zero once it is allowed for
how many parts there are (changes_many.py), and where that of the whole difference holds zero, or equal trials differ as
much, the sentence is "cannot tell".
"""

from dataclasses import dataclass
from typing import Any

from plimsoll.analysis.breakdown.document import Breakdown, Difference, OfType, PartsDifference, Sides
from plimsoll.analysis.breakdown.parts import PLAIN
from plimsoll.analysis.breakdown.trial import MEAN, SLOWEST
from plimsoll.analysis.runs.changes_many import confidence_of
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE, MeanDifference
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record.verdict import Mean
from plimsoll.words.part import Sentences

Json = dict[str, Any]
NAMED_MAX = 3
_BRIEF_MAX = 2
_WORTH = 0.05
_NAMES_MAX = 2
_NAME_WORTH = 0.2
_MS_FROM = 1e5


def amount(mean: Mean, signed: bool = True) -> str:
    """+2.90 ms [2.71, 3.10], from nanoseconds; microseconds below a tenth of a millisecond."""
    scale, unit = (1e-6, "ms") if abs(mean["value"]) >= _MS_FROM else (1e-3, "µs")
    form = ".1f" if abs(mean["value"]) * scale >= 10 else ".2f"
    text = f"{format(mean['value'] * scale, ('+' if signed else '') + form)} {unit}"
    if mean["low"] is None or mean["high"] is None:
        return text
    return f"{text} [{format(mean['low'] * scale, form)}, {format(mean['high'] * scale, form)}]"


def is_told(mean: Mean | None) -> bool:
    """Whether an interval leaves zero."""
    low, high = (mean["low"], mean["high"]) if mean else (None, None)
    return low is not None and high is not None and (low > 0 or high < 0)


def _chance(mean: Mean) -> float:
    """The p-value that belongs to a part's t interval; 1 without one."""
    blocks = int(mean["blocks"])
    if mean["low"] is None or mean["high"] is None:
        return 1.0
    error = (mean["high"] - mean["low"]) / 2 / float(t_quantile(0.5 + CONFIDENCE / 2, blocks - 1))
    return MeanDifference(mean["value"], error, blocks - 1, blocks).chance()


def told_parts(row: PartsDifference) -> list[str]:
    """The parts that differ from zero among so many; of those at most one in twenty is expected to be chance."""
    chances = {part: _chance(estimate) for part, estimate in row["parts"].items()}
    least = 1 - confidence_of(list(chances.values()))
    return [part for part, chance in chances.items() if chance <= least]


def named_parts(row: PartsDifference, only_growing: bool = False) -> list[str]:
    """The parts of a difference that differ from zero and are worth a word, the largest first."""
    least = _WORTH * abs(row["total"]["value"])
    named = [part for part in told_parts(row) if abs(row["parts"][part]["value"]) >= least]
    named = [part for part in named if row["parts"][part]["value"] > 0 or not only_growing]
    return sorted(named, key=lambda part: -abs(row["parts"][part]["value"]))[:NAMED_MAX]


def _found(verdict: Json) -> Breakdown:
    breakdown: Breakdown = verdict["breakdown"]
    return breakdown


def wait_names(verdict: Json, row: Sides, part: str) -> list[str]:
    """The server's names of most of what is in a bucket, in the treatment that has more of it."""
    side = row["second"] if row["parts"][part]["value"] > 0 else row["first"]
    of_type = _found(verdict)["treatments"][side]["types"].get(row["kind"])
    known = of_type["waits"] if of_type else []
    waits = [wait for wait in known if wait["bucket"] == part and not wait["name"].startswith("(")]
    whole = sum(wait["ns"] for wait in waits)
    return [wait["name"] for wait in waits[:_NAMES_MAX] if wait["ns"] >= _NAME_WORTH * whole]


def _spread(verdict: Json) -> float:
    return float((verdict.get("a_a") or {}).get("ratio_spread") or 1)


def exceeds_spread(verdict: Json, row: Difference) -> bool:
    """Whether means differ by more than those of equal trials do; of the slowest hundredth that is not known."""
    ratio = row["ratio"]
    return bool(row["band"] != MEAN or not ratio or max(ratio, 1 / ratio) > _spread(verdict))


def part_words(verdict: Json, row: Sides, part: str) -> str:
    names = wait_names(verdict, row, part)
    about = PLAIN.get(part, "") + (f": {', '.join(names)}" if names else "")
    return f"{amount(row['parts'][part])} {part}" + (f" ({about})" if about else "")


def _at(row: Difference) -> str:
    return f" at {', '.join(f'{name} {level}' for name, level in row['at'].items())}" if row["at"] else ""


def subject(row: Difference) -> str:
    """What is set against what: "scale 1 against 25 at clients 20, tpcb_like, slowest 1 %"."""
    kind = "" if row["kind"] == ALL else f", {row['kind']}"
    band = ", slowest 1 %" if row["band"] == SLOWEST else ""
    return f"{row['second_label']} against {row['first_label']}{_at(row)}{kind}{band}"


@dataclass(frozen=True)
class Told:
    """What can be told of a difference: the parts that made it so, those that went the other way, and what is not."""

    more_by: list[str]
    offset_by: list[str]
    remark: str


def told_of(verdict: Json, row: Difference) -> Told:
    """The parts worth a word, or why there are none."""
    total, error = row["total"], row["closure_error"]
    if total["low"] is None:
        return Told([], [], "cannot tell: no interval from fewer than three blocks")
    if not is_told(total):
        return Told([], [], "cannot tell whether it takes longer")
    if not exceeds_spread(verdict, row):
        return Told([], [], f"cannot tell: equal trials differ as much (A/A {_spread(verdict):.2f} x)")
    named = named_parts(row)
    with_it = [part for part in named if (row["parts"][part]["value"] > 0) == (total["value"] > 0)]
    against = [part for part in named if part not in with_it]
    is_open = named and abs(error["value"]) > _WORTH * abs(total["value"])
    remark = f"{amount(error)} of it is not attributed to any part" if is_open else ""
    return Told(
        [part_words(verdict, row, part) for part in with_it],
        [part_words(verdict, row, part) for part in against],
        remark if named else "no single part changed significantly",
    )


def difference_line(verdict: Json, row: Difference) -> str:
    """One sentence for a difference."""
    words = told_of(verdict, row)
    text = f"{subject(row)}: {amount(row['total'])} a transaction"
    text += f", of which {', '.join(words.more_by)}" if words.more_by else ""
    text += f"; offset by {', '.join(words.offset_by)}" if words.offset_by else ""
    return text + (f"; {words.remark}" if words.remark else "")


def of_slowest(verdict: Json, treatment: str, kind: str) -> tuple[Sides, Told] | None:
    """The slowest hundredth of a type less its mean, and by what it takes longer; None without any."""
    of_type: OfType = _found(verdict)["treatments"][treatment]["types"][kind]
    beyond = of_type["beyond_mean"]
    if beyond is None or of_type["bands"][SLOWEST] is None or of_type["bands"][MEAN] is None:
        return None
    row: Sides = {**beyond, "kind": kind, "first": treatment, "second": treatment}
    named = [part for part in named_parts(row) if row["parts"][part]["value"] > 0]
    if row["total"]["low"] is None:
        return row, Told([], [], "cannot tell what makes them slow: no interval from fewer than three blocks")
    if not named:
        return row, Told([], [], "cannot tell what makes them slow")
    return row, Told([part_words(verdict, row, part) for part in named], [], "")


def why_lines(verdict: Json, most: int = 2) -> list[str]:
    """Why: of the levels that are worse than the best the slowest; of pgbench's clients the most clients."""
    rows = _why_rows(verdict)[:most]
    if any(row["about"] == "clients" for row in rows):
        return [f"Why: {difference_line(verdict, row)}{_conclusion(verdict, row)}" for row in rows[::-1]]
    return [f"Why: {difference_line(verdict, row)}" for row in rows]


def _why_rows(verdict: Json) -> list[Difference]:
    """The differences that answer why, the most telling first."""
    rows = [row for row in (_found(verdict)["differences"] if verdict.get("breakdown") else []) if row["band"] == MEAN]
    rows = [row for row in rows if row["kind"] == _first_kind(verdict, row)]
    scales = sorted((row for row in rows if row["about"] == "clients"), key=lambda row: -row["clients"])
    if scales:
        return scales
    worse = [row for row in rows if row["verdict"] == "worse" and row["total"]["value"] > 0]
    return sorted(worse, key=lambda row: -row["total"]["value"])


def _first_kind(verdict: Json, row: Difference) -> str:
    """All types together, or the only one."""
    return next(iter(_found(verdict)["treatments"][row["second"]]["types"]))


def _conclusion(verdict: Json, row: Difference) -> str:
    """Whether waiting for each other is most of what a small scale costs."""
    lock, total = row["parts"].get("lock"), row["total"]
    if not is_told(total) or total["value"] <= 0 or not exceeds_spread(verdict, row):
        return ""
    if lock is None or not is_told(lock):
        return "; cannot tell whether waiting for each other's rows is part of it"
    if (lock["low"] or 0) > 0.5 * total["value"]:
        return "; so most of it is waiting for each other's rows"
    return ""


def brief_line(verdict: Json, row: Difference) -> str:
    """A difference in one short sentence: its largest parts in plain words; difference_line has all of it."""
    total = row["total"]
    named = named_parts(row) if is_told(total) and exceeds_spread(verdict, row) else []
    alike = [part for part in named if (row["parts"][part]["value"] > 0) == (total["value"] > 0)]
    if not alike:
        return difference_line(verdict, row)
    parts = (f"{amount(row['parts'][part])} {PLAIN.get(part, part)} ({part})" for part in alike[:_BRIEF_MAX])
    return f"{subject(row)}: {amount(total)} a transaction, of which {', '.join(parts)}{_conclusion_if(verdict, row)}"


def _conclusion_if(verdict: Json, row: Difference) -> str:
    return _conclusion(verdict, row) if row["about"] == "clients" else ""


def _explains(verdict: Json) -> list[str]:
    return [brief_line(verdict, row) for row in _why_rows(verdict)[:1] if is_told(row["total"])]


def _adds(verdict: Json) -> list[str]:
    """Of a run that compares nothing: what a transaction takes, and its largest parts."""
    entries = {} if verdict["comparisons"] or not verdict.get("breakdown") else _found(verdict)["treatments"]
    for entry in list(entries.values())[:1]:
        for of_type in list(entry["types"].values())[:1]:
            mean = of_type["bands"][MEAN]
            if mean is None:
                continue
            parts = {part: estimate for part, estimate in mean["parts"].items() if estimate}
            largest = sorted(parts, key=lambda part: -parts[part]["value"])[:NAMED_MAX]
            named = (f"{amount(parts[part], signed=False)} {PLAIN.get(part, part)} ({part})" for part in largest)
            return [f"A transaction takes {amount(mean['latency'], signed=False)}, of which {', '.join(named)}"]
    return []


SENTENCES = Sentences("breakdown", explains=_explains, adds=_adds, section="breakdown")
