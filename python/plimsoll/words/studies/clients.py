"""Study S2's answer in words: whether branch rows limit many clients.

Says nothing that the numbers do not carry: a gain that equal trials show too, or that the fewest clients have as well,
is "cannot tell".
"""

from typing import Any

from plimsoll.analysis.studies.document import AgainstSmallest, Clients, Over
from plimsoll.words.part import Sentences

Json = dict[str, Any]


def lines(verdict: Json) -> list[str]:
    """The answer in words: one line for each of the two largest numbers of clients."""
    clients: Clients | None = verdict.get("clients")
    if not clients or not clients["against_smallest"]:
        return []
    largest = max(row["scale"] for row in clients["against_smallest"])
    rows = [row for row in clients["against_smallest"] if row["scale"] == largest]
    spread = float((verdict.get("a_a") or {}).get("ratio_spread") or 1)
    return [_answer(row, clients, spread) for row in sorted(rows, key=lambda row: -row["clients"])[:2]][::-1]


def growth_lines(verdict: Json) -> list[str]:
    """How much more the most clients carry than the fewest, at the smallest and at the largest scale."""
    clients: Clients | None = verdict.get("clients")
    if not clients or not clients["growth"] or not clients["against_smallest"]:
        return []
    row = max(clients["against_smallest"], key=lambda one: (one["scale"], one["clients"]))
    grown = [
        f"{_interval(one)} at scale {one['scale']:g}"
        for one in clients["growth"]
        if one["clients"] == row["clients"] and one["scale"] in (row["smallest"], row["scale"])
    ]
    fewest = min(one["fewest"] for one in clients["growth"])
    whom = f"{fewest:g} {'client' if fewest == 1 else 'clients'}"
    return [f"{row['clients']:g} clients over {whom}: {', '.join(grown)}"] if grown else []


def _answer(row: AgainstSmallest, clients: Clients, spread: float) -> str:
    smallest, count = row["smallest"], row["clients"]
    text = f"{count:g} clients: scale {row['scale']:g} carries {_interval(row)} the transactions of scale {smallest:g}"
    if row["low"] is None or row["high"] is None:
        return f"{text}; no interval from fewer than three blocks"
    if row["low"] > 1 + clients["delta"] and row["ratio"] <= spread:
        return f"{text}; cannot tell whether branch rows limit them: equal trials differ as much (A/A {spread:.2f} x)"
    if row["low"] > 1 + clients["delta"] and _gained_without_waiting(row, clients):
        return (
            f"{text}; cannot tell whether branch rows limit them: the fewest clients seem to gain as much by the scale"
        )
    if row["low"] > 1 + clients["delta"]:
        return f"{text}; so branch rows, which transactions hold until they have committed, are what limits them"
    if row["scale"] < count:
        return f"{text}; cannot tell whether branch rows limit them: at either scale there are fewer rows than clients"
    if row["high"] < 1 + clients["delta"]:
        return f"{text}; so branch rows are not what limits them here"
    return f"{text}; cannot tell whether branch rows limit them"


def _gained_without_waiting(row: AgainstSmallest, clients: Clients) -> bool:
    """The fewest clients, who hardly wait for each other, seem to gain by the scale, and these not surely more."""
    alike = [one for one in clients["against_smallest"] if one["scale"] == row["scale"]]
    alone, beyond = min(alike, key=lambda one: float(one["clients"])), row.get("beyond_fewest")
    return bool(alone["ratio"] > 1 + clients["delta"] and beyond and not (beyond["low"] or 0) > 1)


def _interval(row: Over) -> str:
    if row["low"] is None:
        return f"{row['ratio']:.2f} x [no interval]"
    return f"{row['ratio']:.2f} x [{row['low']:.2f}, {row['high']:.2f}]"


SENTENCES = Sentences("clients", leads=lines, explains=growth_lines, section="clients")
