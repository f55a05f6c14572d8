"""What somebody reads of a watched server who has a minute. Says nothing that breakdown.json does not hold."""

from plimsoll.analysis.watch.document import BucketRow, WatchDocument
from plimsoll.quantities import share
from plimsoll.words.said import FirstScreen, Said

_TEXT_MAX = 80
# What to read next, by the largest bucket: the section, and what it tells.
_LOOK = {
    "lock": ("locks", "See which process blocks which, and in which relation"),
    "wal_sync": ("waits", "See how often the WAL is synced and how long each takes"),
    "wal_wait": ("waits", "See how often the WAL is synced and how long each takes"),
    "data_read": ("queries", "See which query reads what the caches do not hold"),
    "client": ("backends", "See which clients keep transactions open without asking for anything"),
}
_ELSE = ("queries", "See which query that is")


def watch_screen(document: WatchDocument) -> FirstScreen:
    """The five answers."""
    busy = [row for row in document["buckets"] if row["share"]]
    largest = max(busy, key=lambda row: float(row["share"] or 0.0), default=None)
    return FirstScreen(
        [Said(document["headline"], "buckets")],
        [
            Said(
                f"watched for {document['watched_ns'] / 1e9:.0f} s, {document['transactions']:,} transactions",
                "timeline",
            )
        ],
        _why(document),
        [] if largest is None else [_next(document, largest)],
        wrong(document),
    )


def _why(document: WatchDocument) -> list[Said]:
    """The query that took most, and the longest wait."""
    said = []
    for row in (document["queries"] or [])[:1]:
        text = " ".join(str(row["text"]).split())
        text = text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"
        said.append(Said(f"The query that took most has {share(row['share'])} of the busy time: {text}", "queries"))
    for wait in document["waits"][:1]:
        said.append(Said(f"The largest wait in total is {wait['event']}: {share(wait['share'])} of it", "waits"))
    return said


def _next(document: WatchDocument, largest: BucketRow) -> Said:
    section, text = _LOOK.get(largest["bucket"], _ELSE)
    is_there = section != "locks" or bool(document["lock_waits"])
    return Said(text, section) if is_there else Said(_ELSE[1], _ELSE[0])


def wrong(document: WatchDocument) -> list[Said]:
    """The first of the caveats with their number."""
    caveats = document["caveats"]
    more = f" (and {len(caveats) - 1} more)" if len(caveats) > 1 else ""
    return [Said(f"{caveats[0]}{more}", "caveats")] if caveats else []
