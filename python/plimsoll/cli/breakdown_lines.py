"""The picture of a server at work as lines of text: a pure function of the document and the room there is.

Whole at 80 columns and without colour; a line never says by its colour alone what it says. Where the room is too small
for everything, the lists are shortened in turn, never the buckets.
"""

from __future__ import annotations

import unicodedata
from typing import TypedDict

from rich.text import Text

from plimsoll.analysis.watch.document import BackendRow, PictureDocument, QueryRow, WatchDocument
from plimsoll.analysis.watch.queries import exact_share, is_exact
from plimsoll.quantities import duration, share

WIDTH_MIN = 60
BAR, BAR_PARTS = 20, " ▏▎▍▌▋▊▉█"
SECTION_MIN = 3
DIM, HEAD, WARN = "dim", "bold", "yellow"
STYLES = {
    "cpu": "blue", "run_queue": "yellow", "lock": "red", "wal_sync": "magenta", "wal_wait": "magenta",
    "wal_write": "magenta", "data_read": "green", "data_write": "green", "data_sync": "green", "temp_io": "green",
    "swap_in": "red", "throttle": "red",
}  # fmt: skip
NOTHING = "–"


class About(TypedDict):
    """What is shown of the watch beside its picture."""

    version: str
    pid: int | None
    data: str | None
    seconds: float | None
    live: bool
    notes: list[str]


def clean(text: str) -> str:
    """Text of the server without what would steer a terminal."""
    return "".join(character if unicodedata.category(character)[0] != "C" else " " for character in text)


