"""The seconds of a watch as a curve: how many backends were in which bucket, on average of each stretch."""

from collections.abc import Sequence

from plimsoll.analysis.watch.document import BackendRow, QueryRow, Stretch


def began_ns(seconds: list[Stretch]) -> int | None:
    """When the first stretch began, on the host's monotonic clock; None of none."""
    return seconds[0]["t_ns"] - seconds[0]["span_ns"] if seconds else None


def backends(stretch: Stretch) -> dict[str, float]:
    """Backends by bucket, mean over a stretch that lasted."""
    return {bucket: ns / stretch["lasted_ns"] for bucket, ns in stretch["buckets"].items()}


def longest_ns(rows: Sequence[QueryRow | BackendRow]) -> float:
    """The most time that one of some queries or backends has in all its buckets; 0 of none."""
    return max((sum(row["buckets"].values()) for row in rows), default=0)


def merged(seconds: list[Stretch], most: int) -> list[Stretch]:
    """Neighbouring stretches of time taken together until there are no more than so many."""
    each = -(-len(seconds) // most)
    if each <= 1:
        return list(seconds)
    rows: list[Stretch] = []
    for first in range(0, len(seconds), each):
        some = seconds[first : first + each]
        buckets: dict[str, int] = {}
        for second in some:
            for name, ns in second["buckets"].items():
                buckets[name] = buckets.get(name, 0) + ns
        rows.append(
            {
                "t_ns": some[-1]["t_ns"],
                "span_ns": sum(second["span_ns"] for second in some),
                "lasted_ns": sum(second["lasted_ns"] for second in some),
                "transactions": sum(second["transactions"] for second in some),
                "buckets": buckets,
            }
        )
    return rows
