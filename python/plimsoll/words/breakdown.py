"""The breakdown in words: what a difference consists of, what the slowest wait for, and why a level is slower.

Says nothing that the numbers do not carry: a part is named only where its interval leaves zero once it is allowed for
how many parts there are (moved_many.py), and where that of the whole difference holds zero, or equal trials differ as
much, the sentence is "cannot tell".
"""

from typing import Any

from plimsoll.analysis.breakdown.parts import PLAIN
from plimsoll.analysis.breakdown.trial import MEAN, SLOWEST
from plimsoll.analysis.runs.moved_many import confidence_of
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE, MeanDifference
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.words.part import Sentences

Json = dict[str, Any]
NAMED_MAX = 3
_WORTH = 0.05
_NAMES_MAX = 2
_NAME_WORTH = 0.2
_MS_FROM = 1e5


def amount(found: Json, signed: bool = True) -> str:
    """+2.90 ms [2.71, 3.10], from nanoseconds; microseconds below a tenth of a millisecond."""
    scale, unit = (1e-6, "ms") if abs(found["value"]) >= _MS_FROM else (1e-3, "µs")
    form = ".1f" if abs(found["value"]) * scale >= 10 else ".2f"
    text = f"{format(found['value'] * scale, ('+' if signed else '') + form)} {unit}"
    if found["low"] is None:
        return text
    return f"{text} [{format(found['low'] * scale, form)}, {format(found['high'] * scale, form)}]"


def is_told(found: Json | None) -> bool:
    """Whether an interval leaves zero."""
    return bool(found and found["low"] is not None and (found["low"] > 0 or found["high"] < 0))


def _chance(found: Json) -> float:
    """The p-value that belongs to a part's t interval; 1 without one."""
    blocks = int(found["blocks"])
    if found["low"] is None:
        return 1.0
    error = (found["high"] - found["low"]) / 2 / float(t_quantile(0.5 + CONFIDENCE / 2, blocks - 1))
    return MeanDifference(found["value"], error, blocks - 1, blocks).chance()


def told_parts(row: Json) -> list[str]:
    """The parts that differ from zero among so many; of those at most one in twenty is expected to be chance."""
    chances = {part: _chance(one) for part, one in row["parts"].items()}
    least = 1 - confidence_of(list(chances.values()))
    return [part for part, chance in chances.items() if chance <= least]


def named_parts(row: Json, only_growing: bool = False) -> list[str]:
    """The parts of a difference that differ from zero and are worth a word, the largest first."""
    least = _WORTH * abs(row["total"]["value"])
    told = [part for part in told_parts(row) if abs(row["parts"][part]["value"]) >= least]
    told = [part for part in told if row["parts"][part]["value"] > 0 or not only_growing]
    return sorted(told, key=lambda part: -abs(row["parts"][part]["value"]))[:NAMED_MAX]


def wait_names(verdict: Json, row: Json, part: str) -> list[str]:
    """The server's names of most of what is in a bucket, in the treatment that has more of it."""
    side = row["second"] if row["parts"][part]["value"] > 0 else row["first"]
    found = verdict["breakdown"]["treatments"][side]["types"].get(row["kind"]) or {}
    waits = [wait for wait in found.get("waits") or [] if wait["bucket"] == part and not wait["name"].startswith("(")]
    whole = sum(wait["ns"] for wait in waits)
    return [wait["name"] for wait in waits[:_NAMES_MAX] if wait["ns"] >= _NAME_WORTH * whole]


def _spread(verdict: Json) -> float:
    return float((verdict.get("a_a") or {}).get("ratio_spread") or 1)


def exceeds_spread(verdict: Json, row: Json) -> bool:
    """Whether means differ by more than those of equal trials do; of the slowest hundredth that is not known."""
    ratio = row["ratio"]
    return bool(row["band"] != MEAN or not ratio or max(ratio, 1 / ratio) > _spread(verdict))


def part_words(verdict: Json, row: Json, part: str) -> str:
    names = wait_names(verdict, row, part)
    about = PLAIN.get(part, "") + (f": {', '.join(names)}" if names else "")
    return f"{amount(row['parts'][part])} {part}" + (f" ({about})" if about else "")


def _at(row: Json) -> str:
    return f" at {', '.join(f'{name} {level}' for name, level in row['at'].items())}" if row["at"] else ""


