"""The two caches in words: what they hold twice, and what the device read.

Amounts are megabytes (10^6 bytes). Says nothing the verdict does not hold.
"""

from typing import Any

from plimsoll.analysis.caches.document import MeanDeviceReads, Reading, Readings, Total
from plimsoll.words.levels import at_words
from plimsoll.words.part import Sentences

Json = dict[str, Any]
_NAMED_MAX = 4
_SHARE_NAMED = 0.02


def megabytes(value: float) -> str:
    """Whole MB, or a decimal where that would say nothing."""
    return f"{value / 1e6:,.0f}" if abs(value) >= 9.5e6 else f"{value / 1e6:,.1f}"


def after(verdict: Json, treatment: str) -> Reading | None:
    """The reading after the measured segment; before it where there is no other."""
    readings: Readings | None = (verdict["treatments"].get(treatment) or {}).get("double_caching")
    return readings["after"] or readings["before_measure"] if readings else None


def held_twice(reading: Reading) -> str:
    """212 MB (history 150, stock 40, others 22): the relations most of which lie in both caches."""
    both = reading["total"]["both_bytes"]
    rows = sorted(reading["relations"], key=lambda row: -row["both_bytes"])
    named = [row for row in rows[:_NAMED_MAX] if row["both_bytes"] > _SHARE_NAMED * both]
    parts = [f"{row['relation'].strip('()')} {megabytes(row['both_bytes'])}" for row in named]
    rest = both - sum(row["both_bytes"] for row in named)
    if parts and rest > _SHARE_NAMED * both:
        parts.append(f"others {megabytes(rest)}")
    return f"{megabytes(both)} MB" + (f" ({', '.join(parts)})" if parts else "")


def _of_each(total: Total) -> str:
    shares = [
        f"{share:.0%} of what {cache}"
        for share, cache in (
            (total["share_of_server"], "the server's cache"),
            (total["share_of_page_cache"], "the page cache"),
        )
        if share is not None
    ]
    return f"{' and '.join(shares)} holds of the database" if shares else ""


def most_twice(verdict: Json, comparison: Json) -> tuple[Json, Reading] | None:
    """The level of a comparison at which most is held twice, and its reading."""
    read = [(level, reading) for level in comparison["levels"] if (reading := after(verdict, level["treatment"]))]
    return max(read, key=lambda pair: pair[1]["total"]["both_bytes"]) if read else None


def most_twice_bytes(verdict: Json, comparison: Json) -> float:
    """How much that is; 0 where nothing was read."""
    most = most_twice(verdict, comparison)
    return most[1]["total"]["both_bytes"] if most else 0.0


def held_twice_line(verdict: Json, comparison: Json, where: str = "") -> str | None:
    """One sentence for a comparison: at which level most is held twice, of what, and how much of each cache that is."""
    most = most_twice(verdict, comparison)
    if most is None:
        return None
    level, reading = most
    tail = f" {where}" if where else ""
    shares = _of_each(reading["total"])
    return (
        f"In both caches, most at {comparison['label']} {level['level']}{tail}: {held_twice(reading)}"
        + (f"; {shares}" if shares else "")
    )  # fmt: skip


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def _device_reads(verdict: Json, treatment: str) -> MeanDeviceReads | None:
    found: MeanDeviceReads | None = (verdict["treatments"].get(treatment) or {}).get("reconciliation")
    return found


def device_reads_line(verdict: Json, comparison: Json, where: str = "") -> str | None:
    """One sentence: the level that read most from the device, and what explains it."""
    read = [
        (level, reads_of) for level in comparison["levels"] if (reads_of := _device_reads(verdict, level["treatment"]))
    ]
    if not read:
        return None
    level, reads_of = max(read, key=lambda pair: pair[1]["device_bytes"])
    whole = reads_of["device_bytes"]
    if not whole:
        return "Device reads: none at any level the probe watched"
    ahead = reads_of["ahead_used_bytes"] + reads_of["ahead_unused_bytes"]
    parts = [f"{_percent(reads_of['demand_bytes'], whole)} asked for and missed"]
    parts.append(f"{_percent(ahead, whole)} prefetched ({_percent(reads_of['ahead_used_bytes'], ahead)} of it used)")
    if reads_of["swap_in_bytes"]:
        parts.append(f"{_percent(reads_of['swap_in_bytes'], whole)} swapped in")
    if reads_of["other_bytes"] > 0.005 * whole:
        parts.append(f"{_percent(reads_of['other_bytes'], whole)} loaded otherwise")
    shares = [entry["unexplained_share"] for _, entry in read if entry["unexplained_share"] is not None]
    parts.append(f"{reads_of['unexplained_bytes'] / whole:.1%} not explained")
    spread = f" (over the levels {min(shares):.1%} to {max(shares):.1%})" if len(shares) > 1 else ""
    tail = f" {where}" if where else ""
    return (
        f"Device reads, most at {comparison['label']} {level['level']}{tail}: {megabytes(whole)} MB, of which "
        f"{', '.join(parts)}{spread}"
    )


def cache_lines(verdict: Json) -> list[str]:
    """What both caches hold twice and what explains the device reads, for each comparison that has it."""
    lines = []
    for line in (held_twice_line, device_reads_line):
        lines_of = (line(verdict, comparison, at_words(comparison)) for comparison in verdict["comparisons"])
        lines += [text for text in lines_of if text]
    return lines


def _adds(verdict: Json) -> list[str]:
    """How much is held twice, of the comparison and the level with most of it."""
    compared = [comparison for comparison in verdict["comparisons"] if most_twice(verdict, comparison)]
    most = max(compared, key=lambda comparison: most_twice_bytes(verdict, comparison), default=None)
    level_and_reading = most_twice(verdict, most) if most else None
    if most is None or level_and_reading is None:
        return []
    level, reading = level_and_reading
    where = f" {at_words(most)}" if at_words(most) else ""
    twice = f"{megabytes(reading['total']['both_bytes'])} MB"
    return [f"In both caches, most at {most['label']} {level['level']}{where}: {twice} of the database"]


SENTENCES = Sentences("double_caching", adds=_adds, section="double-caching")
