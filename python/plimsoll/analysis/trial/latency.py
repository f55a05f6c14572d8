"""Latency of one trial by kind: from its rows where all were kept, else from the histograms that hold all of them."""

from __future__ import annotations

import numpy as np

from plimsoll.analysis.percentiles import PERCENTILES
from plimsoll.analysis.trial import histograms
from plimsoll.analysis.trial.histograms import ALL, BEYOND_MIN
from plimsoll.analysis.trial.readings import DONE, is_whole, late_limit_ns, skipped_late, unanswered
from plimsoll.record import Segment

Percentiles = dict[str, float | None]


def percentile(ordered: np.ndarray, share: float, unanswered: int = 0) -> float | None:
    """Nearest rank of sorted values, those unanswered beyond all of them; None unless at least ten lie beyond it.

    None too where the rank lies among the unanswered: then no latency is known that so many did not exceed
    (`unbounded` says which these are).
    """
    count = len(ordered) + unanswered
    rank = int(np.ceil(share * count - 1e-9))
    return float(ordered[rank - 1]) if 1 <= rank <= len(ordered) and count - rank >= BEYOND_MIN else None


def source(segment: Segment) -> str | None:
    """ "rows" or "histogram": what the percentiles rest on; None without either."""
    table = segment.transactions
    if table is not None and len(table) and is_whole(segment):
        return "rows"
    return "histogram" if histograms.of_segment(segment) else None


def latency_by_kind(segment: Segment) -> dict[str, Percentiles]:
    """Percentiles of planned-to-end latency, by kind (done transactions) and for all together ("all").

    For all together those of an open loop that got no timely answer count as slower than any (readings.unanswered).
    """
    if source(segment) == "rows":
        return _from_rows(segment)
    return {
        kind: {"count": float(found.total), "max": found.largest}
        | {name: found.percentile(share) for name, share in PERCENTILES.items()}
        for kind, found in histograms.of_segment(segment).items()
    }


def unbounded(segment: Segment) -> dict[str, float]:
    """{percentile: the least it can be, ns} of those of all transactions that lie among the unanswered.

    The least is the late limit where any were skipped by it, or the largest latency that was seen, whichever is longer.
    A percentile with fewer than ten transactions beyond it is not among them: it is not known.
    """
    beyond = unanswered(segment)
    if not beyond:
        return {}
    overall = latency_by_kind(segment).get(ALL, {})
    limit = late_limit_ns(segment) if skipped_late(segment) else None
    known = [value for value in (overall.get("max"), limit) if value]
    answered = int(overall.get("count") or 0)
    count = answered + beyond
    ranks = {name: int(np.ceil(share * count - 1e-9)) for name, share in PERCENTILES.items()}
    return {name: max(known) for name, rank in ranks.items() if known and answered < rank <= count - BEYOND_MIN}


def _from_rows(segment: Segment) -> dict[str, Percentiles]:
    table = segment.transactions
    assert table is not None
    done = table[table["outcome"] == DONE]
    latency = (done["end_ns"] - done["planned_ns"]).astype(float)
    kinds = segment.kinds
    found = {ALL: latency}
    for index in np.unique(done["kind"]):
        name = str(kinds[index]) if index < len(kinds) else f"kind {index}"
        found[name] = latency[done["kind"] == index]
    result: dict[str, Percentiles] = {}
    for name, values in found.items():
        ordered = np.sort(values)
        result[name] = {"count": float(len(ordered)), "max": float(ordered[-1]) if len(ordered) else None}
        beyond = unanswered(segment) if name == ALL else 0
        result[name] |= {key: percentile(ordered, share, beyond) for key, share in PERCENTILES.items()}
    return result
