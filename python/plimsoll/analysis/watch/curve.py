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
