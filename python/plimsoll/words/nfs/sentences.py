"""Calls of NFS in sentences: what a transaction makes, what each level changes, and whether the client agrees."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.captures.density import GETATTR, GROUPS, OTHERS, READ
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metric import TRANSACTION
from plimsoll.analysis.metrics import unit_of_work
from plimsoll.analysis.nfs.document import NfsBoth, NfsCalls, NfsClient, NfsEffect, NfsOfTreatment
from plimsoll.analysis.nfs.part import CALLS
from plimsoll.quantities import one, size
from plimsoll.record.verdict import Mean
from plimsoll.words.guest.sentences import guest_of
from plimsoll.words.part import Sentences

Json = dict[str, Any]
SECTION: Final = "nfs_calls"
NAMES: Final = {READ: "READ", GETATTR: "GETATTR"}
_OF_CALLS: Final = {
    CALLS: "All calls",
    READ: "READ calls",
    GETATTR: "GETATTR calls",
    OTHERS: "Other calls",
}
_TREATMENTS_SHOWN = 3
_EFFECTS_SHOWN = 8
_LEADS = 4
_APART_SHOWN = 4
_SMALL = 0.05  # calls a transaction: less is not worth a sentence


def found_in(verdict: Json) -> NfsCalls | None:
    """The part; None of a run without calls."""
    found: NfsCalls | None = verdict.get("nfs_calls")
    return found


def per_transaction(mean: Mean) -> str:
    """12.3 [11.9, 12.7]."""
    form = _form(mean["value"])
    text = format(mean["value"], form)
    if mean["low"] is None or mean["high"] is None:
        return text
    return f"{text} [{format(mean['low'], form)}, {format(mean['high'], form)}]"


def made_lines(verdict: Json) -> list[str]:
    """What a transaction makes of calls, of a few treatments."""
    found = found_in(verdict)
    if found is None:
        return []
    labels, lines, work = treatment_labels(verdict), [], unit_of_work(verdict)
    for name, mine in list(found["treatments"].items())[:_TREATMENTS_SHOWN]:
        if mine["calls_per_transaction"] is not None:
            parts = [f"{NAMES.get(group, group)} {mine['groups'][group]['value']:,.2f}" for group in GROUPS
                     if group in mine["groups"]]  # fmt: skip
            lines.append(
                f"{labels.get(name, name)}: {per_transaction(mine['calls_per_transaction'])} NFS calls {one(work)} "
                f"({', '.join(parts)})"
            )
    more = len(found["treatments"]) - _TREATMENTS_SHOWN
    if more > 0 and lines:
        lines[-1] += f"; and {more} more treatments in the table"
    return lines


def effect_words(effect: NfsEffect, work: str = TRANSACTION) -> str:
    """GETATTR calls a transaction, ac noac against default: 0.40 to 12.3 (+11.9 [+11.2, +12.6], 30.8 times)."""
    difference, ratio = effect["difference"], effect["ratio"]
    form = _form(difference["value"])
    said = format(difference["value"], f"+{form}")
    if difference["low"] is not None and difference["high"] is not None:
        said += f" [{format(difference['low'], f'+{form}')}, {format(difference['high'], f'+{form}')}]"
    if ratio is not None:
        # With two decimals 0.006 and 0.014 of the calls were the same.
        form_of_ratio = ".2g" if ratio["value"] < 0.1 else _form(ratio["value"])
        said += f", {format(ratio['value'], form_of_ratio)} times"
    at = f" at {effect['at']}" if effect.get("at") else ""
    first, second = effect["first"]["value"], effect["second"]["value"]
    return (
        f"{_OF_CALLS.get(effect['what'], effect['what'])} {one(work)}, {effect['factor']} {effect['level']} against "
        f"{effect['against']}{at}: "
        f"{format(first, _form(first))} to {format(second, _form(second))} ({said})"
    )


def _form(value: float) -> str:
    """Three digits or more; below 1 two decimals."""
    return ",.0f" if abs(value) >= 100 else ",.1f" if abs(value) >= 10 else ",.2f"


def _sure(found: NfsCalls) -> list[NfsEffect]:
    """Changes whose interval leaves out nothing at all, the largest first."""
    sure = [effect for effect in found["effects"] if effect["what"] != CALLS and _is_sure(effect["difference"])]
    return sorted(sure, key=lambda effect: -abs(effect["difference"]["value"]))


def lead_lines(verdict: Json) -> list[str]:
    """The largest change by each factor, of a kernel whose counts hold and whose times do not. Without intervals none
    is told."""
    found, guest = found_in(verdict), guest_of(verdict)
    if found is None or guest is None or "speed" not in guest["cannot"]:
        return []
    # Those of a name before all others together.
    named = sorted(_sure(found), key=lambda effect: effect["what"] == OTHERS)
    of_factor: dict[str, NfsEffect] = {}
    for effect in named:
        of_factor.setdefault(effect["factor"], effect)
    return [effect_words(effect, unit_of_work(verdict)) for effect in of_factor.values()][:_LEADS]


def effect_lines(verdict: Json) -> list[str]:
    """The largest changes; what leads as well, since another part's answer may stand in its place."""
    found = found_in(verdict)
    if found is None:
        return []
    largest = [effect_words(effect, unit_of_work(verdict)) for effect in _sure(found)]
    return list(dict.fromkeys([*lead_lines(verdict), *largest]))[:_EFFECTS_SHOWN]


