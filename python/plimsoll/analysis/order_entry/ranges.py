"""Is a bound of the order-entry specification kept, and is the sample large enough to tell?

Each bound is judged by a 95 % interval of what was counted: the exact binomial one of a share (C. J. Clopper and E. S.
Pearson, The use of confidence or fiducial limits, Biometrika 26, 1934), that of a Poisson count for what happens so
often a minute. Wholly inside the bound it holds, wholly outside it is broken, and anything else cannot be told.
Clauses are those of TPC-C 5.11.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from plimsoll.analysis.order_entry.document import Bound
from plimsoll.analysis.statistics.distributions import normal_quantile, share_interval
from plimsoll.analysis.statistics.intervals import CONFIDENCE

HOLDS, BROKEN, CANNOT_TELL, DOES_NOT_APPLY = "holds", "broken", "cannot tell", "does not apply"
TAIL = (1 - CONFIDENCE) / 2
RULE = (
    "holds: the whole 95 % interval lies within the bound (of shares the exact binomial interval); broken: all of it "
    "lies outside; cannot tell: the sample is too small"
)
# Clause 5.2.3: the least shares; New-Order has none.
SHARES_MIN: Final = {"payment": 0.43, "order_status": 0.04, "delivery": 0.04, "stock_level": 0.04}
PLURALS: Final = {
    "new_order": "New-Orders",
    "payment": "Payments",
    "order_status": "Order-Statuses",
    "delivery": "Deliveries",
    "stock_level": "Stock-Levels",
}
DISTRICTS = 10
# The number of lines lies between 5 and 15, so its standard deviation is at most half of the range.
LINES_SD_MAX = 5.0
# A terminal plays decks of 23 cards. Of a window of its transactions only a first and a last deck are not whole, and
# the share of m of 23 cards drawn without putting back varies, times m squared, by m (23 - m) / 22 p (1 - p): at most
# 6.01 p (1 - p).
DECK_VARIANCE_MAX = 2 * (11.5 * 11.5 / 22)


def word(low: float, high: float, least: float | None, most: float | None) -> str:
    """What an interval says of a bound; either end of the bound may be open."""
    least, most = -math.inf if least is None else least, math.inf if most is None else most
    if least <= low and high <= most:
        return HOLDS
    return BROKEN if high < least or low > most else CANNOT_TELL


def bound(name: str, label: str, unit: str, least: float | None, most: float | None) -> Bound:
    """A row without its finding; `unit`: "share", "lines", "per minute" or "s"."""
    return {
        "name": name,
        "label": label,
        "unit": unit,
        "least": least,
        "most": most,
        "value": None,
        "low": None,
        "high": None,
        "count": None,
        "of": None,
        "verdict": CANNOT_TELL,
    }


def judged_share(row: Bound, count: int, of: int, effective: float | None = None) -> Bound:
    """A row with the share count / of; `effective`: the independent draws that so many are worth."""
    if not of:
        return row
    worth = of if effective is None else effective
    low, high = share_interval(count / of * worth, worth, CONFIDENCE)
    said = word(low, high, row["least"], row["most"])
    return {**row, "value": count / of, "low": low, "high": high, "count": count, "of": of, "verdict": said}


def mix(done: Mapping[str, int], *, terminals: int, is_dealt: bool) -> list[Bound]:
    """Each type's share of the done transactions; `terminals`: those of every segment, `is_dealt`: from decks."""
    total = sum(done.values())
    rows: list[Bound] = []
    for kind, count in done.items():
        row = bound(kind, f"share of {PLURALS.get(kind, kind)}", "share", SHARES_MIN.get(kind), None)
        worth = total * max(1.0, total / (DECK_VARIANCE_MAX * terminals)) if is_dealt and terminals else None
        row = judged_share(row, count, total, worth)
        rows.append(row if kind in SHARES_MIN else {**row, "verdict": DOES_NOT_APPLY})
    return rows


def ranges(totals: Mapping[str, int], *, warehouses: int, minutes: float) -> list[Bound]:
    """The ranges of clause 5.2.5 over the totals of the segments' summaries."""
    orders = totals["new_order_done"] + totals["new_order_rolled_back"]
    lines = totals["order_lines_drawn"]
    found = [
        judged_share(
            bound("rolled_back", "New-Orders rolled back", "share", 0.009, 0.011),
            totals["new_order_rolled_back"],
            orders,
        ),
        _lines(bound("lines", "lines per order", "lines", 9.5, 10.5), lines, orders),
    ]
    remote = [
        (
            bound("remote_lines", "order lines from a remote warehouse", "share", 0.0095, 0.0105),
            "remote_lines_drawn",
            lines,
        ),
        (
            bound("remote_payments", "Payments of a remote customer", "share", 0.14, 0.16),
            "payment_remote",
            totals["payment_done"],
        ),
    ]
    for row, name, of in remote:
        # With a single warehouse there is no other.
        judged = judged_share(row, totals[name], of)
        found.append({**judged, "verdict": DOES_NOT_APPLY} if warehouses < 2 else judged)
    for kind in ("payment", "order_status"):
        row = bound(f"{kind}_by_name", f"{PLURALS[kind]} by last name", "share", 0.57, 0.63)
        found.append(judged_share(row, totals[f"{kind}_by_name"], totals[f"{kind}_done"]))
    return [*found, skipped_districts(totals, minutes)]


def skipped_districts(totals: Mapping[str, int], minutes: float) -> Bound:
    """Districts in which a Delivery found no order: more than 1 % of them, or one a minute if that is more, is told."""
    looked_at = DISTRICTS * totals["delivery_done"]
    most = max(0.01, minutes / looked_at) if looked_at else 0.01
    row = bound("skipped_districts", "districts a Delivery skipped", "share", None, min(1.0, most))
    return judged_share(row, totals["districts_skipped"], looked_at)


def _lines(row: Bound, lines: int, orders: int) -> Bound:
    if not orders:
        return row
    mean = lines / orders
    half = float(normal_quantile(1 - TAIL)) * LINES_SD_MAX / math.sqrt(orders)
    low, high = mean - half, mean + half
    said = word(low, high, row["least"], row["most"])
    return {**row, "value": mean, "low": low, "high": high, "count": lines, "of": orders, "verdict": said}
