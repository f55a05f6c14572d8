"""How fast the machine itself was in each round, and what of the rounds' scatter goes with it.

The fact that constrains it: neighbours on the same hardware take cache, memory bandwidth and clock without taking any
CPU time that the kernel would know of. Three pieces of work that are always the same (the probe `machine_speed`) show
it, and rounds can be compared as if all had met a machine of the same speed: an analysis of covariance (Cochran,
Biometrics 13, 1957) whose noise goes on from round to round. Speeds stand in it only where they explain the rounds
better than they cost (Schwarz's criterion). They are measured beside the load: where the load itself slows the caches
down, that is told as the machine's, so a drift as it was measured is told whatever the speeds are.

Acceptance: benches/verdicts.py --only "soak on a machine that wanders", and tests/unit/analysis/test_soak_speed.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from plimsoll.analysis.soak.autoregressive import Fit, fit
from plimsoll.record.run import Segment

PIECES: Final = ("multiply_ns", "add_ns", "memory_ns")
SERIES: Final = "machine_speed"
ROUNDS_MIN: Final = 12  # three speeds, a level and a line take five figures: of fewer rounds too few are left
MOVED_MIN: Final = 0.001  # a speed that scatters by less explains nothing that anybody would see

# By kind of page that it stood on, steps through memory take another time: they compare on pages of one size alone.
ON_PAGES: Final = "memory_ns"
PAGES: Final = "memory_page_bytes"

# What a beat of each piece took in a round, in ns, and the bytes of a page where they are known; None where it was not
# watched.
Speed = dict[str, float] | None


def speed_of(segment: Segment) -> Speed:
    """What a beat of each piece took, over all CPUs: what its sums grew by from the first sample to the last."""
    table: Any = segment.series(SERIES)
    if table is None or not len(table):
        return None
    grown = dict.fromkeys(("beats", *PIECES), 0)
    for cpu in np.unique(table["cpu"]):
        rows = table[table["cpu"] == cpu]
        for name in grown:
            grown[name] += int(rows[name][-1]) - int(rows[name][0])
    if grown["beats"] <= 0 or any(grown[name] <= 0 for name in PIECES):
        return None
    pages = (segment.probes.get(SERIES) or {}).get(PAGES)
    known = {} if pages is None else {PAGES: float(pages)}
    return {name: grown[name] / grown["beats"] for name in PIECES} | known


def speeds_of_parts(segment: Segment, part_s: float, count: int) -> np.ndarray | None:
    """[part, piece]: the logarithm of what a beat took in each of so many equal parts from the segment's begin, over
    all CPUs; None where it was not watched, or not as finely."""
    table: Any = segment.series(SERIES)
    began = segment.told.get("started_ns")
    if table is None or began is None or count < 1:
        return None
    edges = began + np.arange(count + 1) * round(part_s * 1e9)
    sums = np.zeros((count + 1, 1 + len(PIECES)))
    for cpu in np.unique(table["cpu"]):
        rows = table[table["cpu"] == cpu]
        if len(rows) < count:
            return None
        for place, name in enumerate(("beats", *PIECES)):
            sums[:, place] += np.interp(edges, rows["t_ns"], (rows[name] - rows[name][0]).astype(float))
    grown = np.diff(sums, axis=0)
    return None if np.any(grown <= 0) else np.log(grown[:, 1:] / grown[:, :1])


@dataclass(frozen=True)
class Explained:
    """A line through rounds as if the machine had been equally fast in all; `by_machine`: what its speed did to each,
    as a difference of logarithms from what it did to the first."""

    line: Fit
    by_machine: np.ndarray


def explained(logs: np.ndarray, places: np.ndarray, speeds: Sequence[Speed], line: Fit) -> Explained | None:
    """None where speeds are not known of every round, or do not explain the rounds."""
    columns = _columns(speeds)
    if len(logs) < ROUNDS_MIN or not columns:
        return None
    found = fit(logs, places, *columns)
    if found is None or math.isinf(line.likelihood):
        return None  # rounds that are on their line already have nothing to be explained
    if found.likelihood - line.likelihood <= len(columns) * math.log(len(logs)) / 2:
        return None
    effect = sum((one.value * column for one, column in zip(found.coefficients[2:], columns, strict=True)), 0 * logs)
    return Explained(found, effect - effect[0])


def _columns(speeds: Sequence[Speed]) -> list[np.ndarray]:
    """The speeds' logarithms as columns that do not agree with one another (principal components), of mean zero."""
    known = [one for one in speeds if one is not None]
    if len(known) < len(speeds) or not known:
        return []
    compare = len({one.get(PAGES) for one in known}) == 1
    pieces = [piece for piece in PIECES if compare or piece != ON_PAGES]
    logs = np.log([[one[piece] for piece in pieces] for one in known])
    apart = logs - logs.mean(0)
    _, _, directions = np.linalg.svd(apart, full_matrices=False)
    each = apart @ directions.T
    return [column for column in each.T if column.std() >= MOVED_MIN]