def cut(text: str, width: int) -> str:
    """At most so wide, and whole words of meaning first: what is cut ends in an ellipsis."""
    text = clean(text)
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def bar(part: float, width: int = BAR) -> str:
    """A bar of eighths."""
    eighths = round(max(0.0, min(1.0, part)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (BAR_PARTS[rest] if rest else "")).ljust(width)


def head_lines(about: About, picture: PictureDocument, width: int) -> list[Text]:
    """Which server, how long it has been watched, what its clients do."""
    place = f"PostgreSQL {about['version']}, process {about['pid']}, {about['data']}"
    watched = f"{picture['watched_ns'] / 1e9:.0f} s" + (f" of {about['seconds']:.0f}" if about["live"] else "")
    first = Text(cut(place, width - len(watched) - 10), style=HEAD)
    first.append(f"watched {watched}".rjust(max(0, width - len(first.plain))), style="")
    clients, idle = picture["clients"], picture["clients"]["idle"]
    idle_words = "idle unknown" if idle is None else f"{idle} idle"
    text = f"clients: {clients['busy']} busy, {clients['idle_in_transaction']} idle in a transaction, {idle_words}"
    each = f"{picture['transactions_per_second'] or 0:,.0f} transactions/s"
    return [first, Text(cut(text, width - len(each) - 1) + each.rjust(max(1, width - len(text))))]


def bucket_lines(picture: PictureDocument, width: int) -> list[Text]:
    """A line a bucket, its bar the share of the busy time."""
    lines = [Text(f"{'where the time goes':<35}{'share':>8}{'backends':>10}{'a transaction':>15}"[:width], style=DIM)]
    for row in picture["buckets"]:
        part = row["share"]
        line = Text(f"{row['bucket']:<15}")
        line.append(bar(part or 0.0) if part is not None else "(not busy)".ljust(BAR), STYLES.get(row["bucket"], ""))
        each = duration(row["ns_per_transaction"])
        line.append(f"{share(part):>8}{row['backends'] or 0:>10.2f}{each:>15}")
        lines.append(line)
    if picture["busy_ns"]:
        each = duration(picture["busy_ns"] / picture["transactions"] if picture["transactions"] else None)
        lines.append(Text(f"{'busy, total':<35}{share(1.0):>8}{picture['busy_backends'] or 0:>10.2f}{each:>15}"))
    return lines


def wait_lines(picture: PictureDocument, width: int) -> list[Text]:
    """Waits by the server's own names; what waits for the client last."""
    rows = picture["waits"]
    if not rows:
        return []
    lines = [Text(f"{'waits':<33}{'times/s':>10}{'each':>11}{'share':>9}  bucket"[:width], style=DIM)]
    for row in rows:
        text = f"{cut(row['event'], 32):<33}{row['per_second'] or 0:>10,.1f}{duration(row['ns_each']):>11}"
        lines.append(Text(cut(f"{text}{share(row['share']):>9}  {row['bucket']}", width)))
    return lines


def mostly(row: QueryRow | BackendRow) -> str:
    """The buckets that most of it is in."""
    return ", ".join(f"{name} {part:.0%}" for name, part in row["mostly"])


def query_lines(picture: PictureDocument, width: int) -> list[Text]:
    """Queries by their part of the busy time: exact, or sampled with its margin and its looks."""
    if picture["queries"] is None:
        return []
    lines = [Text(f"{'queries by busy time':<{width - 31}}{'share':>8}{'':>8}{'from':>15}"[:width], style=DIM)]
    for row in picture["queries"]:
        if not row["busy_ns"] and not row["client_ns"]:
            continue
        exact = is_exact(row)
        how = "exact" if exact else f"{row['looks']:,} samples"
        if not exact and row["exact_ns"]:
            how = f"{exact_share(row):.0%} exact"
        margin = "" if exact or row["margin"] is None else f"±{100 * row['margin']:.1f}"
        text = row["text"] or NOTHING
        line = f"{cut(text, width - 32):<{width - 31}}{share(row['share']):>8}{margin:>8}{how:>15}"
        lines.append(Text(line))
        said = [mostly(row)] if row["mostly"] else []
        if row["client_ns"] > row["busy_ns"]:
            said.append(f"then idle in a transaction, {duration(row['client_ns'])} in total")
        if said:
            lines.append(Text(cut(f"    {'; '.join(said)}", width), style=DIM))
    return lines if len(lines) > 1 else []


def now_words(row: BackendRow) -> str:
    """What a backend does at this moment, and for how long already."""
    now = row["now"]
    if now is None:
        return "idle" if row["state"] in (None, "idle", "active") else row["state"]
    if now["state"] == "blocked":
        doing = now["event"] or now["bucket"] or "blocked"
        if now["bucket"] == "client":
            doing = "idle in transaction"
    else:
        doing = {"cpu": "on a CPU", "runnable": "ready to run"}.get(now["state"] or "", str(now["state"]))
    return f"{doing} {duration(now['since_ns'])}" if now["since_ns"] else doing


def backend_lines(picture: PictureDocument, width: int, live: bool) -> list[Text]:
    """Backends by their time in transactions; during the watch what each does now."""
    rows = picture["backends"]
    if not rows:
        return []
    column = "now, and for how long" if live else "mostly"
    lines = [Text(f"{'backend':<8}{'busy':>6}  {'user':<11} {column:<29} query"[:width], style=DIM)]
    for row in rows:
        doing = now_words(row) if live else mostly(row)
        workers = f" +{len(row['workers'])} workers" if row["workers"] else ""
        user = row["user"] or ("worker" if row["what"] else NOTHING)
        busy = NOTHING if row["busy"] is None else f"{row['busy']:.2f}"
        text = f"{row['pid']:<8}{busy:>6}  {cut(user, 11):<11} {cut(doing + workers, 29):<29} {row['query'] or ''}"
        lines.append(Text(cut(text, width).rstrip()))
    if picture["backends_left_out"]:
        lines.append(Text(f"and {picture['backends_left_out']:,} more", style=DIM))
    return lines


def chain_lines(picture: PictureDocument, width: int) -> list[Text]:
    """Who waits for whom now; at the end the longest waits that were seen."""
    if not picture["chains"]:
        return []
    what = {row["pid"]: row for row in picture["backends"]}
    lines = [Text("locks: who blocks whom", style=DIM)]
    for row in picture["chains"]:
        known = what.get(row["pid"])
        query = (known["query"] if known else None) or ""
        name = str(row["pid"]) if row["pid"] else "a prepared transaction"
        if row["depth"]:
            on = f" on {row['relation']}" if row.get("relation") else ""
            text = f"{'  ' * row['depth']}{name} waits {duration(row['ns'])} ({row['kind']}{on}) {query}"
        else:
            text = f"{name} {(known['state'] if known else None) or ''} blocks: {query}" if query else f"{name} blocks"
        lines.append(Text(cut(text, width), style="" if row["depth"] else WARN))
    return lines


def seen_lock_lines(picture: PictureDocument, width: int) -> list[Text]:
    """The longest waits for locks, at the end."""
    if not picture["lock_waits"]:
        return []
    lines = [Text("longest lock waits that were seen", style=DIM)]
    for row in picture["lock_waits"][:5]:
        on = f" on {row['relation']}" if row["relation"] else ""
        blocker = row["blocker"] or "a prepared transaction"
        text = f"{row['waiter']} waited {duration(row['ns'])} for {blocker} ({row['kind']}{on})"
        lines.append(Text(cut(text + (", and is still waiting" if row["now"] else ""), width)))
    return lines


def picture_lines(about: About, picture: PictureDocument, width: int, height: int | None) -> list[Text]:
    """Everything, in `height` lines if given."""
    width = max(WIDTH_MIN, width)
    live = bool(about["live"])
    fixed = [*head_lines(about, picture, width), Text(""), *bucket_lines(picture, width)]
    locks = chain_lines(picture, width) if live else seen_lock_lines(picture, width)
    sections = [locks, query_lines(picture, width), backend_lines(picture, width, live), wait_lines(picture, width)]
    sections = [section for section in sections if section]
    if height is not None:
        sections = _fitted(sections, height - len(fixed) - len(about["notes"]))
    lines = fixed
    for section in sections:
        lines = [*lines, Text(""), *section]
    for note in about["notes"]:
        lines.append(Text(cut(note, width) if live else clean(note), style=WARN))
    return lines


def _fitted(sections: list[list[Text]], room: int) -> list[list[Text]]:
    """Shortened so that they and a blank before each have room: the longest gives way first, the last is left out."""
    shown = [list(section) for section in sections]
    while shown and sum(len(section) + 1 for section in shown) > room:
        longest = max(shown, key=len)
        if len(longest) > SECTION_MIN:
            longest.pop()
        else:
            shown.pop()
    return shown


def plain_line(picture: PictureDocument) -> str:
    """One line for a log."""
    rows = sorted((row for row in picture["buckets"] if row["share"]), key=lambda row: -(row["share"] or 0.0))[:4]
    parts = ", ".join(f"{row['bucket']} {share(row['share'])}" for row in rows) or "nothing"
    mean = picture["busy_backends"]
    return (
        f"{picture['watched_ns'] / 1e9:4.0f} s  {picture['transactions_per_second'] or 0:,.0f} transactions/s  "
        f"{NOTHING if mean is None else format(mean, '.2f')} busy: {parts}"
    )


def cost_line(picture: WatchDocument) -> str:
    """What watching took of the machine's CPU time."""
    cost = picture["cost"]
    named = (
        ("probe", cost["probe_share"]),
        ("sampling", cost["looks_share"]),
        ("Plimsoll", cost["plimsoll_share"]),
    )
    parts = [f"{name} {100 * part:.2f} %" for name, part in named if part is not None]
    return f"cost in the machine's CPU time: {', '.join(parts)}" if parts else "cost: not known"
