"""Estimates over blocks as a verdict keeps them."""

from plimsoll.analysis.statistics.intervals import Estimate
from plimsoll.record.verdict import Mean


def as_mean(estimate: Estimate | None) -> Mean | None:
    """The estimate as a document; None stays None."""
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "blocks": estimate.blocks}
