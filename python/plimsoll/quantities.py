"""Quantities as people write them: one form a kind of quantity, for verdicts, pages and the terminal."""


def rate(value: float) -> str:
    """A rate with about four digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 else f"{value:,.2f}"


def duration(ns: float | None) -> str:
    """Nanoseconds in the unit that leaves at most three digits before the point."""
    if ns is None:
        return "–"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            value = ns / size
            return (
                f"{value:.2f} {unit}"
                if value < 10
                else f"{value:.1f} {unit}"
                if value < 100
                else f"{value:,.0f} {unit}"
            )
    return f"{ns:.0f} ns"


def elapsed(seconds: float) -> str:
    """Whole seconds, minutes and seconds, or hours and minutes: how long something takes, for people who wait."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    if whole < 2 * 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count: float) -> str:
    """Bytes in the largest unit that keeps the number above 1, with up to four digits."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def share(value: float | None) -> str:
    """A share in points."""
    return "–" if value is None else f"{100 * value:.1f} %"


def one(unit: str) -> str:
    """A unit with its article: a transaction, an operation."""
    return f"{'an' if unit[0] in 'aeiou' else 'a'} {unit}"
