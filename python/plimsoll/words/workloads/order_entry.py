"""What the order-entry workload did, in sentences. The label that it is "-like" stands in every one of them."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.order_entry.document import OfTreatment, OrderEntry
from plimsoll.analysis.order_entry.ranges import BROKEN, CANNOT_TELL, DOES_NOT_APPLY
from plimsoll.words.part import Sentences

Json = dict[str, Any]


def lines(verdict: Json) -> list[str]:
    """One line for the terminal and the head of the report; none for another workload."""
    order_entry: OrderEntry | None = verdict.get("order_entry")
    if not order_entry:
        return []
    treatments = list(order_entry["treatments"].values())
    kinds = list(dict.fromkeys(entry["benchmark"] for entry in treatments)) or ["order entry"]
    text = f"Order entry ({order_entry['like']}): {'; '.join(kinds)}"
    if treatments:
        text += f"; {_bounds_words(treatments)}"
    return [text, *ledger_lines(verdict)]


def _bounds_words(treatments: list[OfTreatment]) -> str:
    broken, unknown, judged = [], 0, 0
    for entry in treatments:
        for label, said in judgements(entry):
            judged += 1
            unknown += said == CANNOT_TELL
            if said == BROKEN and label not in broken:
                broken.append(label)
    text = f"bounds broken: {', '.join(broken)}" if broken else "no bound of its mix, ranges and response times broken"
    return f"{text} ({unknown} of {judged} undecided: too few transactions)" if unknown else text


def judgements(entry: OfTreatment) -> list[tuple[str, str]]:
    """Every bound that applies to a treatment, with its word."""
    judged = [(row["label"], row["verdict"]) for part in (entry["mix"], entry["ranges"]) for row in part]
    for row in entry["limits"]:
        judged.append((f"{row['label']} response time", row["verdict"]))
        judged.append((f"{row['label']} 90th percentile below average", row["p90_not_below_mean"]))
    for name, bound in (("ceiling", entry["rate"]["ceiling"]), ("minimum", entry["rate"]["minimum"])):
        if bound:
            judged.append((f"{name} of {bound['bound']:g} a warehouse", bound["verdict"]))
    return [(label, said) for label, said in judged if said != DOES_NOT_APPLY]


def ledger_lines(verdict: Json) -> list[str]:
    """What became of the acknowledged transactions, where a ledger was kept."""
    order_entry: OrderEntry | None = verdict.get("order_entry")
    kept = order_entry["ledger"] if order_entry else []
    if not kept:
        return []
    parts = []
    new_orders, payments = [ledger["new_orders"] for ledger in kept], [ledger["payments"] for ledger in kept]
    for fates, name in ((new_orders, "New-Orders"), (payments, "Payments")):
        sums = {
            "acknowledged": sum(of["acknowledged"] for of in fates),
            "lost": sum(of["lost"] for of in fates),
            "twice": sum(of["twice"] for of in fates),
        }
        parts.append(f"{sums['acknowledged']} {name} acknowledged, {sums['lost']} lost, {sums['twice']} duplicated")
    text = f"Ledger: {'; '.join(parts)}"
    losing = [ledger for ledger in kept if ledger["new_orders"]["lost"] or ledger["payments"]["lost"]]
    if losing:
        unsafe = list(dict.fromkeys(name for ledger in losing for name in ledger["unsafe"]))
        text += (
            f". In force where some were lost, and able to lose them: {', '.join(unsafe)}"
            if unsafe
            else ". No setting in force where some were lost allows for it"
        )
    return [text]


SENTENCES = Sentences("order_entry", adds=lines, section="order-entry")
