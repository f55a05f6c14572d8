"""What of a server's data is in Linux's page cache around what is measured, and what left it unexplained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plimsoll.environment.memory import page_cache
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.trial.log import TrialLog

WARM_SHARE = 0.9


def in_bytes(residency: page_cache.Residency) -> dict[str, int]:
    """As trial.json has it."""
    return {"resident_bytes": residency.resident_bytes, "total_bytes": residency.total_bytes}


def verify_warm(log: TrialLog, place: PrivatePlace) -> None:
    """Warm means resident: as much of the data as the group has room for."""
    residency = page_cache.residency(*place.trees)
    log.facts["residency"]["after_warming"] = in_bytes(residency)
    limit = place.limits.memory_bytes if place.limits is not None else None
    room = min(residency.total_bytes, limit or residency.total_bytes)
    if residency.resident_bytes < WARM_SHARE * room:
        log.caveat(f"cache not warm: {residency.resident_bytes / 2**20:.1f} MiB of {room / 2**20:.1f} MiB resident")


@contextmanager
def residency_watched(log: TrialLog, place: PrivatePlace) -> Iterator[None]:
    """Reads residency around the measured segment and flags what left the page cache without being reclaimed.

    A DAMON scheme or another tool that pages out does that, and a result measured meanwhile is not the server's.
    """
    before, taken = page_cache.residency(*place.trees), place.host.reclaimed_bytes()
    yield
    after = page_cache.residency(*place.trees)
    lost = page_cache.unexplained_loss(before, after, reclaimed_bytes=place.host.reclaimed_bytes() - taken)
    log.facts["residency"] |= {
        "before_measure": in_bytes(before),
        "after": in_bytes(after),
        "unexplained_loss_bytes": lost,
    }
    if lost:
        log.caveat(f"{lost} bytes of the data left the page cache without being reclaimed by the kernel: see DAMON")
