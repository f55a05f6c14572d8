"""What the kernel writes back of servers that are frozen, while another one is served.

A frozen server dirties nothing, so pages of its group that were dirty or under writeback after one of its windows, and
are not any more when the next one opens, were written meanwhile: in other servers' windows, or between them. Told where
the group's memory statistics have `dirty_bytes` and `writeback_bytes`; set against all that the disks wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plimsoll.analysis.trial.readings import SECTOR_BYTES
from plimsoll.analysis.windows.document import OthersWrites
from plimsoll.record import Trial

NAMED = 0.10  # a share of the writes beyond it is named


def while_frozen(trial: Trial) -> float | None:
    """Bytes of a server's group that were written while it was frozen; None where that was not read."""
    dirty, under_way = (trial.measure.column("group", name) for name in ("dirty_bytes", "writeback_bytes"))
    if dirty is None or under_way is None or len(dirty) < 4:
        return None
    held = dirty + under_way
    before, after = held[1:-1:2], held[2::2]
    count = min(len(before), len(after))
    gone = before[:count] - after[:count]
    return float(gone[np.isfinite(gone)].clip(0).sum())


def device_bytes(trials: Sequence[Trial]) -> float | None:
    """What the watched disks wrote from the first window to the last of a block's trials; None where not read."""
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for trial in trials:
        table, written = trial.measure.series("device"), trial.measure.column("device", "write_sectors")
        if table is None or written is None:
            return None
        names = trial.measure.told.get("devices") or []
        for place in np.unique(table["device"]):
            mine = written[(table["device"] == place) & np.isfinite(written)]
            # Servers may lie on different disks, and each trial counts its own from 0.
            device = names[int(place)] if place < len(names) else str(place)
            if len(mine):
                first[device] = min(first.get(device, np.inf), float(mine.min()))
                last[device] = max(last.get(device, 0.0), float(mine.max()))
    return sum(last[device] - first[device] for device in last) * SECTOR_BYTES if last else None


def of_blocks(blocks: Sequence[Sequence[Trial]]) -> OthersWrites | None:
    """Over all blocks where it was read; None where none."""
    total, by_treatment = 0.0, dict[str, float]()
    for trials in blocks:
        written = device_bytes(trials)
        each = [(trial.treatment, while_frozen(trial)) for trial in trials]
        if not written or any(value is None for _, value in each):
            continue
        total += written
        for treatment, value in each:
            by_treatment[treatment] = by_treatment.get(treatment, 0.0) + (value or 0.0)
    if not total:
        return None
    share = sum(by_treatment.values()) / total
    return {"share": share, "is_named": share > NAMED, "device_bytes": total, "treatments": by_treatment}