def subject(row: Json) -> str:
    """What is set against what: "scale 1 against 25 at clients 20, tpcb_like, slowest 1 %"."""
    kind = "" if row["kind"] == ALL else f", {row['kind']}"
    band = ", slowest 1 %" if row["band"] == SLOWEST else ""
    return f"{row['second_label']} against {row['first_label']}{_at(row)}{kind}{band}"


def difference_line(verdict: Json, row: Json) -> str:
    """One sentence for a difference."""
    total = row["total"]
    text = f"{subject(row)}: {amount(total)} a transaction"
    if total["low"] is None:
        return f"{text}; cannot tell: no interval from fewer than three blocks"
    if not is_told(total):
        return f"{text}; cannot tell whether it takes longer"
    if not exceeds_spread(verdict, row):
        return f"{text}; cannot tell: equal trials differ as much (A/A {_spread(verdict):.2f} x)"
    named = named_parts(row)
    if not named:
        return f"{text}; no single part changed significantly"
    text += _consists(verdict, row, named)
    error = row["closure_error"]
    if abs(error["value"]) > _WORTH * abs(total["value"]):
        text += f"; {amount(error)} of it is not attributed to any part"
    return text


def _consists(verdict: Json, row: Json, named: list[str]) -> str:
    """The parts that made it so, and those that went the other way."""
    with_it = [part for part in named if (row["parts"][part]["value"] > 0) == (row["total"]["value"] > 0)]
    against = [part for part in named if part not in with_it]
    text = f", of which {', '.join(part_words(verdict, row, part) for part in with_it)}" if with_it else ""
    return text + (f"; offset by {', '.join(part_words(verdict, row, part) for part in against)}" if against else "")


def slowest_line(verdict: Json, treatment: str, kind: str) -> str | None:
    """What the slowest hundredth of a type are made of, against the mean; None without any."""
    found = verdict["breakdown"]["treatments"][treatment]["types"][kind]
    row, slow, mean = found["beyond_mean"], found["bands"][SLOWEST], found["bands"][MEAN]
    if row is None or slow is None or mean is None:
        return None
    sampled = verdict["breakdown"]["treatments"][treatment]["one_in_max"] > 1
    whose = " of those recorded" if sampled else ""
    text = (
        f"the slowest 1 % ({slow['transactions']:,} transactions{whose}) take {amount(slow['latency'], signed=False)}, "
        f"the mean {amount(mean['latency'], signed=False)}"
    )
    row = row | {"kind": kind, "first": treatment, "second": treatment}
    named = [part for part in named_parts(row) if row["parts"][part]["value"] > 0]
    if row["total"]["low"] is None:
        return f"{text}; cannot tell what makes them slow: no interval from fewer than three blocks"
    if not named:
        return f"{text}; cannot tell what makes them slow"
    return f"{text}; more by {', '.join(part_words(verdict, row, part) for part in named)}"


def why_lines(verdict: Json, most: int = 2) -> list[str]:
    """Why: of the levels that are worse than the best the slowest; of pgbench's clients the most clients."""
    rows = [row for row in (verdict.get("breakdown") or {}).get("differences") or [] if row["band"] == MEAN]
    rows = [row for row in rows if row["kind"] == _first_kind(verdict, row)]
    scales = sorted((row for row in rows if row["about"] == "clients"), key=lambda row: -row["clients"])
    if scales:
        return [f"Why: {difference_line(verdict, row)}{_conclusion(verdict, row)}" for row in scales[:most][::-1]]
    worse = [row for row in rows if row["verdict"] == "worse" and row["total"]["value"] > 0]
    worse.sort(key=lambda row: -row["total"]["value"])
    return [f"Why: {difference_line(verdict, row)}" for row in worse[:most]]


def _first_kind(verdict: Json, row: Json) -> str:
    """All types together, or the only one."""
    return next(iter(verdict["breakdown"]["treatments"][row["second"]]["types"]))


def _conclusion(verdict: Json, row: Json) -> str:
    """Whether waiting for each other is most of what a small scale costs."""
    lock, total = row["parts"].get("lock"), row["total"]
    if not is_told(total) or total["value"] <= 0 or not exceeds_spread(verdict, row):
        return ""
    if lock is None or not is_told(lock):
        return "; cannot tell whether waiting for each other's rows is part of it"
    if lock["low"] > 0.5 * total["value"]:
        return "; so most of it is waiting for each other's rows"
    return ""


def _explains(verdict: Json) -> list[str]:
    return why_lines(verdict, most=1)


SENTENCES = Sentences("breakdown", explains=_explains)
