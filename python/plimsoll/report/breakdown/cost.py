"""What the breakdown cost, how it closes, and what became of requests and transactions, on the page."""

from collections.abc import Sequence
from typing import Any

from plimsoll.analysis.breakdown.document import Breakdown, OfTrial
from plimsoll.analysis.breakdown.parts import BY_CALLS, is_by_calls
from plimsoll.analysis.breakdown.totals import added, probe_share, requests
from plimsoll.analysis.breakdown.waits import NFS
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.report.drawing.tables import NONE, number

Json = dict[str, Any]
_US = 1e-3
_SELDOM = ("transactions_not_watched", "transactions_in_part", "transactions_thinned")


def _span(values: Sequence[float], form: str, scale: float = 1.0) -> str:
    """The least and the most, or the one value."""
    if not values:
        return NONE
    ends = [format(value * scale, form) for value in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def cost_row(verdict: Json, treatment: str) -> Json:
    """What the probe took, what it lost, and how its figures close, over a treatment's trials."""
    found: Breakdown = verdict["breakdown"]
    entry = found["treatments"][treatment]
    trials = [one for one in found["trials"] if one["number"] in entry["trials"]]
    costs, sampling = [one["cost"] for one in trials], [one["sampling"] for one in trials]
    cpu_shares = [share for one in trials if (share := probe_share(one)) is not None]
    budgets = [one["budget_share"] for one in sampling if one["budget_share"] is not None]
    highest = [one["one_in_max"] for one in sampling]
    seen = requests(trials)
    types = entry["types"].values()
    worst = max((share for one in types if (share := one["closure_share_worst"]) is not None), key=abs, default=None)
    unnamed = max((share for one in types if (share := one["unnamed_share_max"]) is not None), default=None)
    absolute = max((share for one in types if (share := one["absolute_share_max"]) is not None), default=None)
    lost = added(one["lost"] for one in trials)
    return {
        "label": treatment_labels(verdict).get(treatment, treatment),
        "each": _span([c["ns_per_transaction"] for c in costs if c["ns_per_transaction"] is not None], ",.2f", _US),
        "share": _span(cpu_shares, ".2f", 100),
        "budget": _span(budgets, ".3g", 100),
        "watched": "all" if max(highest, default=1) == 1 else f"1 in {_span(highest, ',.0f')}",
        "lost": ", ".join(f"{count:,} {what}" for what, count in lost.items()) or "none",
        "closure": NONE if worst is None else f"{worst:+.2%}",
        "absolute": NONE if absolute is None else f"{absolute:.2%}",
        "unnamed": NONE if unnamed is None else f"{unnamed:.1%}",
        "seen": number(seen["seen"], ",.0f"),
        "sent": number(seen["sent"], ",.0f"),
        "differ": seen["differ"],
    }


def joined(trials: list[OfTrial]) -> list[tuple[str, str]]:
    """What became of requests and transactions, over the trials."""
    sums = added(one["joined"] for one in trials)
    names = {
        "requests_joined": "requests joined with a transaction",
        "requests_without_transaction": "requests without a transaction",
        "requests_of_others": "requests of other clients of the server",
        "requests_straddling": "requests that reach into the next transaction",
        "requests_ended_later": "requests whose end was noted after the client had the answer",
        "transactions_joined": "transactions with all their requests",
        "transactions_without_request": "transactions without a request",
        "transactions_not_watched": "transactions outside of the slices watched",
        "transactions_in_part": "transactions of which some requests are not in the record",
        "transactions_thinned": "transactions left out so that early ones count no more than late ones",
    }
    rows = [(name, f"{sums.get(key, 0):,}") for key, name in names.items() if sums.get(key) or key not in _SELDOM]
    for what, total in added(one["counts"] for one in trials).items():
        rows.append((f"of every client, {what.replace('_', ' ')}", f"{total:,}"))
    if any(one["sampled"] for one in trials):
        rows.append(("transactions recorded", "a sample: requests of the others count as without a transaction"))
    return rows


def boundaries(trials: list[OfTrial]) -> str:
    """What begins and ends a request."""
    found = {(one["boundaries"].get("begin"), one["boundaries"].get("end")) for one in trials if one["boundaries"]}
    return "; ".join(f"{begin} to {end}" for begin, end in sorted(found, key=str))


def untold(trials: list[OfTrial]) -> str:
    """What cannot be told on the machine, and why."""
    reasons = {why for one in trials for part, why in one.get("absent", {}).items() if part == NFS}
    return "; ".join(f"What waits on NFS are for is not told: {why}" for why in sorted(reasons))


def by_calls(trials: list[OfTrial]) -> str:
    """What is to be said of waits where the server has no names for them."""
    return BY_CALLS if any(is_by_calls(one) for one in trials) else ""
