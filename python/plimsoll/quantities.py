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


def share(value: float | None) -> str:
    """A share in points."""
    return "–" if value is None else f"{100 * value:.1f} %"