def _is_sure(difference: Mean) -> bool:
    low, high = difference["low"], difference["high"]
    return low is not None and high is not None and (low > 0 or high < 0) and abs(difference["value"]) >= _SMALL


def account_lines(verdict: Json) -> list[str]:
    """Whether the client's own account has as many calls, over all treatments together."""
    found = found_in(verdict)
    if found is None:
        return []
    of_all = [row for mine in found["treatments"].values() for row in mine["accounts"] or [] if row["is_of_mount"]]
    if not of_all:
        return ["The client's own account of its calls is not there: the calls are not checked"]
    wrong = sorted({row["operation"] for row in of_all if not row["is_explained"]})
    total, off = sum(row["client_calls"] for row in of_all), sum(abs(row["difference"]) for row in of_all)
    if wrong:
        return [
            f"By the client's own account there were {total:,} calls; the capture differs unexplained in "
            f"{', '.join(wrong)}"
        ]
    if off:
        edges = "calls that were under way as a segment began or ended explain it"
        return [f"By the client's own account there were {total:,} calls; the capture differs by {off:,}: {edges}"]
    return [f"The client's own account agrees with the capture on all {total:,} calls, operation by operation"]


def agreement_words(client: NfsClient) -> str:
    """Whether the calls of the kernel's tracepoint are those of the capture, of one treatment."""
    found = client["agreement"]
    if found is None:
        return "whether they are the capture's cannot be told: when the client's account was read is not in the record"
    rows = found["operations"]
    both, compared = sum(row["both"] for row in rows), sum(row["compared"] for row in rows)
    apart = [row for row in rows if row["client_only"] or row["capture_only"]]
    if apart:
        of_each = (
            f"{row['operation']} {row['client_only']:,} and {row['capture_only']:,}" for row in apart[:_APART_SHOWN]
        )
        more = f" and {len(apart) - _APART_SHOWN} more operations" if len(apart) > _APART_SHOWN else ""
        said = f"{both:,} calls are in both, and calls that ought to be are in one alone (tracepoint's and capture's: "
        said += f"{', '.join(of_each)}{more})"
    else:
        said = f"tracepoint and capture have the same {both:,} calls, each by its number"
    if found["at_edges"]:
        said += f"; {found['at_edges']:,} at the segment's edges may be in one alone"
    if compared and (most := max((row for row in rows if row["compared"]), key=lambda row: row["compared"])):
        said += _times_words(most)
    if shorter := sum(row["shorter"] for row in rows):
        said += f"; of {shorter:,} the client's time is shorter than the packets', which cannot be"
    return said


def _times_words(row: NfsBoth) -> str:
    """By how much the client's time to the reply is the longer one, of the operation with most calls."""
    client, capture, longer = row["client_reply_ns"], row["capture_reply_ns"], row["longer_ns_p50"]
    parts = [
        f"{one['value'] / other['value'] - 1:+.1%} at {name}"
        for name in client
        if (one := client[name]) is not None and (other := capture.get(name)) is not None
    ]
    if not parts or longer is None:
        return ""
    return (
        f"; {row['operation']} takes until its reply, by the tracepoint against the capture, {' and '.join(parts)} "
        f"({longer['value'] / 1e3:,.0f} µs at the median of single calls: the client's own part)"
    )


def agreement_lines(verdict: Json) -> list[str]:
    """The same of a few treatments."""
    found = found_in(verdict)
    if found is None:
        return []
    labels = treatment_labels(verdict)
    told = [
        f"{labels.get(name, name)}: {agreement_words(client)}"
        for name, mine in found["treatments"].items()
        if (client := mine.get("client")) is not None
    ]
    return told[:_TREATMENTS_SHOWN]


def kept_words(mine: NfsOfTreatment, work: str = TRANSACTION) -> str | None:
    """What the page cache had of the reads that were asked for."""
    moved = mine["moved"]
    if moved is None or moved["asked_read"] is None or moved["served_read"] is None or moved["kept_share"] is None:
        return None
    asked, served = moved["asked_read"]["value"], moved["served_read"]["value"]
    each = one(work) if mine["transactions"] else "a trial"
    share = moved["kept_share"]["value"]
    # Where anything was read from the server, the page cache did not have all of it.
    almost = f"{min(share, 0.999):.1%}" if served and share > 0.99 else f"{share:.0%}"
    had = f"the page cache had {almost}" if share >= 0 else f"{-share:.0%} more was read ahead"
    return f"{size(round(asked))} asked for {each}, {size(round(served))} read from the server: {had}"


def _adds(verdict: Json) -> list[str]:
    return [*made_lines(verdict)[:1], *account_lines(verdict)]


def _warns(verdict: Json) -> list[str]:
    treatments = {} if (found := found_in(verdict)) is None else found["treatments"]
    lost = {
        "NFS calls": [mine["lost"] for mine in treatments.values() if mine["lost"]],
        "NFS calls of the kernel's tracepoint": [
            client["lost"]
            for mine in treatments.values()
            if (client := mine.get("client")) is not None and client["lost"]
        ],
    }
    return [_lower_bounds(calls, counts) for calls, counts in lost.items() if counts]


def _lower_bounds(calls: str, lost: list[dict[str, int]]) -> str:
    what = ", ".join(sorted({key for counts in lost for key in counts}))
    return f"{calls} are missing in {len(lost)} treatments (lost: {what}): their counts are lower bounds"


SENTENCES = Sentences(SECTION, leads=lead_lines, explains=effect_lines, adds=_adds, warns=_warns, section=SECTION)
