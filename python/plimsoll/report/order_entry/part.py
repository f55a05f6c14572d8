"""The order-entry workload against its rules, as tables: bounds, response times, New-Orders a minute, the ledger."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.order_entry.document import Bound, Limit, Lost, OfTreatment, OrderEntry, Rate
from plimsoll.analysis.order_entry.order_entry import CEILING_PER_WAREHOUSE, MINIMUM_PER_WAREHOUSE, NAMES
from plimsoll.report.drawing.tables import NONE, flat, interval, number
from plimsoll.report.section import Section
from plimsoll.words.workloads.order_entry import ledger_lines, lines

Json = dict[str, Any]
_LOST_SHOWN = 20


def order_entry_part(verdict: Json) -> Json | None:
    """What the template draws; None for another workload."""
    order_entry: OrderEntry | None = verdict.get("order_entry")
    if not order_entry:
        return None
    labels = treatment_labels(verdict)
    lost = [lost_row for kept in order_entry["ledger"] for lost_row in kept.get("lost", [])]
    return {
        "like": order_entry["like"],
        "rule": order_entry["rule"],
        "ceiling": f"{CEILING_PER_WAREHOUSE:g}",
        "minimum": f"{MINIMUM_PER_WAREHOUSE:g}",
        "treatments": [_treatment(labels.get(name, name), entry) for name, entry in order_entry["treatments"].items()],
        "ledger_lines": ledger_lines(verdict),
        "lost": [_lost(row) for row in lost[:_LOST_SHOWN]],
        "lost_more": max(0, len(lost) - _LOST_SHOWN),
    }


def _treatment(label: str, entry: OfTreatment) -> Json:
    return {
        "label": label,
        "benchmark": entry["benchmark"],
        "is_tpmc_like": entry["is_tpmc_like"],
        "departures": entry["departures"],
        "rows": [_bound(row) for row in [*entry["mix"], *entry["ranges"]]],
        "limits": [_limit(row) for row in entry["limits"]],
        "facts": [
            ("warehouses", str(entry["warehouses"])),
            ("terminals", str(entry["terminals"])),
            *flat(entry["facts"]),
        ],
        "rate": _rate(entry["rate"]),
    }


def _bound(row: Bound) -> Json:
    scale, unit = (100.0, " %") if row["unit"] == "share" else (1.0, "")
    least, most = ("" if end is None else f"{end * scale:.4g}{unit}" for end in (row["least"], row["most"]))
    allowed = f"{least} to {most}" if least and most else NONE
    if bool(least) != bool(most):
        allowed = f"at least {least}" if least else f"at most {most}"
    return {
        "label": row["label"],
        "allowed": allowed,
        "found": NONE if row["value"] is None else f"{interval(row, '.2f', scale)}{unit}",
        "of": number(row["of"], ",.0f"),
        "verdict": row["verdict"],
    }


def _limit(row: Limit) -> Json:
    return {
        "label": row["label"],
        "p90": number(row["p90_ns"], ",.3f", 1e-9),
        "mean": number(row["mean_ns"], ",.3f", 1e-9),
        "limit": f"{row['most']:g}",
        "found": NONE if row["value"] is None else interval(row, ".2f", 100),
        "of": number(row["of"], ",.0f"),
        "verdict": row["verdict"],
        "against_mean": row["p90_not_below_mean"],
    }


def _rate(rate: Rate) -> Json:
    return {
        "name": rate["name"],
        "per_minute": interval(rate["per_minute"], ",.1f"),
        "per_warehouse": interval(rate["per_warehouse"], ",.2f"),
        "of_allowed": number(rate["of_allowed"], ".1f", 100),
        "ceiling": rate["ceiling"]["verdict"] if rate["ceiling"] else NONE,
        "minimum": rate["minimum"]["verdict"] if rate["minimum"] else NONE,
    }


def _lost(row: Lost) -> Json:
    is_order = row["kind"] == "new_order"
    customer = NONE if is_order else f"{row['customer_warehouse']}, {row['customer_district']}, {row['customer']}"
    return {
        "kind": NAMES.get(row["kind"], row["kind"]),
        "warehouse": row["warehouse"],
        "district": row["district"],
        "order": row["order"] if is_order else NONE,
        "customer": customer,
        "amount": NONE if is_order else number(row["amount_cents"], ",.2f", 0.01),
    }


SECTION = Section(
    key="order-entry",
    title="Order entry by its rules",
    template="order_entry/order_entry.html.j2",
    applies=lambda page: bool(page.verdict.get("order_entry")),
    context=lambda page: {"order_entry": order_entry_part(page.verdict)},
    evidence=lambda page: [f"{line}." for line in lines(page.verdict)],
)
