"""Two runs or treatments against each other in lines for the terminal: the ratio, what changed, what is not known."""

import textwrap
from typing import Any

from plimsoll.analysis.comparing.unbounded import blocks_words
from plimsoll.words.comparing.changes import EACH_BY_ITSELF, changes_lines
from plimsoll.words.comparing.changes_many import TOGETHER, absent_lines, call_lines, function_lines
from plimsoll.words.guest import sentences
from plimsoll.words.levels import ratio

Json = dict[str, Any]
_WIDTH = 80


def comparison_lines(compared: Json) -> list[str]:
    """Two runs or treatments against each other, and what changed, for the terminal."""
    label = compared.get("metric_label", "throughput")
    names = [compared[side].get("treatment") or compared[side]["run"] for side in ("second", "first")]
    lines = [line for worth in _worth(compared) for line in _wrapped(worth)]
    lines += _wrapped(f"{names[0]} against {names[1]} ({label} ratio, second over first):")
    for row in compared["treatments"]:
        lines += _wrapped(f"  {row['treatment']}: {ratio(row)}: {row['verdict']}{_unbounded(row)}", "    ")
    if not compared["treatments"]:
        lines.append("  no treatment is in both runs")
    lines += _explained(compared)
    for key, name in (("only_first", "first"), ("only_second", "second")):
        if compared[key]:
            lines += _wrapped(f"Only in the {name} run: {', '.join(compared[key])}")
    if compared["ratio_spread"]:
        lines.append(f'A/A: ratios within {compared["ratio_spread"]:.2f} are called "cannot tell"')
    return lines + [row for caveat in compared["caveats"] for row in _wrapped(f"Caveat: {caveat}")]


def _worth(compared: Json) -> list[str]:
    """What times on a guest kernel are worth, of each run that was on one."""
    sides = [compared[side] for side in ("second", "first") if sentences.guest_of(compared[side]) is not None]
    return list(dict.fromkeys(f"{side['run']}: {sentences.worth_words(side['guest'])}." for side in sides))


def _unbounded(row: Json) -> str:
    """ "; first unbounded in 2 of 5 blocks" of each side that is unbounded somewhere."""
    sides = zip(("first", "second"), row.get("unbounded") or (), strict=False)
    return "".join(f"; {name} {blocks_words(side)}" for name, side in sides if side["blocks"])


def _explained(compared: Json) -> list[str]:
    """What changed of each treatment, what the intervals are worth, and what is not known."""
    explained, spread, lines = compared["explained"], compared["ratio_spread"], []
    for treatment in explained:
        mine = changes_lines(treatment, spread)
        mine += call_lines(treatment["calls"], spread) if treatment["calls"] else []
        mine += function_lines(treatment["functions"], spread) if treatment["functions"] else []
        lines += [*_wrapped(f"What changed, {treatment['treatment']}:"), *mine] if mine else []
    if any(treatment["latency"] or treatment["cpu"] for treatment in explained):
        lines += _wrapped(EACH_BY_ITSELF)
    if any(treatment["calls"] or treatment["functions"] for treatment in explained):
        lines += _wrapped(TOGETHER)
    return lines + [row for text in absent_lines(explained) for row in _wrapped(text)]


def _wrapped(text: str, then: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=then, break_long_words=False)
